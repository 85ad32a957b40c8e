/** Metrics for signing zone files. */
import type { Counter, Gauge, Registry } from '../../metrics/registry.ts';

export interface SignMetrics {
  readonly signed: { with(zone: string): Counter };
  readonly failures: { with(zone: string): Counter };
  readonly expiration: { with(zone: string): Gauge };
}

export function signMetrics(metrics: Registry): SignMetrics {
  return {
    signed: metrics.counter('ndots_sign_zones_total', 'Number of times a zone was signed.', [
      'zone',
    ]),
    failures: metrics.counter(
      'ndots_sign_failures_total',
      'Number of failed attempts to sign a zone; the previous signed file stays in use.',
      ['zone'],
    ),
    expiration: metrics.gauge(
      'ndots_sign_expiration_timestamp_seconds',
      "Expiry of a zone's signatures, in seconds since 1970.",
      ['zone'],
      'last',
    ),
  };
}
