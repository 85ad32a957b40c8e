/**
 * The directives and properties in each CoreDNS release, with the first and last release that has them. Taken from
 * plugin.cfg and the setup code of releases 1.0.0 to 1.14.7.
 */
/** The first and last releases that have it. If the second is missing, it still exists. */
export type Lifetime = readonly [since: string, until?: string];

/** Property values that ndots accepts but no CoreDNS release does. */
export const valuesOfNdots: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> =
  { forward: { policy: ['first', 'latency', 'least_conn'] } };

/** The first release in which `forward` accepts host names as upstreams. */
export const hostUpstreamsSince = '1.14.4';

/** The newest release in this table. */
export const newestCore = '1.14.7';

/** The directives of CoreDNS since 1.0.0. */
export const coreDirectives: Readonly<Record<string, Lifetime>> = {
  acl: ['1.6.4'],
  any: ['1.5.1'],
  auto: ['1.0.0'],
  autopath: ['1.0.0'],
  azure: ['1.6.2'],
  bind: ['1.0.0'],
  bufsize: ['1.6.6'],
  cache: ['1.0.0'],
  cancel: ['1.5.0'],
  chaos: ['1.0.0'],
  clouddns: ['1.6.3'],
  debug: ['1.0.0'],
  dns64: ['1.7.0'],
  dnssec: ['1.0.0'],
  dnstap: ['1.0.0'],
  erratic: ['1.0.0'],
  errors: ['1.0.0'],
  etcd: ['1.0.0'],
  federation: ['1.0.0', '1.6.9'],
  file: ['1.0.0'],
  forward: ['1.0.5'],
  geoip: ['1.8.5'],
  grpc: ['1.5.0'],
  grpc_server: ['1.14.0'],
  header: ['1.8.5'],
  health: ['1.0.0'],
  hosts: ['1.0.0'],
  https: ['1.14.0'],
  https3: ['1.14.0'],
  k8s_external: ['1.3.0'],
  kubernetes: ['1.0.0'],
  loadbalance: ['1.0.0'],
  local: ['1.8.1'],
  log: ['1.0.0'],
  loop: ['1.2.1'],
  metadata: ['1.2.0'],
  minimal: ['1.8.4'],
  multisocket: ['1.12.0'],
  nomad: ['1.13.0'],
  nsid: ['1.0.1'],
  on: ['1.0.5'],
  pprof: ['1.0.0'],
  prometheus: ['1.0.0'],
  proxy: ['1.0.0', '1.4.0'],
  proxyproto: ['1.14.3'],
  quic: ['1.12.2'],
  ready: ['1.5.0'],
  reload: ['1.1.0'],
  reverse: ['1.0.0', '1.1.4'],
  rewrite: ['1.0.0'],
  root: ['1.0.0'],
  route53: ['1.0.5'],
  secondary: ['1.0.0'],
  shed: ['1.14.7'],
  shutdown: ['1.0.0', '1.1.0'],
  sign: ['1.6.3'],
  startup: ['1.0.0', '1.1.0'],
  template: ['1.0.3'],
  timeouts: ['1.10.1'],
  tls: ['1.0.0'],
  trace: ['1.0.0'],
  transfer: ['1.6.5'],
  tsig: ['1.9.4'],
  view: ['1.10.0'],
  whoami: ['1.0.0'],
};

/** The replacements of directives that were removed. */
export const successors: Readonly<Record<string, string>> = {
  proxy: 'Write forward, which replaced it in 1.5.0.',
  startup: 'Write on startup, which replaced it.',
  shutdown: 'Write on shutdown, which replaced it.',
  reverse: 'Write template, which replaced it.',
  federation: 'Remove it: Kubernetes no longer has federations.',
};

/**
 * The properties of directives that are used in clusters. A listed directive has no other properties. Directives whose
 * lines begin with arbitrary words (hosts, rewrite, acl …) are not listed.
 */
export const coreProperties: Readonly<Record<string, Readonly<Record<string, Lifetime>>>> = {
  autopath: {},
  bufsize: {},
  cache: {
    success: ['1.0.0'],
    denial: ['1.0.0'],
    prefetch: ['1.0.0'],
    serve_stale: ['1.6.6'],
    servfail: ['1.9.4'],
    disable: ['1.9.4'],
    keepttl: ['1.10.1'],
    serve_stale_policy: ['1.14.7'],
  },
  errors: { consolidate: ['1.5.0'], stacktrace: ['1.9.3'] },
  forward: {
    except: ['1.0.6'],
    expire: ['1.0.6'],
    force_tcp: ['1.0.6'],
    health_check: ['1.0.6'],
    max_fails: ['1.0.6'],
    policy: ['1.0.6'],
    tls: ['1.0.6'],
    tls_servername: ['1.0.6'],
    prefer_udp: ['1.2.0'],
    max_concurrent: ['1.6.8'],
    next: ['1.11.4'],
    failfast_all_unhealthy_upstreams: ['1.12.1'],
    failover: ['1.13.0'],
    max_connect_attempts: ['1.13.2'],
    max_idle_conns: ['1.14.1'],
    max_age: ['1.14.3'],
    next_on_nodata: ['1.14.4'],
    resolver: ['1.14.4'],
    doh_method: ['1.14.5'],
    read_timeout: ['1.14.5'],
    source_address: ['1.14.6'],
  },
  health: { lameduck: ['1.0.5'] },
  kubernetes: {
    endpoint: ['1.0.0'],
    endpoint_pod_names: ['1.0.0'],
    fallthrough: ['1.0.0'],
    labels: ['1.0.0'],
    namespaces: ['1.0.0'],
    pods: ['1.0.0'],
    tls: ['1.0.0'],
    ttl: ['1.0.0'],
    resyncperiod: ['1.0.0', '1.6.9'],
    upstream: ['1.0.0', '1.6.9'],
    noendpoints: ['1.0.6'],
    transfer: ['1.0.6', '1.7.1'],
    ignore: ['1.1.3'],
    kubeconfig: ['1.2.3'],
    namespace_labels: ['1.5.0'],
    multicluster: ['1.12.2'],
    startup_timeout: ['1.12.3'],
    apiserver_burst: ['1.14.0'],
    apiserver_max_inflight: ['1.14.0'],
    apiserver_qps: ['1.14.0'],
    zonal: ['1.14.7'],
  },
  loadbalance: { reload: ['1.10.1'], prefer: ['1.12.4'] },
  loop: {},
  prometheus: {},
  ready: { monitor: ['1.12.2'] },
  reload: {},
};

/** The directives that node-cache includes. */
export const nodeCacheDirectives: ReadonlySet<string> = new Set(
  (
    'bind bufsize cache debug dns64 errors forward health hosts loadbalance log loop pprof prometheus reload rewrite ' +
    'template timeouts trace whoami'
  ).split(' '),
);

/** The node-cache releases that switched to another CoreDNS, with that CoreDNS's release. */
export const nodeCacheReleases: readonly (readonly [own: string, core: string])[] = [
  ['1.16.0', '1.7.0'],
  ['1.20.0', '1.8.3'],
  ['1.21.0', '1.7.0'],
  ['1.22.14', '1.10.0'],
  ['1.24.0', '1.11.3'],
  ['1.26.5', '1.12.2'],
  ['1.26.6', '1.13.1'],
];
