/** The pod of deploy/capture, and the exchanges in a capture's output. */
import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import type { ExchangeDocument } from '../../src/faces/cli/capture/capture-rows.ts';
import type { NodeCluster, PodState } from './node-cluster.ts';
import { until } from './progress.ts';

export const CAPTURE_MANIFESTS: string = resolve(import.meta.dirname, '../../deploy/capture');
export const CAPTURE_NAMESPACE = 'ndots-capture';
export const CAPTURE_DAEMON_SET = 'daemonset/ndots-capture';
export const CAPTURE_SELECTOR = 'app=ndots-capture';

/** The DaemonSet's pod. During a rollout, the set's name may also refer to the terminating pod. */
export async function capturePod(node: NodeCluster): Promise<PodState> {
  const [pod] = await node.pods(CAPTURE_NAMESPACE, CAPTURE_SELECTOR);
  assert.ok(pod !== undefined, 'the DaemonSet has no pod');
  return pod;
}

export const captureLog = async (node: NodeCluster): Promise<string> =>
  node.kubectl(
    '-n',
    CAPTURE_NAMESPACE,
    'logs',
    (await capturePod(node)).metadata.name,
    '--tail=-1',
  );

/** Waits until the pod captures, which is later than its container starts. */
export const captureStarted = (node: NodeCluster, lookUp: () => Promise<unknown>): Promise<void> =>
  until('the capture to see lookups', async () => {
    await lookUp();
    const text = await captureLog(node);
    return exchangesOf('', text).length > 0 ? null : text.slice(-500);
  });

/**
 * Changes the DaemonSet, waits until a container of the changed pod has started, runs the check, and restores the
 * DaemonSet.
 * @param patch operations of a JSON patch, and those that undo it
 */
export async function whileChanged(
  node: NodeCluster,
  { patch, undo }: { readonly patch: readonly object[]; readonly undo: readonly object[] },
  check: () => Promise<void>,
): Promise<void> {
  const change = (operations: readonly object[]): Promise<string> =>
    node.kubectl(
      ...['-n', CAPTURE_NAMESPACE, 'patch', CAPTURE_DAEMON_SET, '--type=json', '-p'],
      JSON.stringify(operations),
    );
  const before = await capturePod(node);
  await change(patch);
  try {
    await until('the changed pod to run', async () => {
      const [pod] = await node.pods(CAPTURE_NAMESPACE, CAPTURE_SELECTOR);
      const [status] = pod?.status.containerStatuses ?? [];
      const started = status?.state['running'] ?? status?.state['terminated'];
      return pod?.metadata.uid !== before.metadata.uid && started ? null : 'not yet';
    });
    await check();
  } finally {
    await change(undo);
    await node.rolledOut(CAPTURE_NAMESPACE, CAPTURE_DAEMON_SET);
  }
}

/** The IDs of the pods' first containers. */
export async function containersOf(
  node: NodeCluster,
  namespace: string,
  selector: string,
): Promise<readonly string[]> {
  const pods = await node.pods(namespace, selector);
  return pods.map(({ status }) =>
    status.containerStatuses![0]!.containerID!.replace('containerd://', ''),
  );
}

/** The exchanges in a capture's output whose names start with this. */
export const exchangesOf = (label: string, output: string): readonly ExchangeDocument[] =>
  output
    .split('\n')
    .filter((line) => line.startsWith('{"kind":"Exchange"'))
    .map((line) => JSON.parse(line) as ExchangeDocument)
    .filter(({ question }) => question.name.startsWith(label));
