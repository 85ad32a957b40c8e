/** The two kinds of worker, one in a separate thread and one on the calling thread. */
import type { Worker } from 'node:worker_threads';
import { builtins } from '../../base/builtins.ts';
import { hashKey } from '../../base/hash.ts';
import { makeNotes, withoutMemory, type HeldByThread } from '../../runtime/held-by-thread.ts';
import { closeGate, makeGate, type TerminationGate } from '../../runtime/termination-gate.ts';
import type { DataPlane } from '../worker/data-plane.ts';
import type { EndThread, FromWorker, ToWorker } from '../contract/protocol.ts';
import { hasLoaded, makePulse } from '../contract/pulse.ts';
import { sleep, systemClock } from '../../base/clock.ts';
import { Problem } from '../../base/problem.ts';
import { blankThread, type BlankThread } from './spare-thread.ts';
import { within } from './time-limit.ts';
import type { WorkerPort } from './worker-link.ts';
import type { WorkerStart } from '../worker/worker-thread.ts';

/**
 * Maximum number of milliseconds for a thread to end. An idle thread ends at once, and one that is running JavaScript
 * can be terminated. After this time, it must be in a call that does not return.
 */
const END_MS = 1000;
/**
 * Milliseconds allowed for a thread that is still loading, because it does not end until it has loaded. That takes time
 * on a busy machine.
 */
const LOADING_MS = 3000;
/** Milliseconds between checks on a thread that cannot be terminated yet. */
const LOOK_MS = 10;

/** The sockets of dead workers, by worker id, which the replacement thread takes over. */
const leftBehind = new Map<number, HeldByThread>();

let ticketSecret: Uint8Array | null = null;

/**
 * Creates a worker in a separate thread.
 * @param heapMb maximum MiB of JavaScript objects
 */
export function threadPort(
  start: Omit<WorkerStart, 'held' | 'gate' | 'pulse' | 'ticketSecret' | 'hashKey'>,
  heapMb: number,
): WorkerPort {
  // If the system cannot start a thread, the lost worker's sockets wait for the next attempt.
  const { worker, begin } = threadOrWhy(heapMb);
  const held = leftBehind.get(start.id) ?? makeNotes();
  leftBehind.delete(start.id);
  // A client can resume its TLS session at any worker, including a replacement.
  ticketSecret ??= builtins.crypto().randomBytes(32);
  const pulse = makePulse();
  const gate = makeGate();
  begin({ ...start, held, gate, pulse, ticketSecret, hashKey: hashKey() } satisfies WorkerStart);
  const { promise: exited, resolve: exit } = Promise.withResolvers<void>();
  let failure: Error | null = null;
  let ending = false;
  worker.on('exit', () => exit());
  worker.on('error', (error: Error) => {
    failure = error;
  });
  return {
    pulse,
    times: () => {
      const { active, idle } = worker.performance.eventLoopUtilization();
      return { active, idle };
    },
    send: (message, transfer) => worker.postMessage(message, [...(transfer ?? [])]),
    onMessage: (handler) => worker.on('message', handler),
    onExit: (handler) =>
      worker.on('exit', (code) => {
        if (ending) return;
        leftBehind.set(start.id, held);
        handler(failure ?? new Error(`the thread ended with code ${code}`));
      }),
    async end(hangs) {
      ending = true;
      worker.postMessage({ kind: 'end' } satisfies EndThread);
      const loads = !hasLoaded(pulse);
      const waitMs = loads ? LOADING_MS : hangs ? 0 : END_MS;
      let ended = await within(systemClock, waitMs, exited);
      if (!ended && !loads) ended = await within(systemClock, END_MS, terminate(worker, gate));
      leftBehind.set(start.id, ended ? held : withoutMemory(held));
      return ended;
    },
    ended: exited,
  };
}

/**
 * Terminates a thread as soon as it is safe. Some calls must not be interrupted, and may take a long time on a busy
 * machine. This waits until the thread has left such calls, because terminating it during one would end the whole
 * process.
 */
async function terminate(worker: Worker, gate: TerminationGate): Promise<void> {
  while (!closeGate(gate)) await sleep(systemClock, LOOK_MS);
  await worker.terminate();
}

/**
 * Creates a worker on this thread, for in-memory servers. Its messages are the same, cloned as they are between
 * threads, and each is delivered in a separate turn.
 * @param make receives the function that sends to the main side
 */
export function inlinePort(make: (send: (message: FromWorker) => void) => DataPlane): WorkerPort {
  const handlers: ((message: FromWorker) => void)[] = [];
  const plane = make((message) => {
    // Registrations include shared memory and must arrive at once. All other messages arrive in a later turn, as
    // between threads.
    if (message.kind === 'register') for (const handler of handlers) handler(message);
    else queueMicrotask(() => handlers.forEach((handler) => handler(structuredClone(message))));
  });
  return {
    pulse: null,
    times: () => null,
    send: (message: ToWorker) => {
      const copy = structuredClone(message);
      queueMicrotask(() => void plane.handle(copy));
    },
    onMessage: (handler) => {
      handlers.push(handler);
    },
    onExit: () => undefined,
    end: () => Promise.resolve(true),
    ended: Promise.resolve(),
  };
}

/** @throws Problem if the system cannot start a thread */
function threadOrWhy(heapMb: number): BlankThread {
  try {
    return blankThread(heapMb);
  } catch (error) {
    throw new Problem({
      code: 'no-thread',
      text: `no thread can be started: ${(error as Error).message}`,
      hint: 'The container or the user has reached its limit on threads and processes.',
      remedy: 'Raise the limit: the kubelet’s podPidsLimit, --pids-limit, TasksMax=, or ulimit -u.',
      cause: error,
    });
  }
}
