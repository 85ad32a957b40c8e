/** Follows the output of a container that was just added to a pod, and waits for the container to end. */
import { printSpan } from '../../server/base/elapsed.ts';
import { sleep, type Clock } from '../../server/base/clock.ts';
import { child, children, text, type JsonObject } from '../../server/base/json-object.ts';
import { Problem } from '../../server/base/problem.ts';
import type { ApiClient } from '../../server/kube/api/client.ts';
import { ApiFailure } from '../../server/kube/api/failure.ts';
import { getObject } from '../../server/kube/api/one-object.ts';

/** The container, and the receiver of its output. */
export interface FollowedContainer {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly namespace: string;
  readonly pod: string;
  readonly container: { readonly name: string; readonly image: string };
  /** The list in the pod's status that includes the container. */
  readonly statuses: 'containerStatuses' | 'ephemeralContainerStatuses';
  /** Maximum wait for its start, in milliseconds. */
  readonly startMs: number;
  /** Receives the bytes of both output streams, which the kubelet does not separate. */
  readonly out: (bytes: Uint8Array) => void;
  readonly signal: AbortSignal;
}

/** Timeout for requests, in milliseconds. */
export const REQUEST_MS = 10_000;
const LOOK_EVERY_MS = 300;
/** Maximum pause in the output. It is long because a program may be silent for a while. */
const SILENCE_MS = 24 * 3600_000;

/** Reasons for a container to be waiting that will not resolve themselves. */
const hopeless =
  /^(?:ErrImageNeverPull|InvalidImageName|ImageInspectError|ErrImagePull|ImagePullBackOff|CreateContainerConfigError|CreateContainerError|RunContainerError)$/;

/**
 * Follows the container until it ends.
 * @returns its exit code
 * @throws Problem, ApiFailure
 */
export async function followContainer(run: FollowedContainer): Promise<number> {
  let state = await started(run);
  for (let first = true; ; first = false) {
    await follow(run, first);
    // Either the log ended a moment before the kubelet reports the container's end, or something in between cut it off.
    const end = run.clock.now() + REQUEST_MS;
    while (!('terminated' in state) && run.clock.now() < end) {
      await sleep(run.clock, LOOK_EVERY_MS, run.signal);
      state = await stateOf(run);
    }
    const { exitCode } = child(state, 'terminated');
    if (typeof exitCode === 'number') return exitCode;
    run.signal.throwIfAborted();
  }
}

/**
 * Waits until the container runs or has ended.
 * @returns its state
 */
async function started(run: FollowedContainer): Promise<JsonObject> {
  const { clock, namespace, pod, container, signal, startMs } = run;
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
          : `kubectl -n ${namespace} events --for pod/${pod} shows why.`,
      });
    }
    await sleep(clock, LOOK_EVERY_MS, signal);
    signal.throwIfAborted();
  }
}

/** Returns its state; `{}` if nothing is known yet. */
async function stateOf({
  client,
  namespace,
  pod,
  container,
  statuses,
  signal,
}: FollowedContainer): Promise<JsonObject> {
  const path = `/api/v1/namespaces/${namespace}/pods/${pod}`;
  const request = { path, task: `get pods ${pod}`, waitMs: REQUEST_MS, signal };
  const found = await getObject(client, request);
  const own = children(child(found, 'status'), statuses).find(
    (status) => text(status, 'name') === container.name,
  );
  return own === undefined ? {} : child(own, 'state');
}

/** Passes on its output until the log ends. */
async function follow(
  { client, namespace, pod, container, out, signal }: FollowedContainer,
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
    // If a proxy or load balancer cut the connection, the container's state shows whether the log continues.
    if (!(error instanceof ApiFailure) || error.kind !== 'network') throw error;
  }
}
