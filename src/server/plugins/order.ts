/** The table of all plugins, in the order in which queries pass through them. */
import type { Plugin } from '../engine/contract/plugin.ts';

/** A plugin that is loaded only if a Corefile names it; most Corefiles use about a dozen. */
export interface PluginEntry {
  readonly name: string;
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
 * Every plugin in chain order, as in CoreDNS 1.14.7. Queries pass through from top to bottom, whatever the order of
 * directives in the Corefile. To add a plugin, add one line here.
 */
export const order: readonly PluginEntry[] = [
  entry('root', async () => (await import('./root/root.ts')).root),
  entry('metadata', async () => (await import('./metadata/metadata.ts')).metadata),
  entry('geoip', async () => (await import('./geoip/geoip.ts')).geoip),
  entry('cancel', async () => (await import('./cancel/cancel.ts')).cancel),
  entry('proxyproto', async () => (await import('./proxyproto/proxyproto.ts')).proxyproto),
  entry('grpc_server', async () => (await import('./grpc_server/grpc_server.ts')).grpcServer),
  entry('https', async () => (await import('./https/https.ts')).https),
  entry('timeouts', async () => (await import('./timeouts/timeouts.ts')).timeouts),
  entry('multisocket', async () => (await import('./multisocket/multisocket.ts')).multisocket),
  entry('limits', async () => (await import('./limits/limits.ts')).limits),
  entry('reload', async () => (await import('./reload/reload.ts')).reload),
  entry('nsid', async () => (await import('./nsid/nsid.ts')).nsid),
  entry('bufsize', async () => (await import('./bufsize/bufsize.ts')).bufsize),
  entry('bind', async () => (await import('./bind/bind.ts')).bind),
  entry('debug', async () => (await import('./debug/debug.ts')).debug),
  entry('trace', async () => (await import('./trace/trace.ts')).trace),
  entry('ready', async () => (await import('./ready/ready.ts')).ready),
  entry('health', async () => (await import('./health/health.ts')).health),
  entry('pprof', async () => (await import('./pprof/pprof.ts')).pprof),
  entry('admin', async () => (await import('./admin/admin.ts')).admin),
  entry('console', async () => (await import('./console/console.ts')).consolePlugin),
  entry('shed', async () => (await import('./shed/shed.ts')).shed),
  entry('prometheus', async () => (await import('./prometheus/prometheus.ts')).prometheus),
  entry('top', async () => (await import('./top/top.ts')).top),
  entry('errors', async () => (await import('./errors/errors.ts')).errors),
  entry('log', async () => (await import('./log/log.ts')).log),
  entry('slowlog', async () => (await import('./slowlog/slowlog.ts')).slowlog),
  entry('dnstap', async () => (await import('./dnstap/dnstap.ts')).dnstap),
  entry('rrl', async () => (await import('./rrl/rrl.ts')).rrl),
  entry('fairqueue', async () => (await import('./fairqueue/fairqueue.ts')).fairqueue),
  entry('local', async () => (await import('./local/local.ts')).local),
  entry('dns64', async () => (await import('./dns64/dns64.ts')).dns64),
  entry('any', async () => (await import('./any/any.ts')).any),
  entry('chaos', async () => (await import('./chaos/chaos.ts')).chaos),
  entry('loadbalance', async () => (await import('./loadbalance/loadbalance.ts')).loadbalance),
  entry('tsig', async () => (await import('./tsig/tsig.ts')).tsig),
  entry('rewrite', async () => (await import('./rewrite/rewrite.ts')).rewrite),
  entry('autopath', async () => (await import('./autopath/autopath.ts')).autopath),
  entry('acl', async () => (await import('./acl/acl.ts')).acl),
  entry('visibility', async () => (await import('./visibility/visibility.ts')).visibility),
  entry('cache', async () => (await import('./cache/cache.ts')).cache),
  entry('header', async () => (await import('./header/header.ts')).header),
  entry('dnssec', async () => (await import('./dnssec/dnssec.ts')).dnssec),
  entry('tls', async () => (await import('./tls/tls.ts')).tls),
  entry('minimal', async () => (await import('./minimal/minimal.ts')).minimal),
  entry('template', async () => (await import('./template/template.ts')).template),
  entry('transfer', async () => (await import('./transfer/transfer.ts')).transfer),
  entry('hosts', async () => (await import('./hosts/hosts.ts')).hosts),
  entry('k8s_external', async () => (await import('./k8s_external/k8s_external.ts')).k8sExternal),
  entry('kubernetes', async () => (await import('./kubernetes/kubernetes.ts')).kubernetes),
  // Placed before the plugins that serve zone files, because files are signed when those plugins first read them. It
  // does not answer queries.
  entry('sign', async () => (await import('./sign/sign.ts')).sign),
  entry('file', async () => (await import('./file/file.ts')).file),
  entry('auto', async () => (await import('./auto/auto.ts')).auto),
  entry('secondary', async () => (await import('./secondary/secondary.ts')).secondary),
  entry('etcd', async () => (await import('./etcd/etcd.ts')).etcd),
  entry('loop', async () => (await import('./loop/loop.ts')).loop),
  entry('leakguard', async () => (await import('./leakguard/leakguard.ts')).leakguard),
  entry('lkg', async () => (await import('./lkg/lkg.ts')).lkg),
  entry('forward', async () => (await import('./forward/forward.ts')).forward, ['proxy']),
  entry('grpc', async () => (await import('./grpc/grpc.ts')).grpc),
  entry('erratic', async () => (await import('./erratic/erratic.ts')).erratic),
  entry('whoami', async () => (await import('./whoami/whoami.ts')).whoami),
  entry('on', async () => (await import('./on/on.ts')).on),
  entry('view', async () => (await import('./view/view.ts')).view),
];

/** CoreDNS directives that are parsed and then rejected with the reason and an alternative. */
const unserved: readonly PluginEntry[] = [
  entry('quic', async () => (await import('./unserved/quic.ts')).quic),
  entry('https3', async () => (await import('./unserved/quic.ts')).https3),
  entry('route53', async () => (await import('./unserved/clouds.ts')).route53),
  entry('azure', async () => (await import('./unserved/clouds.ts')).azure),
  entry('clouddns', async () => (await import('./unserved/clouds.ts')).clouddns),
  entry('nomad', async () => (await import('./unserved/clouds.ts')).nomad),
];

export const directiveNames: readonly string[] = [...order, ...unserved].flatMap(
  ({ name, formerly }) => [name, ...formerly],
);

const otherServer = 'Serve this zone with CoreDNS and that plugin, and `forward` it there.';

/** Third-party CoreDNS plugins that are used in clusters, and what replaces them here. */
export const external: Readonly<Record<string, string>> = {
  ads: 'Write the names with `hosts` (address 0.0.0.0), or use `template` with `rcode NXDOMAIN`.',
  alias: 'Remove it; to answer with addresses instead of a CNAME, use `template` or `hosts`.',
  alternate:
    'Write `forward` with `next NXDOMAIN SERVFAIL`, which queries the next one after such replies.',
  blocklist:
    'Write the names with `hosts` (address 0.0.0.0), or use `template` with `rcode NXDOMAIN`.',
  dnsredir: 'Write one `forward` for each list of zones.',
  docker: otherServer,
  dump: 'Write `log`, which prints a line for every query.',
  fanout:
    'Write `forward` with the same upstreams; `policy random` spreads queries, and `failover` retries them.',
  finalize: 'Remove it; to answer with addresses instead of a CNAME, use `template` or `hosts`.',
  git: 'Mount the zone or hosts files by other means.',
  gslb: otherServer,
  ipecho:
    'Write `template` with the address from a name like ip-10-1-2-3 in the answer: `{{ .Group.a }}`.',
  k8s_crd: otherServer,
  k8s_event: 'Remove it; `log` and `errors` report what happens.',
  k8s_gateway: otherServer,
  kubenodes: otherServer,
  kubernetai: 'Write `kubernetes` several times, each with a separate `endpoint` or `kubeconfig`.',
  lighthouse: otherServer,
  localnodes: otherServer,
  mdns: otherServer,
  multicluster: otherServer,
  mysql: otherServer,
  netbox: otherServer,
  pdsql: otherServer,
  ratelimit: 'Write `rrl` with `requests-per-second`.',
  records: 'Write the records with `hosts` (addresses) or `template` (any type).',
  redis: otherServer,
  redisc: 'Remove it; `cache` keeps its entries in memory.',
  sinkhole:
    'Write the names with `hosts` (address 0.0.0.0), or use `template` with `rcode NXDOMAIN`.',
  tailscale: otherServer,
  unbound: 'Write `forward` to a recursive resolver.',
  wgsd: otherServer,
};

/** Loads the plugins for these directives in chain order. If no names are given, loads all plugins that are served. */
export function loadPlugins(names?: ReadonlySet<string>): Promise<readonly Plugin[]> {
  const wanted =
    names === undefined
      ? order
      : [...order, ...unserved].filter(
          ({ name, formerly }) => names.has(name) || formerly.some((former) => names.has(former)),
        );
  return Promise.all(wanted.map(({ load }) => load()));
}
