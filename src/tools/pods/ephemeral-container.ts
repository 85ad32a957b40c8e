/**
 * Runs a program in an existing pod as an ephemeral container, with the pod's network and resolv.conf. Its output is
 * followed until it ends.
 */
import { sendJson } from '../../server/kube/api/get-json.ts';
import { followContainer, REQUEST_MS, type FollowedContainer } from './followed-container.ts';

export interface EphemeralContainer {
  readonly name: string;
  readonly image: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The container whose processes it sees; null: none. */
  readonly target: string | null;
  /** Capabilities such as NET_RAW, for which the program runs as root. If empty, it runs with all restrictions. */
  readonly capabilities: readonly string[];
}

/** The pod in which to run it, and a callback for its output. */
export interface EphemeralRun extends Omit<FollowedContainer, 'statuses'> {
  readonly container: EphemeralContainer;
}

/**
 * Runs the program to completion.
 * @returns its exit code
 * @throws Problem, ApiFailure
 */
export async function runInPod(run: EphemeralRun): Promise<number> {
  await add(run);
  return followContainer({ ...run, statuses: 'ephemeralContainerStatuses' });
}

async function add({ client, namespace, pod, container, signal }: EphemeralRun): Promise<void> {
  const { name, image, args, env, target, capabilities } = container;
  const spec = {
    name,
    image,
    args,
    env: Object.entries(env).map(([key, value]) => ({ name: key, value })),
    ...(target !== null && { targetContainerName: target }),
    terminationMessagePolicy: 'File',
    securityContext: securityContextFor(capabilities),
  };
  await sendJson(client, {
    path: `/api/v1/namespaces/${namespace}/pods/${pod}/ephemeralcontainers`,
    change: {
      method: 'PATCH',
      contentType: 'application/strategic-merge-patch+json',
      body: JSON.stringify({ spec: { ephemeralContainers: [spec] } }),
    },
    task: `patch pods/ephemeralcontainers ${pod}`,
    waitMs: REQUEST_MS,
    signal,
  });
}

/** This meets the Pod Security level "restricted" unless capabilities are requested. */
export function securityContextFor(capabilities: readonly string[]): object {
  const asRoot = capabilities.length > 0;
  return {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'], ...(asRoot && { add: capabilities }) },
    ...(asRoot
      ? { runAsUser: 0, runAsNonRoot: false }
      : { runAsUser: 65_532, runAsGroup: 65_532, runAsNonRoot: true }),
    seccompProfile: { type: 'RuntimeDefault' },
  };
}
