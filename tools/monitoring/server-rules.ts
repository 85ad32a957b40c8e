/** Rules for the servers' own metrics, which cover promises about replies and faults that no promise includes. */
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

/** Faults that no promise includes, because clients get no replies at all or soon will not. */
const otherAlerts: readonly Rule[] = [
  alert(
    'DNSDown',
    'critical',
    // There is no server, a cluster's servers have disappeared, or servers cannot be scraped.
    [
      'absent(coredns_build_info)',
      '(count by (cluster) (max_over_time(coredns_build_info[1h])) unless count by (cluster) (coredns_build_info))',
      'sum by (cluster) (up * on (cluster, instance, job) group_left coredns_build_info) == 0',
    ].join(' or '),
    '5m',
    'No DNS server is scraped',
    'Either no server is running, or Prometheus cannot reach any. In that case it cannot detect failing lookups either.',
  ),
  alert(
    'DNSPanics',
    'warning',
    'increase(coredns_panics_total[10m]) > 0',
    '0m',
    'The DNS server at {{ $labels.instance }} hit a bug',
    'The query was answered with SERVFAIL; the log has the stack trace.',
  ),
  alert(
    'DNSConfigurationNotTaken',
    'warning',
    'increase(coredns_reload_failed_total[10m]) > 0',
    '0m',
    'A changed Corefile was rejected at {{ $labels.instance }}',
    'The previous one is still in use, but a pod that restarts will fail. The log shows where the error is.',
  ),
  alert(
    'DNSCertificateEnds',
    'warning',
    'ndots_tls_certificate_expiration_timestamp_seconds - time() < 7 * 86400',
    '1h',
    'The certificate {{ $labels.certificate }} of the DNS server at {{ $labels.instance }} expires within a week, or has expired',
    'Once it has expired, clients over TLS and HTTPS fail. A renewed certificate in the same file is served after a reload.',
  ),
  alert(
    'DNSUpstreamsDown',
    'critical',
    'increase(coredns_forward_healthcheck_broken_total[5m]) > 0',
    '2m',
    'All upstreams failed their health checks at {{ $labels.instance }}',
    'External names are answered from cache, or not at all.',
  ),
  alert(
    'DNSUpstreamsOverloaded',
    'warning',
    'increase(coredns_forward_max_concurrent_rejects_total[5m]) > 0',
    '5m',
    'Queries are refused at {{ $labels.instance }} because too many are waiting for upstreams',
    'The upstreams are slow, or max_concurrent is too low.',
  ),
  alert(
    'DNSQueriesShed',
    'warning',
    'increase(ndots_listener_shed_total[5m]) + increase(ndots_listener_lost_total[5m]) > 0',
    '5m',
    'The DNS server at {{ $labels.instance }} receives more queries than it can handle',
    'Clients wait for their timeout, usually five seconds, and retry.',
  ),
  alert(
    'DNSWorkersLost',
    'critical',
    'increase(ndots_worker_restarts_total[10m]) > 0',
    '0m',
    'A worker of the DNS server at {{ $labels.instance }} hung or died and was replaced',
    'The log has the reason.',
  ),
  alert(
    'DNSFollowsNoCluster',
    'warning',
    'histogram_quantile(0.99, sum by (cluster, le) (rate(coredns_kubernetes_dns_programming_duration_seconds_bucket[15m]))) > 30',
    '15m',
    'Changes to Services take longer than 30 s to appear in answers',
    'The API server is slow or unreachable. Until it recovers, answers stay unchanged.',
  ),
];

/** Rule groups in Prometheus format. */
export const serverGroups: readonly { readonly name: string; readonly rules: readonly Rule[] }[] = [
  ...promises.map((promise) => ({ name: `dns-${promise.name}`, rules: promiseRules(promise) })),
  { name: 'dns-others', rules: otherAlerts },
];
