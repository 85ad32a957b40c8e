/** Restarts DNS pods, either by deleting one or by replacing a Deployment's pods one by one. */
import type { LabCluster } from './cluster.ts';
import { forgetConnections } from './conntrack.ts';
import { withEndpoints } from './endpoints.ts';
import { DNS_SERVICE } from './cluster-plan.ts';
import { pause } from './pause.ts';

/** A cluster's reaction times in milliseconds. */
export interface RollTimes {
  /** The time from a pod's end or readiness until all nodes have new rules. */
  readonly propagationMs: number;
  /** The time from a pod's first reply until its readiness probe succeeds. */
  readonly readyMs: number;
  /** The time from SIGTERM to SIGKILL (terminationGracePeriodSeconds). */
  readonly graceMs: number;
}

/** Deletes a DNS pod, which gets SIGTERM before nodes get new rules. Resolves when it has exited. */
export async function deleteDnsPod(
  lab: LabCluster,
  pod: string,
  { propagationMs, graceMs }: Pick<RollTimes, 'propagationMs' | 'graceMs'>,
): Promise<void> {
  const { addresses } = lab.pod(pod);
  lab.signalDns(pod, 'SIGTERM');
  const killed = AbortSignal.timeout(graceMs);
  const kill = (): void => lab.signalDns(pod, 'SIGKILL');
  killed.addEventListener('abort', kill);
  await pause(propagationMs);
  const left = lab.endpointsOf(DNS_SERVICE).filter((address) => !addresses.includes(address));
  lab.change({ slices: withEndpoints(lab.objects.slices, DNS_SERVICE, left) });
  // kube-proxy removes these for UDP services, because packets on old connections would still be sent to the pod.
  const [own = ''] = addresses;
  for (const node of lab.nodes.keys())
    forgetConnections(lab, node, lab.serviceAddress(DNS_SERVICE), own);
  await lab.dnsEnded(pod);
  killed.removeEventListener('abort', kill);
  await lab.stopDns(pod);
}

/** Starts a replacement. When it is ready, nodes get new rules after a while. */
async function replaceDnsPod(
  lab: LabCluster,
  pod: string,
  corefile: string,
  { propagationMs, readyMs }: Pick<RollTimes, 'propagationMs' | 'readyMs'>,
): Promise<void> {
  const all = lab.objects.slices;
  await lab.startDns(pod, corefile);
  await pause(readyMs + propagationMs);
  const { addresses } = lab.pod(pod);
  const [own = ''] = addresses.filter((address) => !address.includes(':'));
  const present = lab.endpointsOf(DNS_SERVICE);
  lab.change({ slices: withEndpoints(lab.objects.slices, DNS_SERVICE, [...present, own], all) });
}

/** Deletes and replaces all DNS pods in turn, like a Deployment with maxUnavailable: 1. */
export async function rollDns(lab: LabCluster, corefile: string, times: RollTimes): Promise<void> {
  for (const { namespace, pod } of lab.dnsPods) {
    const name = `${namespace}/${pod}`;
    await deleteDnsPod(lab, name, times);
    await replaceDnsPod(lab, name, corefile, times);
  }
}
