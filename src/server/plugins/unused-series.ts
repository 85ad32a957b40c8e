/** Metrics for plugins that are not in use. */
import { slimBuckets } from '../metrics/buckets.ts';
import type { Registry } from '../metrics/registry.ts';

const counters: Readonly<Record<string, string>> = {
  coredns_forward_healthcheck_broken_total:
    'Counter of the number of complete failures of the healthchecks.',
  coredns_forward_max_concurrent_rejects_total:
    'Counter of the number of queries rejected because the concurrent queries were at maximum.',
  coredns_health_request_failures_total: 'The number of times the health check failed.',
  coredns_local_localhost_requests_total: 'Counter of localhost.<domain> requests.',
  coredns_reload_failed_total: 'Counter of the number of failed reload attempts.',
};

/**
 * Shows CoreDNS's series for plugins that no Corefile names, without labels and at zero, because dashboards and alerts
 * expect them. When such a plugin is used, it registers the same names with the same type.
 */
export function showUnused(registry: Registry): void {
  for (const [name, help] of Object.entries(counters)) registry.counter(name, help);
  registry
    .gauge(
      'coredns_hosts_reload_timestamp_seconds',
      'The timestamp of the last reload of hosts file.',
      [],
      'last',
    )
    .with();
  registry
    .histogram(
      'coredns_health_request_duration_seconds',
      'Histogram of the time (in seconds) each request took.',
      [],
      slimBuckets,
    )
    .with();
}
