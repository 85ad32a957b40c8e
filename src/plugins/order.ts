import type { Plugin } from '../server/contract/plugin.ts';

/** A plugin that is loaded when a Corefile names it: most use a dozen of them. */
export interface PluginEntry {
  readonly name: string;
  /** Older names of the directive. */
  readonly formerly: readonly string[];
  load(): Promise<Plugin>;
}

function entry(
  name: string,
  load: () => Promise<Plugin>,
  formerly: readonly string[] = [],
): PluginEntry {
  return { name, formerly, load };
}

/**
 * Every plugin, in the order of the chain (CoreDNS 1.14.7's): a query meets them from top to bottom, whatever the order of
 * the directives in the Corefile. Adding a plugin is one line here.
 */
export const order: readonly PluginEntry[] = [
  entry('root', async () => (await import('./root/root.ts')).root),
  entry('metadata', async () => (await import('./metadata/metadata.ts')).metadata),
  entry('cancel', async () => (await import('./cancel/cancel.ts')).cancel),
  entry('https', async () => (await import('./https/https.ts')).https),
  entry('timeouts', async () => (await import('./timeouts/timeouts.ts')).timeouts),
  entry('multisocket', async () => (await import('./multisocket/multisocket.ts')).multisocket),
  entry('limits', async () => (await import('./limits/limits.ts')).limits),
  entry('reload', async () => (await import('./reload/reload.ts')).reload),
  entry('nsid', async () => (await import('./nsid/nsid.ts')).nsid),
  entry('bufsize', async () => (await import('./bufsize/bufsize.ts')).bufsize),
  entry('bind', async () => (await import('./bind/bind.ts')).bind),
  entry('debug', async () => (await import('./debug/debug.ts')).debug),
  entry('ready', async () => (await import('./ready/ready.ts')).ready),
  entry('health', async () => (await import('./health/health.ts')).health),
  entry('prometheus', async () => (await import('./prometheus/prometheus.ts')).prometheus),
  entry('errors', async () => (await import('./errors/errors.ts')).errors),
  entry('log', async () => (await import('./log/log.ts')).log),
  entry('local', async () => (await import('./local/local.ts')).local),
  entry('any', async () => (await import('./any/any.ts')).any),
  entry('chaos', async () => (await import('./chaos/chaos.ts')).chaos),
  entry('loadbalance', async () => (await import('./loadbalance/loadbalance.ts')).loadbalance),
  entry('rewrite', async () => (await import('./rewrite/rewrite.ts')).rewrite),
  entry('autopath', async () => (await import('./autopath/autopath.ts')).autopath),
  entry('acl', async () => (await import('./acl/acl.ts')).acl),
  entry('cache', async () => (await import('./cache/cache.ts')).cache),
  entry('header', async () => (await import('./header/header.ts')).header),
  entry('tls', async () => (await import('./tls/tls.ts')).tls),
  entry('minimal', async () => (await import('./minimal/minimal.ts')).minimal),
  entry('template', async () => (await import('./template/template.ts')).template),
  entry('transfer', async () => (await import('./transfer/transfer.ts')).transfer),
  entry('hosts', async () => (await import('./hosts/hosts.ts')).hosts),
  entry('kubernetes', async () => (await import('./kubernetes/kubernetes.ts')).kubernetes),
  entry('file', async () => (await import('./file/file.ts')).file),
  entry('auto', async () => (await import('./auto/auto.ts')).auto),
  entry('loop', async () => (await import('./loop/loop.ts')).loop),
  entry('forward', async () => (await import('./forward/forward.ts')).forward, ['proxy']),
  entry('erratic', async () => (await import('./erratic/erratic.ts')).erratic),
  entry('whoami', async () => (await import('./whoami/whoami.ts')).whoami),
  entry('view', async () => (await import('./view/view.ts')).view),
];

/** All names that a directive may have. */
export const directiveNames: readonly string[] = order.flatMap(({ name, formerly }) => [
  name,
  ...formerly,
]);

/** Plugins of CoreDNS 1.14.7 that have no counterpart here. */
export const absent: readonly string[] = [
  'geoip',
  'proxyproto',
  'quic',
  'grpc_server',
  'https3',
  'trace',
  'pprof',
  'shed',
  'dnstap',
  'dns64',
  'tsig',
  'dnssec',
  'route53',
  'azure',
  'clouddns',
  'k8s_external',
  'etcd',
  'grpc',
  'on',
  'sign',
  'nomad',
];

/** Plugins that others made for CoreDNS and people use in clusters, and what serves the same end here. */
export const external: Readonly<Record<string, string>> = {
  alias: 'Remove it; answers with addresses in place of CNAME come from `template` or `hosts`.',
  alternate:
    'Write `forward` with `next NXDOMAIN SERVFAIL`: it asks the next one after such replies.',
  fanout:
    'Write `forward` with the same upstreams; `policy random` and `failover` spread and retry.',
  git: 'Mount the zone or hosts files by other means.',
  k8s_gateway: 'Serve this zone with CoreDNS and that plugin, and `forward` it there.',
  kubernetai:
    'Write `kubernetes` several times, each with an `endpoint` or `kubeconfig` of its own.',
  mysql: 'Serve this zone with CoreDNS and that plugin, and `forward` it there.',
  netbox: 'Serve this zone with CoreDNS and that plugin, and `forward` it there.',
  pdsql: 'Serve this zone with CoreDNS and that plugin, and `forward` it there.',
  records: 'Write the records with `hosts` (addresses) or `template` (any type).',
  redis: 'Serve this zone with CoreDNS and that plugin, and `forward` it there.',
  redisc: 'Remove it: `cache` keeps what it has in memory.',
  rrl: 'Remove it, and limit the rate in front of the server.',
  unbound: 'Write `forward` to a recursive resolver.',
};

/** The plugins of these directives in chain order; all plugins if no names are given. */
export function loadPlugins(names?: ReadonlySet<string>): Promise<readonly Plugin[]> {
  const wanted = order.filter(
    ({ name, formerly }) =>
      names === undefined || names.has(name) || formerly.some((former) => names.has(former)),
  );
  return Promise.all(wanted.map(({ load }) => load()));
}
