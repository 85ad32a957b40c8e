/**
 * Finds the reporting address before any checks run, because a report that DNS is down must not depend on DNS. The name
 * is looked up once. If that fails, the address comes from the service's environment variables or the API server. The
 * `Host` header carries the name in any case.
 */
import type { Environment } from '../../../server/base/environment.ts';
import { parseAddress } from '../../../server/base/ip.ts';
import { isLocalhostName } from '../../resolver/myhostname.ts';

/** A reporting address and where it came from. */
export interface ReportingAddress {
  readonly host: string;
  readonly port: number;
  /** For the log: `the variable KUBERHEALTHY_SERVICE_HOST`. */
  readonly from: string;
}

/** Sources of addresses. They reject if the network fails. */
export interface AddressSources {
  readonly env: Environment;
  /** The system's own lookup. */
  lookup(name: string): Promise<readonly string[]>;
  /** A service's ClusterIP according to the API server. */
  clusterIp(namespace: string, name: string): Promise<string | null>;
}

/** The addresses in the order to try them, and why other sources provided none. */
export interface FoundAddresses {
  readonly addresses: readonly ReportingAddress[];
  readonly failures: readonly string[];
}

/** Queries all sources and collects their failures. */
export async function findReportingAddresses(
  url: URL,
  { env, lookup, clusterIp }: AddressSources,
): Promise<FoundAddresses> {
  const name = url.hostname.replace(/^\[|\]$/g, '');
  const port = Number(url.port) || 80;
  if (parseAddress(name) !== null)
    return { addresses: [{ host: name, port, from: 'the URL' }], failures: [] };
  const failures: string[] = [];
  const addresses: ReportingAddress[] = [];
  // Names under localhost refer to this machine and are never sent to a server (RFC 6761 section 6.3).
  if (isLocalhostName(name))
    return {
      addresses: ['127.0.0.1', '::1'].map((host) => ({
        host,
        port,
        from: 'RFC 6761: names under localhost refer to this pod',
      })),
      failures,
    };
  try {
    for (const host of await lookup(name))
      addresses.push({ host, port, from: `a lookup of ${name}` });
  } catch (error) {
    failures.push(`looking up ${name}: ${(error as Error).message}`);
  }
  const [service = '', namespace = ''] = name.split('.');
  const variable = `${service.toUpperCase().replaceAll('-', '_')}_SERVICE_HOST`;
  const told = env[variable] ?? '';
  if (parseAddress(told) !== null)
    addresses.push({ host: told, port, from: `the variable ${variable}` });
  else failures.push(`the variable ${variable} is not set`);
  if (addresses.length === 0 && namespace !== '') {
    try {
      const host = await clusterIp(namespace, service);
      if (host === null) failures.push(`the service ${namespace}/${service} has no ClusterIP`);
      else addresses.push({ host, port, from: `the service ${namespace}/${service}` });
    } catch (error) {
      failures.push(
        `querying the API server for ${namespace}/${service}: ${(error as Error).message}`,
      );
    }
  }
  return { addresses, failures };
}
