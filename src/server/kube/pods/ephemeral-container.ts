/**
 * Runs a program in an existing pod: as an ephemeral container, in the pod's network and with its
 * resolv.conf. Its output is followed until it ends.
 */
import { printSpan } from '../../base/elapsed.ts';
import { sleep, type Clock } from '../../base/clock.ts';
import { child, children, text, type JsonObject } from '../../base/json-object.ts';
import { Problem } from '../../base/problem.ts';
import type { ApiClient } from '../api/client.ts';
import { ApiFailure } from '../api/failure.ts';
import { sendJson } from '../api/get-json.ts';
import { getObject } from '../api/one-object.ts';

/** The program to run. */
export interface EphemeralContainer {
  readonly name: string;
  readonly image: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The container whose processes it sees; null: none. */
  readonly target: string | null;
  /**
   * Capabilities such as NET_RAW, for which it runs as root; empty: it runs with all restrictions.
   */
  readonly capabilities: readonly string[];
}

/** The pod to run it in, and the receiver of its output. */
export interface EphemeralRun {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly namespace: string;
  readonly pod: string;
  readonly container: EphemeralContainer;
  /** The longest wait for its start, in milliseconds. */
  readonly startMs: number;
  /** Receives the bytes of both output streams; the kubelet does not separate them. */
  readonly out: (bytes: Uint8Array) => void;
  readonly signal: AbortSignal;
}

/** Time limit for requests, in milliseconds. */
const WAIT_MS = 10_000;
const LOOK_EVERY_MS = 300;
/** The longest pause in the output; a program may be silent for long. */
const SILENCE_MS = 24 * 3600_000;

/** Reasons of a waiting container that do not go away by waiting. */
const hopeless =
  /^(?:ErrImageNeverPull|InvalidImageName|ImageInspectError|ErrImagePull|ImagePullBackOff|CreateContainerConfigError|CreateContainerError|RunContainerError)$/;

/** Runs the program to its end. @returns its exit code @throws Problem, ApiFailure */
export async function runInPod(run: EphemeralRun): Promise<number> {
  await add(run);
  let state = await started(run);
  for (let first = true; ; first = false) {
    await follow(run, first);
    // The log ends a moment before the kubelet reports the container's end; or something in between
    // cut it off.
    const end = run.clock.now() + WAIT_MS;
    while (!('terminated' in state) && run.clock.now() < end) {
      await sleep(run.clock, LOOK_EVERY_MS, run.signal);
      state = await stateOf(run);
    }
    const { exitCode } = child(state, 'terminated');
    if (typeof exitCode === 'number') return exitCode;
    run.signal.throwIfAborted();
  }
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
    waitMs: WAIT_MS,
    signal,
  });
}

/** The requirements of the Pod Security level "restricted", unless capabilities are wanted. */
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

/** Waits until it runs or has ended. @returns its state */
async function started(run: EphemeralRun): Promise<JsonObject> {
  const { clock, pod, container, signal, startMs } = run;
  const end = clock.now() + startMs;
  for (;;) {
    const state = await stateOf(run);
    if ('running' in state || 'terminated' in state) return state;
    const { reason = '', message = '' } = child(state, 'waiting') as Record<string, string>;
    if (hopeless.test(reason) || clock.now() > end) {
      throw new Problem({
        code: 'not-started',
        text:
          reason === ''
            ? `the kubelet has not started ${container.image} in pod ${pod} in ${printSpan(startMs)}`
            : `${container.image} does not start in pod ${pod}: ${reason}`,
        hint: message === '' ? undefined : message,
        remedy: /Image/.test(reason)
          ? 'Check that the node can pull the image, or use another one: --image.'
          : `kubectl describe pod ${pod} has its events.`,
      });
    }
    await sleep(clock, LOOK_EVERY_MS, signal);
    signal.throwIfAborted();
  }
}

/** Its state; `{}`: nothing is known yet. */
async function stateOf({
  client,
  namespace,
  pod,
  container,
  signal,
}: EphemeralRun): Promise<JsonObject> {
  const path = `/api/v1/namespaces/${namespace}/pods/${pod}`;
  const request = { path, task: `get pods ${pod}`, waitMs: WAIT_MS, signal };
  const found = await getObject(client, request);
  const statuses = children(child(found, 'status'), 'ephemeralContainerStatuses');
  const own = statuses.find((status) => text(status, 'name') === container.name);
  return own === undefined ? {} : child(own, 'state');
}

/** Passes on its output until the log ends. */
async function follow(
  { client, namespace, pod, container, out, signal }: EphemeralRun,
  whole: boolean,
): Promise<void> {
  try {
    await client.stream({
      path: `/api/v1/namespaces/${namespace}/pods/${pod}/log`,
      query: { container: container.name, follow: 'true', ...(!whole && { tailLines: '0' }) },
      into: { push: out },
      task: `get pods/log ${pod}`,
      answerMs: SILENCE_MS,
      silenceMs: () => SILENCE_MS,
      watch: true,
      signal,
    });
  } catch (error) {
    // If a proxy or load balancer cut the connection, the container's state tells whether the log
    // goes on.
    if (!(error instanceof ApiFailure) || error.kind !== 'network') throw error;
  }
}
