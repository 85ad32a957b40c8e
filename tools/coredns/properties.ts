/**
 * Every directive and property in CoreDNS 1.14.7, each with an example Corefile. They were collected from its pages'
 * Syntax sections and from its parsers. `tools/coredns-table.ts` adds how ndots treats them. A test starts both servers
 * with each example.
 */

export interface Property {
  /** The name in the table, which is the first word of the line or the argument. */
  readonly name: string;
  /** Lines inside a server block. `@` is replaced with a directory that contains the test's files. */
  readonly example: string;
  /**
   * A separate server block for cases where a plain DNS block over UDP is not enough. It has `KEY` before the brace,
   * and `PORT` as a placeholder for the port.
   */
  readonly key?: string;
  /** An improvement over CoreDNS. */
  readonly better?: string;
  /** The difference from CoreDNS, if the plugin's page does not describe it. */
  readonly different?: string;
  /** ndots rejects Corefiles with this property. */
  readonly missing?: true;
  /** CoreDNS does not start with this example here, because it needs the internet or was built without the plugin. */
  readonly elsewhere?: true;
}

/** A directive. Its first row is its own line without optional parts. */
export interface Directive {
  readonly name: string;
  readonly properties: readonly Property[];
}

type Row = readonly [name: string, example: string, more?: Omit<Property, 'name' | 'example'>];

/**
 * Defines a directive. In a property's example, `{}` is replaced with the directive's own line, followed by the
 * property in braces.
 */
function directive(name: string, line: string, ...rows: readonly Row[]): Directive {
  const all: readonly Row[] = rows[0]?.[0] === '' ? rows : [['', line], ...rows];
  return {
    name,
    properties: all.map(([property, example, more = {}]) => ({
      name: property,
      example: example.startsWith('{') ? `${line} ${example}` : example,
      ...more,
    })),
  };
}

const tls = { key: 'tls://.:PORT' } as const;
const https = { key: 'https://.:PORT' } as const;
const certificate = 'tls @/cert.pem @/key.pem';
const outside = { elsewhere: true } as const;

