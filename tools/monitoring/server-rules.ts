/** The reports of servers on themselves: promises about their replies, and faults that no promise shows. */
import { alert, promiseRules, type Rule, type ServicePromise } from './rule.ts';

const promises: readonly ServicePromise[] = [
  {
    name: 'errors',
    budget: 0.001,
    bad: (window) =>
      `sum by (cluster) (rate(coredns_dns_responses_total{rcode="SERVFAIL"}[${window}]))`,
    all: (window) => `sum by (cluster) (rate(coredns_dns_responses_total[${window}]))`,
    what: 'DNS replies are SERVFAIL',
  },
  {
    name: 'slow',
    budget: 0.01,
    bad: (window) =>
      `sum by (cluster) (rate(coredns_dns_request_duration_seconds_count[${window}])) - ` +
      `sum by (cluster) (rate(coredns_dns_request_duration_seconds_bucket{le="0.256"}[${window}]))`,
    all: (window) =>
      `sum by (cluster) (rate(coredns_dns_request_duration_seconds_count[${window}]))`,
    what: 'DNS replies take longer than 256 ms',
  },
];

/** Faults that no promise shows, because clients get no replies, or soon will not. */
const otherAlerts: readonly Rule[] = [
  alert(
    'DNSDown',
    'critical',
    // No server at all; those of one cluster disappeared; they exist and cannot be scraped.
    [
      'absent(coredns_build_info)',
      '(count by (cluster) (max_over_time(coredns_build_info[1h])) unless count by (cluster) (coredns_build_info))',
      'sum by (cluster) (up * on (cluster, instance, job) group_left coredns_build_info) == 0',
    ].join(' or '),
    '5m',
    'No DNS server is scraped',
    'Either none runs, or Prometheus cannot reach them; then it cannot tell that lookups fail, either.',
  ),
  alert(
    'DNSPanics',
    'warning',
    'increase(coredns_panics_total[10m]) > 0',
    '0m',
    'A bug of the DNS server was met at {{ $labels.instance }}',
    'The query had SERVFAIL for a reply; the log has the stack.',
  ),
  alert(
    'DNSConfigurationNotTaken',
    'warning',
    'increase(coredns_reload_failed_total[10m]) > 0',
    '0m',
    'A changed Corefile was not taken at {{ $labels.instance }}',
    'The old configuration still serves; a restarted pod will not. The log has the place of the mistake.',
  ),
  alert(
    'DNSCertificateEnds',
    'warning',
    'ndots_tls_certificate_expiration_timestamp_seconds - time() < 7 * 86400',
    '1h',
    'The certificate {{ $labels.certificate }} of the DNS server at {{ $labels.instance }} ends within a week, or has ended',
    'Clients over TLS and HTTPS go away when it has. A renewed one in its place is served after a reload.',
  ),
  alert(
    'DNSUpstreamsDown',
    'critical',
    'increase(coredns_forward_healthcheck_broken_total[5m]) > 0',
    '2m',
    'All upstreams failed their health checks at {{ $labels.instance }}',
    'Names outside of the cluster are answered from cache, or not at all.',
  ),
  alert(
    'DNSUpstreamsOverloaded',
    'warning',
    'increase(coredns_forward_max_concurrent_rejects_total[5m]) > 0',
    '5m',
    'Queries are refused at {{ $labels.instance }} because too many wait for upstreams',
    'The upstreams are slow, or max_concurrent is too low.',
  ),
  alert(
    'DNSQueriesShed',
    'warning',
    'increase(ndots_listener_shed_total[5m]) + increase(ndots_listener_lost_total[5m]) > 0',
    '5m',
    'The DNS server at {{ $labels.instance }} has more queries than it can take',
    'Clients wait for their time-out, mostly five seconds, and ask again.',
  ),
  alert(
    'DNSWorkersLost',
    'critical',
    'increase(ndots_worker_restarts_total[10m]) > 0',
    '0m',
    'A worker of the DNS server at {{ $labels.instance }} hung or died, and was replaced',
    'The log has the reason.',
  ),
  alert(
    'DNSFollowsNoCluster',
    'warning',
    'histogram_quantile(0.99, sum by (cluster, le) (rate(coredns_kubernetes_dns_programming_duration_seconds_bucket[15m]))) > 30',
    '15m',
    'Changes of Services take longer than 30 s to be seen in answers',
    'The API server is slow or unreachable; answers stay unchanged.',
  ),
];

/** Groups of rules, as Prometheus reads them. */
export const serverGroups: readonly { readonly name: string; readonly rules: readonly Rule[] }[] = [
  ...promises.map((promise) => ({ name: `dns-${promise.name}`, rules: promiseRules(promise) })),
  { name: 'dns-others', rules: otherAlerts },
];
