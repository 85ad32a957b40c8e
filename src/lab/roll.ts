/** DNS pods that end and come again: one that is deleted, and a Deployment that is rolled, pod by pod. */
import type { LabCluster } from './cluster.ts';
import { forgetConnections } from './conntrack.ts';
import { withEndpoints } from './endpoints.ts';
import { DNS_SERVICE } from './plan.ts';
import { pause } from './pause.ts';

/** How long things take in the cluster, milliseconds. */
export interface RollTimes {
  /** From the end of a pod, or from its readiness, until all nodes have rules that say so. */
  readonly propagationMs: number;
  /** From a pod that answers until its readiness probe has seen it. */
  readonly readyMs: number;
  /** After SIGTERM: what has not ended by then is killed (terminationGracePeriodSeconds). */
  readonly graceMs: number;
}

/** A DNS pod is deleted: it gets SIGTERM, and later the nodes hear of it. It has ended when this is over. */
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
  // Kube-proxy does that for services over UDP: old connections would go on to the pod.
  const [own = ''] = addresses;
  for (const node of lab.nodes.keys())
    forgetConnections(lab, node, lab.serviceAddress(DNS_SERVICE), own);
  await lab.dnsEnded(pod);
  killed.removeEventListener('abort', kill);
  await lab.stopDns(pod);
}

/** Another pod takes its place: it is started, becomes ready, and later the nodes hear of it. */
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

/** Every DNS pod in turn is deleted and replaced, as a Deployment does it with maxUnavailable: 1. */
export async function rollDns(lab: LabCluster, corefile: string, times: RollTimes): Promise<void> {
  for (const { namespace, pod } of lab.dnsPods) {
    const name = `${namespace}/${pod}`;
    await deleteDnsPod(lab, name, times);
    await replaceDnsPod(lab, name, corefile, times);
  }
}