export const directives: readonly Directive[] = [
  directive(
    'acl',
    'acl {\n allow\n}',
    ['[ZONES…]', 'acl example.org {\n allow\n}'],
    ['allow', 'acl {\n allow net 10.0.0.0/8\n}'],
    ['block', 'acl {\n block type ANY\n}'],
    ['filter', 'acl {\n filter type AAAA net *\n}'],
    ['drop', 'acl {\n drop net 192.0.2.0/24\n}'],
    ['type', 'acl {\n block type A AAAA\n}'],
    [
      'net',
      'acl {\n block net 10.0.0.0/8 2001:db8::/32\n}',
      { better: 'a lookup is equally fast with ten prefixes and with ten thousand' },
    ],
  ),
  directive('any', 'any'),
  directive(
    'auto',
    'auto example.org {\n directory @/zones\n}',
    ['directory', 'auto example.org {\n directory @/zones (.*)\\.zone {1}\n}'],
    ['reload', 'auto example.org {\n directory @/zones\n reload 10s\n}'],
    ['upstream', 'auto example.org {\n directory @/zones\n upstream\n}'],
  ),
  directive(
    'autopath',
    'autopath @/resolv.conf',
    ['[ZONES…]', 'autopath example.org @/resolv.conf'],
    [
      '@kubernetes',
      'autopath @kubernetes\nkubernetes cluster.local {\n endpoint http://127.0.0.1:1\n pods verified\n startup_timeout 1ms\n}',
      {
        better:
          'finished, terminating and host-network pods and reused addresses are distinguished',
      },
    ],
  ),
  directive(
    'azure',
    'azure group:example.org {\n tenant t\n client c\n secret s\n subscription s\n}',
    ['', 'azure group:example.org {\n tenant t\n client c\n secret s\n subscription s\n}', outside],
    ['tenant', 'azure group:example.org {\n tenant t\n}', outside],
    ['client', 'azure group:example.org {\n client c\n}', outside],
    ['secret', 'azure group:example.org {\n secret s\n}', outside],
    ['subscription', 'azure group:example.org {\n subscription s\n}', outside],
    ['environment', 'azure group:example.org {\n environment AZUREPUBLICCLOUD\n}', outside],
    ['fallthrough', 'azure group:example.org {\n fallthrough\n}', outside],
    ['access', 'azure group:example.org {\n access private\n}', outside],
  ),
  directive(
    'bind',
    'bind 127.0.0.1',
    ['INTERFACE', 'bind lo'],
    ['except', 'bind lo {\n except ::1\n}'],
  ),
  directive('bufsize', 'bufsize', ['SIZE', 'bufsize 1232']),
  directive(
    'cache',
    'cache',
    ['[TTL]', 'cache 30'],
    ['[ZONES…]', 'cache 30 example.org'],
    ['success', '{\n success 5000 3600 5\n}'],
    ['denial', '{\n denial 5000 1800 5\n}'],
    ['prefetch', '{\n prefetch 10 1m 10%\n}'],
    ['serve_stale', '{\n serve_stale 1h immediate\n}'],
    ['serve_stale_policy', '{\n serve_stale\n serve_stale_policy prefer_positive\n}'],
    ['servfail', '{\n servfail 5s\n}'],
    ['disable', '{\n disable denial example.org\n}'],
    ['keepttl', '{\n keepttl\n}'],
  ),
  directive('cancel', 'cancel', ['[TIMEOUT]', 'cancel 1s']),
  directive(
    'chaos',
    'chaos',
    ['[VERSION]', 'chaos v1'],
    ['[AUTHORS…]', 'chaos v1 a@example.org b@example.org'],
  ),
  directive(
    'clouddns',
    'clouddns example.org.:project:zone',
    ['', 'clouddns example.org.:project:zone', outside],
    ['credentials', 'clouddns example.org.:project:zone {\n credentials f\n}', outside],
    ['fallthrough', 'clouddns example.org.:project:zone {\n fallthrough\n}', outside],
    ['upstream', 'clouddns example.org.:project:zone {\n upstream\n}', outside],
  ),
  directive('debug', 'debug'),
  directive(
    'dns64',
    'dns64',
    ['[PREFIX]', 'dns64 64:ff9b::/96'],
    ['prefix', '{\n prefix 64:ff9b::/96\n}'],
    ['translate_all', '{\n translate_all\n}'],
    ['allow_ipv4', '{\n allow_ipv4\n}'],
  ),
  directive(
    'dnssec',
    'dnssec example.org {\n key file @/Kexample.org.+013+55648\n}',
    ['key file', 'dnssec example.org {\n key file @/Kexample.org.+013+55648\n}'],
    [
      'key aws_secretsmanager',
      'dnssec example.org {\n key aws_secretsmanager name\n}',
      { ...outside, missing: true },
    ],
    [
      'cache_capacity',
      'dnssec example.org {\n key file @/Kexample.org.+013+55648\n cache_capacity 1000\n}',
    ],
  ),
  directive(
    'dnstap',
    'dnstap @/dnstap.sock',
    ['full', 'dnstap @/dnstap.sock full'],
    ['[WRITEBUFFER]', 'dnstap @/dnstap.sock full 1'],
    ['[QUEUE]', 'dnstap @/dnstap.sock full 1 1'],
    ['tcp://', 'dnstap tcp://127.0.0.1:6000 full'],
    ['tls://', 'dnstap tls://127.0.0.1:6000 full'],
    [
      'listen',
      'dnstap listen @/sinks.sock full',
      { better: 'a sink that does not read does not delay answers' },
    ],
    ['identity', '{\n identity here\n}'],
    ['version', '{\n version 1\n}'],
    ['extra', '{\n extra text\n}'],
    ['tls', 'dnstap listen tls://127.0.0.1:0 full {\n tls @/cert.pem @/key.pem\n}'],
    ['skipverify', 'dnstap tls://127.0.0.1:6000 full {\n skipverify\n}'],
  ),
  directive(
    'erratic',
    'erratic',
    ['drop', '{\n drop 2\n}'],
    ['truncate', '{\n truncate 2\n}'],
    ['delay', '{\n delay 2 10ms\n}'],
    ['large', '{\n large\n}'],
  ),
  directive(
    'errors',
    'errors',
    ['stacktrace', '{\n stacktrace\n}'],
    ['consolidate', '{\n consolidate 30s ".* i/o timeout$" warning show_first\n}'],
  ),
  directive(
    'etcd',
    'etcd example.org',
    ['path', '{\n path /skydns\n}'],
    ['endpoint', '{\n endpoint http://127.0.0.1:1\n}'],
    ['credentials', '{\n credentials user password\n}', outside],
    ['tls', '{\n endpoint https://127.0.0.1:1\n tls @/cert.pem @/key.pem @/cert.pem\n}'],
    ['fallthrough', '{\n fallthrough\n}'],
    ['min-lease-ttl', '{\n min-lease-ttl 30s\n}'],
    ['max-lease-ttl', '{\n max-lease-ttl 1h\n}'],
    ['stubzones', '{\n stubzones\n}'],
    ['upstream', '{\n upstream\n}'],
    ['debug', '{\n debug\n}'],
  ),
  directive(
    'file',
    'file @/db.example.org example.org',
    ['reload', '{\n reload 30s\n}'],
    ['reload_by_mtime', '{\n reload_by_mtime\n}'],
    ['fallthrough', '{\n fallthrough\n}'],
    ['upstream', '{\n upstream\n}'],
  ),
  directive(
    'forward',
    'forward . 192.0.2.53',
    ['TO tls://', 'forward . tls://192.0.2.53'],
    ['TO https://', 'forward . https://192.0.2.53'],
    ['TO file', 'forward . @/resolv.conf', { better: 're-read when the file changes' }],
    ['except', '{\n except example.net\n}'],
    ['force_tcp', '{\n force_tcp\n}'],
    ['prefer_udp', '{\n prefer_udp\n}'],
    ['expire', '{\n expire 20s\n}'],
    ['max_age', '{\n max_age 60s\n}'],
    ['max_idle_conns', '{\n max_idle_conns 10\n}'],
    ['read_timeout', '{\n read_timeout 1s\n}'],
    ['max_fails', '{\n max_fails 3\n}'],
    ['max_connect_attempts', '{\n max_connect_attempts 3\n}'],
    ['doh_method', 'forward . https://192.0.2.53 {\n doh_method GET\n}'],
    ['tls', 'forward . tls://192.0.2.53 {\n tls @/cert.pem @/key.pem @/cert.pem\n}'],
    ['tls_servername', 'forward . tls://192.0.2.53 {\n tls_servername dns.example\n}'],
    ['policy', '{\n policy sequential\n}'],
    ['health_check', '{\n health_check 1s\n}'],
    ['health_check no_rec', '{\n health_check 1s no_rec\n}'],
    ['health_check domain', '{\n health_check 1s domain example.org\n}'],
    ['max_concurrent', '{\n max_concurrent 1000\n}'],
    ['next', '{\n next NXDOMAIN\n}\nforward . 192.0.2.54'],
    ['next_on_nodata', '{\n next_on_nodata\n}\nforward . 192.0.2.54'],
    ['failfast_all_unhealthy_upstreams', '{\n failfast_all_unhealthy_upstreams\n}'],
    ['failover', '{\n failover SERVFAIL REFUSED\n}'],
    ['source_address', '{\n source_address 127.0.0.1\n}'],
    ['resolver', 'forward . https://192.0.2.53 {\n resolver 192.0.2.53\n}'],
  ),
  directive('geoip', 'geoip @/test.mmdb', ['edns-subnet', '{\n edns-subnet\n}']),
  directive(
    'grpc',
    'grpc . 192.0.2.53:443',
    ['except', '{\n except example.net\n}'],
    ['tls', '{\n tls @/cert.pem @/key.pem @/cert.pem\n}'],
    ['tls_servername', '{\n tls_servername dns.example\n}'],
    ['policy', '{\n policy random\n}'],
    ['fallthrough', '{\n fallthrough\n}'],
  ),
  directive(
    'grpc_server',
    'grpc_server {\n max_streams 10\n}',
    ['', 'grpc_server {\n max_streams 10\n}\nwhoami', { key: 'grpc://.:PORT' }],
    ['max_streams', 'grpc_server {\n max_streams 10\n}\nwhoami', { key: 'grpc://.:PORT' }],
    ['max_connections', 'grpc_server {\n max_connections 10\n}\nwhoami', { key: 'grpc://.:PORT' }],
  ),
  directive(
    'header',
    'header {\n response set ra\n}',
    ['query', 'header {\n query set rd\n}'],
    ['response', 'header {\n response clear aa\n}'],
  ),
  directive('health', 'health 127.0.0.1:HTTP', ['lameduck', '{\n lameduck 1s\n}']),
  directive(
    'hosts',
    'hosts @/hosts',
    ['[ZONES…]', 'hosts @/hosts example.org'],
    ['INLINE', '{\n 192.0.2.1 a.example.org\n}'],
    ['ttl', '{\n ttl 60\n}'],
    ['no_reverse', '{\n no_reverse\n}'],
    ['reload', '{\n reload 10s\n}'],
    ['fallthrough', '{\n fallthrough\n}'],
    ['fallthrough_unsupported', '{\n fallthrough\n fallthrough_unsupported\n}'],
  ),
  directive(
    'https',
    `https {\n max_connections 10\n}`,
    ['', `${certificate}\nhttps {\n max_connections 10\n}`, https],
    ['max_connections', `${certificate}\nhttps {\n max_connections 10\n}`, https],
  ),
  directive(
    'https3',
    'https3 {\n max_streams 10\n}',
    ['', `${certificate}\nhttps3 {\n max_streams 10\n}`, { key: 'https3://.:PORT' }],
    ['max_streams', `${certificate}\nhttps3 {\n max_streams 10\n}`, { key: 'https3://.:PORT' }],
    [
      'max_connections',
      `${certificate}\nhttps3 {\n max_connections 10\n}`,
      { key: 'https3://.:PORT' },
    ],
  ),
  directive(
    'k8s_external',
    'kubernetes cluster.local {\n endpoint http://127.0.0.1:1\n startup_timeout 1ms\n}\nk8s_external example.org',
    [
      'apex',
      'kubernetes cluster.local {\n endpoint http://127.0.0.1:1\n startup_timeout 1ms\n}\nk8s_external example.org {\n apex dns\n}',
    ],
    [
      'ttl',
      'kubernetes cluster.local {\n endpoint http://127.0.0.1:1\n startup_timeout 1ms\n}\nk8s_external example.org {\n ttl 30\n}',
    ],
    [
      'headless',
      'kubernetes cluster.local {\n endpoint http://127.0.0.1:1\n startup_timeout 1ms\n}\nk8s_external example.org {\n headless\n}',
    ],
    [
      'fallthrough',
      'kubernetes cluster.local {\n endpoint http://127.0.0.1:1\n startup_timeout 1ms\n}\nk8s_external example.org {\n fallthrough\n}',
    ],
  ),
  directive(
    'kubernetes',
    'kubernetes cluster.local {\n endpoint http://127.0.0.1:1\n startup_timeout 1ms\n}',
    ...(
      [
        ['endpoint', ''],
        ['tls', 'tls @/cert.pem @/key.pem @/cert.pem'],
        ['kubeconfig', 'kubeconfig @/kubeconfig'],
        ['apiserver_qps', 'apiserver_qps 10'],
        ['apiserver_burst', 'apiserver_burst 10'],
        ['apiserver_max_inflight', 'apiserver_max_inflight 10'],
        ['namespaces', 'namespaces default'],
        ['namespace_labels', 'namespace_labels team=a'],
        ['labels', 'labels app=web'],
        ['pods', 'pods verified'],
        ['endpoint_pod_names', 'endpoint_pod_names'],
        ['ttl', 'ttl 30'],
        ['noendpoints', 'noendpoints'],
        ['fallthrough', 'fallthrough in-addr.arpa'],
        ['ignore', 'ignore empty_service'],
        ['zonal', 'zonal'],
        ['startup_timeout', ''],
      ] as const
    ).map(
      ([name, line]) =>
        [
          name,
          `kubernetes cluster.local {\n ${name === 'kubeconfig' ? '' : 'endpoint http://127.0.0.1:1'}\n startup_timeout 1ms\n ${line}\n}`,
        ] as const,
    ),
    [
      'multicluster',
      'kubernetes cluster.local clusterset.local {\n endpoint http://127.0.0.1:1\n startup_timeout 1ms\n multicluster clusterset.local\n}',
    ],
  ),
  directive(
    'loadbalance',
    'loadbalance',
    ['round_robin', 'loadbalance round_robin'],
    ['weighted', 'loadbalance weighted @/weights'],
    ['reload', 'loadbalance weighted @/weights {\n reload 30s\n}'],
    ['prefer', 'loadbalance round_robin {\n prefer 10.0.0.0/8\n}'],
  ),
  directive('local', 'local', ['localhost_prefix', '{\n localhost_prefix off\n}']),
  directive(
    'log',
    'log',
    ['[NAMES…]', 'log example.org'],
    ['[FORMAT]', 'log . "{remote} {name}"'],
    ['class', '{\n class denial error\n}'],
  ),
  directive('loop', 'loop'),
  directive('metadata', 'metadata', ['[ZONES…]', 'metadata example.org']),
  directive('minimal', 'minimal'),
  directive('multisocket', 'multisocket', ['[NUM_SOCKETS]', 'multisocket 2']),
  directive(
    'nomad',
    'nomad service.nomad',
    ['address', '{\n address http://127.0.0.1:1\n}'],
    ['filter', '{\n filter "x"\n}', outside],
    ['token', '{\n token t\n}'],
    ['ttl', '{\n ttl 10\n}'],
  ),
  directive('nsid', 'nsid', ['[DATA]', 'nsid here']),
  directive('on', 'on startup true', ['', 'on startup true'], ['shutdown', 'on shutdown true']),
  directive(
    'pprof',
    'pprof 127.0.0.1:HTTP',
    ['[ADDRESS]', 'pprof 127.0.0.1:HTTP'],
    ['block', '{\n block 1\n}'],
  ),
  directive(
    'prometheus',
    'prometheus 127.0.0.1:HTTP',
    ['runtime_metrics', '{\n runtime_metrics\n}'],
    ['tls', '{\n tls @/web.yaml\n}'],
  ),
  directive(
    'proxyproto',
    'proxyproto',
    ['allow', '{\n allow 10.0.0.0/8\n}'],
    ['default', '{\n allow 10.0.0.0/8\n default reject\n}'],
    ['udp_session_tracking', '{\n allow 10.0.0.0/8\n udp_session_tracking 10s\n}'],
  ),
  directive(
    'quic',
    'quic {\n max_streams 10\n}',
    ['', `${certificate}\nquic {\n max_streams 10\n}`, { key: 'quic://.:PORT' }],
    ['max_streams', `${certificate}\nquic {\n max_streams 10\n}`, { key: 'quic://.:PORT' }],
    [
      'worker_pool_size',
      `${certificate}\nquic {\n worker_pool_size 10\n}`,
      { key: 'quic://.:PORT' },
    ],
  ),
  directive('ready', 'ready 127.0.0.1:HTTP', ['monitor', '{\n monitor continuously\n}']),
  directive('reload', 'reload', ['[INTERVAL]', 'reload 10s'], ['[JITTER]', 'reload 10s 5s']),
  directive(
    'rewrite',
    'rewrite name a.example.org b.example.org',
    ['continue|stop', 'rewrite continue name a.example.org b.example.org'],
    ['name exact', 'rewrite name exact a.example.org b.example.org'],
    ['name prefix', 'rewrite name prefix a b'],
    ['name suffix', 'rewrite name suffix .example.org .example.net'],
    ['name substring', 'rewrite name substring a b'],
    ['name regex', 'rewrite name regex (.*)\\.example\\.org {1}.example.net'],
    ['answer auto', 'rewrite name suffix .example.org .example.net answer auto'],
    [
      'answer name',
      'rewrite name regex (.*)\\.example\\.org {1}.example.net answer name (.*)\\.example\\.net {1}.example.org',
    ],
    [
      'answer value',
      'rewrite name regex (.*)\\.example\\.org {1}.example.net answer name (.*)\\.example\\.net {1}.example.org answer value (.*)\\.example\\.net {1}.example.org',
    ],
    ['type', 'rewrite type ANY HINFO'],
    ['class', 'rewrite class CH IN'],
    ['edns0 local', 'rewrite edns0 local set 0xffee 0x61'],
    ['edns0 nsid', 'rewrite edns0 nsid set'],
    ['edns0 subnet', 'rewrite edns0 subnet set 24 56'],
    ['edns0 unset', 'rewrite edns0 local unset 0xffee'],
    ['edns0 revert', 'rewrite edns0 local set 0xffee 0x61 revert'],
    ['ttl', 'rewrite ttl example.org 60'],
    ['cname', 'rewrite cname exact a.example.org b.example.org'],
    ['rcode', 'rewrite rcode exact a.example.org SERVFAIL NOERROR'],
  ),
  directive('root', 'root @'),
  directive(
    'route53',
    'route53 example.org.:Z1',
    ['', 'route53 example.org.:Z1', outside],
    ...[
      'aws_access_key A B',
      'aws_endpoint http://127.0.0.1:1',
      'credentials p',
      'fallthrough',
      'refresh 1m',
      'upstream',
    ].map((line) => [line.split(' ')[0]!, `{\n ${line}\n}`, outside] as const),
  ),
  directive(
    'secondary',
    'secondary example.org {\n transfer from 127.0.0.1:1\n}',
    ['transfer from', 'secondary example.org {\n transfer from 127.0.0.1:1\n}'],
    ['catalog', 'secondary example.org {\n transfer from 127.0.0.1:1\n catalog\n}'],
    ['fallthrough', 'secondary example.org {\n transfer from 127.0.0.1:1\n fallthrough\n}'],
  ),
  directive('shed', 'shed'),
  directive(
    'sign',
    'sign @/db.example.org example.org {\n key file @/Kexample.org.+013+55648\n directory @\n}',
    [
      'key file',
      'sign @/db.example.org example.org {\n key file @/Kexample.org.+013+55648\n directory @\n}',
    ],
    [
      'key directory',
      'sign @/db.example.org example.org {\n key directory @\n directory @\n}',
      outside,
    ],
    [
      'directory',
      'sign @/db.example.org example.org {\n key file @/Kexample.org.+013+55648\n directory @\n}',
    ],
  ),
  directive(
    'template',
    'template IN A {\n rcode NXDOMAIN\n}',
    ['[ZONES…]', 'template IN A example.org {\n rcode NXDOMAIN\n}'],
    ['match', 'template IN A {\n match ^a\\.\n rcode NXDOMAIN\n}'],
    ['answer', 'template IN A {\n answer "{{ .Name }} 60 IN A 192.0.2.1"\n}'],
    ['additional', 'template IN A {\n additional "{{ .Name }} 60 IN A 192.0.2.1"\n}'],
    ['authority', 'template IN A {\n authority "{{ .Zone }} 60 IN NS ns.example.org."\n}'],
    ['rcode', 'template IN A {\n rcode REFUSED\n}'],
    ['ederror', 'template IN A {\n rcode NXDOMAIN\n ederror 15 "blocked"\n}'],
    ['fallthrough', 'template IN A {\n match ^a\\.\n rcode NXDOMAIN\n fallthrough\n}'],
    ['upstream', 'template IN A {\n rcode NXDOMAIN\n upstream\n}'],
  ),
  directive(
    'timeouts',
    'timeouts {\n read 10s\n}',
    ['', `${certificate}\ntimeouts {\n read 10s\n}`, tls],
    ...['read 10s', 'write 10s', 'idle 10s', 'maxtcpqueries 100'].map(
      (line) => [line.split(' ')[0]!, `${certificate}\ntimeouts {\n ${line}\n}`, tls] as const,
    ),
  ),
  directive(
    'tls',
    certificate,
    ['', certificate, tls],
    ['[CA]', 'tls @/cert.pem @/key.pem @/cert.pem', tls],
    ['client_auth', 'tls @/cert.pem @/key.pem @/cert.pem {\n client_auth request\n}', tls],
    ['keylog', 'tls @/cert.pem @/key.pem {\n keylog @/keys\n}', tls],
    ...[
      'acme dns.example',
      'email a@example.org',
      'ca https://127.0.0.1:1',
      'storage @',
      'ca_root @/cert.pem',
      'resolver 127.0.0.1',
    ].map(
      (line) =>
        [
          line.split(' ')[0]!,
          `tls {\n acme dns.example\n ${line.startsWith('acme') ? '' : line}\n}`,
          { ...tls, ...outside, missing: true },
        ] as const,
    ),
  ),
  directive(
    'trace',
    'trace',
    ['zipkin', 'trace zipkin 127.0.0.1:1'],
    ['datadog', 'trace datadog 127.0.0.1:1', { missing: true }],
    ...[
      'every 10',
      'service dns',
      'client_server',
      'datadog_analytics_rate 0.5',
      'zipkin_max_backlog_size 100',
      'zipkin_max_batch_size 10',
      'zipkin_max_batch_interval 1s',
    ].map((line) => [line.split(' ')[0]!, `{\n ${line}\n}`] as const),
  ),
  directive(
    'transfer',
    'transfer example.org {\n to *\n}\nfile @/db.example.org example.org',
    ['to', 'transfer example.org {\n to * 127.0.0.1\n}\nfile @/db.example.org example.org'],
    [
      'source',
      'transfer example.org {\n to 127.0.0.1\n source 127.0.0.1\n}\nfile @/db.example.org example.org',
    ],
  ),
  directive(
    'tsig',
    'tsig {\n secret k.example. NoTCJU+DMqFWywaPyxSijrDEA/eC3nK0xi3AMEZuPVk=\n}',
    ['secret', 'tsig {\n secret k.example. NoTCJU+DMqFWywaPyxSijrDEA/eC3nK0xi3AMEZuPVk=\n}'],
    ['secrets', 'tsig {\n secrets @/tsig.keys\n}'],
    [
      'require',
      'tsig {\n secret k.example. NoTCJU+DMqFWywaPyxSijrDEA/eC3nK0xi3AMEZuPVk=\n require AXFR\n}',
    ],
    [
      'require_opcode',
      'tsig {\n secret k.example. NoTCJU+DMqFWywaPyxSijrDEA/eC3nK0xi3AMEZuPVk=\n require_opcode NOTIFY\n}',
    ],
  ),
  directive('view', 'view here {\n expr true\n}', [
    'expr',
    'view here {\n expr "incidr(client_ip(), \'10.0.0.0/8\')"\n}',
  ]),
  directive('whoami', 'whoami'),
];
