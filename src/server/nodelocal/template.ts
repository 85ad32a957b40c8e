/**
 * Turns a node cache's Corefile template into the Corefile, applying NodeLocal DNSCache's variables and stub domains.
 */
import { Problem } from '../base/problem.ts';
import type { KubeDnsConfig } from './kube-dns-config.ts';

export interface TemplateValues {
  /** As given to `-localip`. */
  readonly localAddresses: readonly string[];
  readonly port: number;
  /** The service that answers for the cluster's zones. */
  readonly service: string;
  /** Its address; null if it is not known. */
  readonly clusterDns: string | null;
  readonly config: KubeDnsConfig;
}

/** Seconds for which stub domain replies are cached. */
const STUB_TTL = 30;

/**
 * The limit for every `forward` on a node. It is the default in `forward`, but is written out so that people who reach
 * the limit find it.
 */
export const FORWARD_BOUND = 'max_concurrent 16384';

/** Template options for the node's own upstreams, but not for those from a ConfigMap, which use UDP. */
const FORCED_UPSTREAMS =
  /forward[ \t]+\.[ \t]+__PILLAR__UPSTREAM__SERVERS__[ \t]*\{\s*force_tcp\s*\}/g;

/**
 * Returns the Corefile's text.
 * @throws Problem if it requires an unknown address
 */
export function renderTemplate(template: string, values: TemplateValues): string {
  const { localAddresses, service, clusterDns, config } = values;
  if (clusterDns === null && asksCluster(template)) throw clusterDnsUnknown(service);
  const servers = config.upstreamNameservers.join(' ');
  const upstreams =
    servers === ''
      ? template.replaceAll('__PILLAR__UPSTREAM__SERVERS__', '/etc/resolv.conf')
      : template
          .replace(FORCED_UPSTREAMS, `forward . ${servers}`)
          .replaceAll('__PILLAR__UPSTREAM__SERVERS__', servers);
  const text = upstreams
    .replaceAll('__PILLAR__CLUSTER__DNS__', clusterDns ?? '')
    .replaceAll('__PILLAR__LOCAL__DNS__', localAddresses.join(' '))
    // The previous variable means all addresses, but older templates also contain this one.
    .replaceAll('__PILLAR__DNS__SERVER__', '');
  return text + stubBlocks(values);
}

/** Returns true if a line other than a comment forwards to the cluster's DNS. */
function asksCluster(template: string): boolean {
  return template
    .split('\n')
    .some((line) => line.includes('__PILLAR__CLUSTER__DNS__') && !line.trimStart().startsWith('#'));
}

function stubBlocks({ localAddresses, port, config }: TemplateValues): string {
  return [...config.stubDomains]
    .map(([domain, servers]) =>
      [
        '',
        `${domain}:${port} {`,
        '    errors',
        `    cache ${STUB_TTL}`,
        `    bind ${localAddresses.join(' ')}`,
        `    forward . ${servers.join(' ')} {`,
        `        ${FORWARD_BOUND}`,
        '    }',
        '}',
        '',
      ].join('\n'),
    )
    .join('');
}

/** Returns the variable that contains a service's address in every pod: `KUBE_DNS_UPSTREAM_SERVICE_HOST`. */
export function serviceVariable(service: string): string {
  return `${service.replaceAll('-', '_').toUpperCase()}_SERVICE_HOST`;
}

function clusterDnsUnknown(service: string): Problem {
  const variable = serviceVariable(service);
  return new Problem({
    code: 'cluster-dns-unknown',
    text: `the cluster DNS address is unknown: ${variable} is not set, or is not an IP address`,
    hint: `Pods have this variable if the ${service} service is in their namespace and they do not set enableServiceLinks: false.`,
    remedy: `kubectl -n kube-system get service ${service}. For another service, use -upstreamsvc NAME. Outside a pod: export ${variable}=10.96.0.10`,
  });
}
