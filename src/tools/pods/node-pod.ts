/** Runs a program on a node, in a pod that has the node's network and processes and is deleted at the end. */
import type { Timer } from '../../server/base/clock.ts';
import { createObject, deleteObject } from '../../server/kube/api/one-object.ts';
import { followContainer, REQUEST_MS, type FollowedContainer } from './followed-container.ts';

/** The node, the program, and a callback for its output. */
export interface NodeRun extends Omit<FollowedContainer, 'statuses' | 'container'> {
  readonly node: string;
  readonly image: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Milliseconds after which the kubelet ends the pod, even if the client is gone. */
  readonly limitMs: number;
  /** Ends the program as SIGTERM would. Its last output is still followed. */
  readonly signal: AbortSignal;
}

/** The same capabilities as in deploy/capture, whose page gives the reason for each. */
const capabilities = [
  ...['NET_RAW', 'SYS_ADMIN', 'SYS_PTRACE', 'DAC_READ_SEARCH', 'NET_ADMIN', 'SYS_NICE'],
];
/** Seconds between SIGTERM and SIGKILL. */
const GRACE_SECONDS = 5;
const CONTAINER = 'ndots';

/**
 * Runs the program to completion, and then deletes the pod.
 * @returns its exit code, or null if the signal ended it
 * @throws Problem, ApiFailure
 */
export async function runOnNode(run: NodeRun): Promise<number | null> {
  const { client, clock, namespace, pod, image, signal } = run;
  const pods = `/api/v1/namespaces/${namespace}/pods`;
  const request = { task: 'create pods', waitMs: REQUEST_MS, signal };
  await createObject(client, { path: pods, ...request }, podFor(run));
  // The signal must not stop these.
  const cut = new AbortController();
  const remove = (): Promise<void> =>
    deleteObject(client, {
      path: `${pods}/${pod}`,
      task: `delete pods ${pod}`,
      waitMs: REQUEST_MS,
      signal: new AbortController().signal,
    });
  let cutLater: Timer | null = null;
  const end = (): void => {
    cutLater = clock.after(2 * GRACE_SECONDS * 1000, () => cut.abort());
    remove().catch(() => cut.abort());
  };
  signal.addEventListener('abort', end, { once: true });
  try {
    if (signal.aborted) return null;
    const code = await followContainer({
      ...run,
      container: { name: CONTAINER, image },
      statuses: 'containerStatuses',
      signal: cut.signal,
    });
    // A program that handles SIGTERM may report success before the pod is gone.
    return signal.aborted ? null : code;
  } catch (error) {
    // The pod may be gone before its status can be read.
    if (signal.aborted) return null;
    throw error;
  } finally {
    signal.removeEventListener('abort', end);
    (cutLater as Timer | null)?.cancel();
    await remove();
  }
}

function podFor({ namespace, pod, node, image, args, env, limitMs }: NodeRun): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: pod, namespace, labels: { 'app.kubernetes.io/name': 'ndots-node' } },
    spec: {
      nodeName: node,
      restartPolicy: 'Never',
      activeDeadlineSeconds: Math.ceil(limitMs / 1000),
      terminationGracePeriodSeconds: GRACE_SECONDS,
      hostNetwork: true,
      hostPID: true,
      dnsPolicy: 'Default',
      automountServiceAccountToken: false,
      tolerations: [{ operator: 'Exists' }],
      containers: [
        {
          name: CONTAINER,
          image,
          args,
          env: Object.entries(env).map(([name, value]) => ({ name, value })),
          securityContext: nodeSecurityContext,
          volumeMounts: [{ name: 'cgroups', mountPath: '/sys/fs/cgroup', readOnly: true }],
        },
      ],
      volumes: [{ name: 'cgroups', hostPath: { path: '/sys/fs/cgroup', type: 'Directory' } }],
    },
  };
}

/** As in deploy/capture, but with the runtime's seccomp profile, because the node may not have any other. */
export const nodeSecurityContext: object = {
  runAsUser: 0,
  runAsNonRoot: false,
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'], add: capabilities },
  seccompProfile: { type: 'RuntimeDefault' },
};
