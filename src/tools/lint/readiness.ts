/**
 * Computes when a DNS pod stops being `serving`. Only then does kube-proxy remove the conntrack entries of a
 * terminating pod (Kubernetes 1.36, pkg/proxy/conntrack). Clients that reuse a port therefore reach the old pod until
 * its readiness probe has failed. If that happens after `lameduck`, their queries are lost.
 */
import type { JsonObject } from '../../server/base/json-object.ts';

/** The settings of a readiness probe, or null if not given. */
export interface ReadinessTimes {
  readonly periodSeconds: number | null;
  readonly failureThreshold: number | null;
}

/** Defaults of Kubernetes probes. */
const KUBERNETES_PERIOD_SECONDS = 10;
const KUBERNETES_FAILURE_THRESHOLD = 3;
/** Seconds from the probe's failure until nodes have removed the tracked connections. */
const PROPAGATION_SECONDS = 1;

/** Reads the settings from a probe in a container or in Helm values. */
export function readinessTimes(probe: JsonObject): ReadinessTimes {
  const given = (key: string): number | null => {
    const value = probe[key];
    return typeof value === 'number' && value > 0 ? value : null;
  };
  return {
    periodSeconds: given('periodSeconds'),
    failureThreshold: given('failureThreshold'),
  };
}

/** The longest time from SIGTERM until the probe has failed, in seconds. */
export function unreadySeconds(
  { periodSeconds, failureThreshold }: ReadinessTimes,
  usual: ReadinessTimes = { periodSeconds: null, failureThreshold: null },
): number {
  const period = periodSeconds ?? usual.periodSeconds ?? KUBERNETES_PERIOD_SECONDS;
  return period * (failureThreshold ?? usual.failureThreshold ?? KUBERNETES_FAILURE_THRESHOLD);
}

/** True if nodes remove the tracked connections before the server stops answering. */
export function failsWithin(seconds: number, lameduckMs: number): boolean {
  return seconds + PROPAGATION_SECONDS <= lameduckMs / 1000;
}

/** The settings that fail within lameduck, or null if it is too short for any. */
export function quickReadiness(lameduckMs: number): {
  readonly periodSeconds: number;
  readonly failureThreshold: number;
} | null {
  const periodSeconds = Math.min(5, Math.floor((lameduckMs / 1000 - PROPAGATION_SECONDS) / 2));
  return periodSeconds < 1 ? null : { periodSeconds, failureThreshold: 1 };
}

/** The command that applies these settings to a workload's container. */
export function readinessPatch(
  workload: { readonly kind: string; readonly namespace: string; readonly name: string },
  container: string,
  lameduckMs: number,
): string | null {
  const readinessProbe = quickReadiness(lameduckMs);
  if (readinessProbe === null) return null;
  const spec = { template: { spec: { containers: [{ name: container, readinessProbe }] } } };
  const namespace = workload.namespace === '' ? '' : ` -n ${workload.namespace}`;
  // Contains spaces, so that a narrow terminal breaks the line inside quotes, where that is harmless.
  const patch = JSON.stringify({ spec }).replaceAll(/([:,])(?=["{[\d])/g, '$1 ');
  return `kubectl${namespace} patch ${workload.kind.toLowerCase()} ${workload.name} -p '${patch}'`;
}
