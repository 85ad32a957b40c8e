/**
 * Computes when a DNS pod stops being `serving`. kube-proxy removes the conntrack entries of a
 * terminating pod only then (Kubernetes 1.36, pkg/proxy/conntrack). So clients that reuse a port
 * reach the old pod until its readiness probe has failed. If that is later than `lameduck`, their
 * queries are lost.
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
/** From the failure of the probe until nodes have removed the tracked connections, in seconds. */
const PROPAGATION_SECONDS = 1;

/** Reads the settings from a probe of a container or of Helm values. */
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

/** The settings that fail within lameduck, or null if lameduck is too short for any. */
export function quickReadiness(lameduckMs: number): {
  readonly periodSeconds: number;
  readonly failureThreshold: number;
} | null {
  const periodSeconds = Math.min(5, Math.floor((lameduckMs / 1000 - PROPAGATION_SECONDS) / 2));
  return periodSeconds < 1 ? null : { periodSeconds, failureThreshold: 1 };
}

/** The command that gives these settings to the container of a workload. */
export function readinessPatch(
  workload: { readonly kind: string; readonly namespace: string; readonly name: string },
  container: string,
  lameduckMs: number,
): string | null {
  const readinessProbe = quickReadiness(lameduckMs);
  if (readinessProbe === null) return null;
  const spec = { template: { spec: { containers: [{ name: container, readinessProbe }] } } };
  const namespace = workload.namespace === '' ? '' : ` -n ${workload.namespace}`;
  // With spaces, so that a narrow terminal breaks the line within quotes, where it does no harm.
  const patch = JSON.stringify({ spec }).replaceAll(/([:,])(?=["{[\d])/g, '$1 ');
  return `kubectl${namespace} patch ${workload.kind.toLowerCase()} ${workload.name} -p '${patch}'`;
}
