/**
 * Determines the URL that checkers report to. Since resolving a name relies on DNS, which may be broken, checkers get
 * an address if one is known.
 */
import type { Clock } from '../../server/base/clock.ts';
import { parseAddress, printHostPort } from '../../server/base/ip.ts';
import type { Log } from '../../server/base/log.ts';
import { Problem } from '../../server/base/problem.ts';
import { ApiFailure } from '../../server/kube/api/failure.ts';
import { explainHost } from '../../tools/probe/kuberhealthy/explanation.ts';
import type { Settings } from '../../tools/resolver/client.ts';
import { isLocalhostName } from '../../tools/resolver/myhostname.ts';
import { REPORT_PATH } from './check-pod.ts';

export interface ReportingUrlParts {
  /** The configured URL, without a path. */
  readonly url: URL;
  /** Gives checkers the configured host name, or its address instead. */
  readonly by: 'address' | 'name';
  /** A service's ClusterIP, or null if it has none. Rejects with an `ApiFailure`. */
  readonly clusterIp: (
    namespace: string,
    name: string,
    signal: AbortSignal,
  ) => Promise<string | null>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Refresh interval in milliseconds, because recreating a service changes its address. */
const KEEP_MS = 60_000;

const paths: readonly string[] = ['/', ...Object.values(REPORT_PATH)];

/**
 * Parses the configured URL, which includes the path for version 2 but not for Kuberhealthy 3.
 * @throws Problem
 */
export function readReportingUrl(given: string): URL {
  const url = URL.parse(given);
  if (url?.protocol === 'http:' && paths.includes(url.pathname) && url.search === '')
    return new URL(url.origin);
  throw new Problem({
    code: 'bad-reporting-url',
    text: `"${given}" is not a URL that checkers can report to`,
    remedy: 'Example: --reporting-url http://kuberhealthy.NAMESPACE.svc',
  });
}

/** The URL for checkers, with warnings about it. */
export class ReportingUrl {
  readonly #parts: ReportingUrlParts;
  #known = '';
  #askedAt = -Infinity;

  constructor(parts: ReportingUrlParts) {
    this.#parts = parts;
  }

  /** The URL for checkers, without the path. Never rejects, but falls back to the name. */
  async current(signal: AbortSignal): Promise<string> {
    const { clock, log, url } = this.#parts;
    if (this.#known !== '' && clock.now() - this.#askedAt < KEEP_MS) return this.#known;
    this.#askedAt = clock.now();
    const found = await this.#find(signal);
    if (found !== this.#known)
      log.info(
        found === url.origin
          ? `checkers report to ${found}`
          : `checkers report to ${found}, the address of ${url.host}, so they do not need DNS`,
      );
    this.#known = found;
    return found;
  }

  async #find(signal: AbortSignal): Promise<string> {
    const { url, by, clusterIp, log } = this.#parts;
    const name = url.hostname;
    const port = Number(url.port) || 80;
    if (by === 'name' || parseAddress(name.replace(/^\[|\]$/g, '')) !== null) return url.origin;
    // RFC 6761, section 6.3. systemd's nss-myhostname implements it; DNS servers and Go without cgo do not.
    if (isLocalhostName(name)) return `http://${printHostPort('127.0.0.1', port)}`;
    const [service = '', namespace = '', kind = 'svc'] = name.split('.');
    if (namespace === '' || kind !== 'svc') return url.origin;
    try {
      const address = await clusterIp(namespace, service, signal);
      if (address !== null) return `http://${printHostPort(address, port)}`;
      log.warning(`the service ${namespace}/${service} has no ClusterIP, so checkers use its name`);
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error;
      log.warning(
        `the Service of ${name} could not be looked up (${error.message}), so checkers use ${this.#known || 'its name'}`,
      );
      return this.#known || url.origin;
    }
    return url.origin;
  }

  /** The likely reason for a missing report if the checker was given a name, otherwise `''`. */
  async whyUnreported(): Promise<string> {
    const { url } = this.#parts;
    if (this.#known !== url.origin || parseAddress(url.hostname) !== null) return '';
    const name = url.hostname;
    const mend = '--report-by address gives checkers an address instead';
    if (!isLocalhostName(name))
      return `it must look up ${name} before it can report, which fails if DNS is down; ${mend}`;
    const [go] = await explainHost(name, podSettings('hosts: files dns\n'));
    const glibc = (await explainHost(name, podSettings('hosts: files dns myhostname\n')))[2];
    return `KH_REPORTING_URL is under localhost, which not every client can resolve. ${go}. ${glibc} with nss-myhostname. ${mend}: http://${printHostPort('127.0.0.1', Number(url.port) || 80)}`;
  }
}

/** A typical pod's settings, for the resolver models. */
function podSettings(nsswitch: string): Settings {
  return {
    resolvConf:
      'nameserver 10.96.0.10\nsearch default.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n',
    nsswitch,
    hosts: '127.0.0.1 localhost\n::1 localhost\n',
    hostAliases: null,
    env: {},
    host: { hostname: 'checker', addresses: ['10.244.0.2'], loopback: [4, 6] },
  };
}
