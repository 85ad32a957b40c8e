/** The two kinds of workers: in a thread, and on the thread that asks for one. */
import type { Worker } from 'node:worker_threads';
import { builtins } from '../../base/builtins.ts';
import { makeNotes, withoutMemory, type HeldByThread } from '../../linux/held-by-thread.ts';
import { closeGate, makeGate, type TerminationGate } from '../../linux/termination-gate.ts';
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
 * A thread that turns ends within a turn, and one that runs JavaScript can be made to end: one that has done neither after so
 * long is in a call that does not return.
 */
const END_MS = 1000;
/** One that is still loading ends when it has loaded, which takes its time on a busy machine. */
const LOADING_MS = 3000;
/** How often a thread that cannot be terminated yet is looked at. */
const LOOK_MS = 10;

/** What the thread of a worker left behind when it died, by the worker's id: the next thread goes on with its sockets. */
const leftBehind = new Map<number, HeldByThread>();

let ticketSecret: Uint8Array | null = null;

/** A worker in a thread of its own. */
export function threadPort(
  start: Omit<WorkerStart, 'held' | 'gate' | 'pulse' | 'ticketSecret'>,
): WorkerPort {
  // What a lost worker has left stays for the next try where the system gives no thread.
  const { worker, begin } = threadOrWhy();
  const held = leftBehind.get(start.id) ?? makeNotes();
  leftBehind.delete(start.id);
  // A client that has been served by one worker resumes its TLS session at any other, and at the one that takes its place.
  ticketSecret ??= builtins.crypto().randomBytes(32);
  const pulse = makePulse();
  const gate = makeGate();
  begin({ ...start, held, gate, pulse, ticketSecret } satisfies WorkerStart);
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
 * Terminates a thread as soon as it can be. One that is amid a call which cannot bear it (because the machine gives it no time)
 * is waited for as long as that takes: to terminate it then would end the whole process.
 */
async function terminate(worker: Worker, gate: TerminationGate): Promise<void> {
  while (!closeGate(gate)) await sleep(systemClock, LOOK_MS);
  await worker.terminate();
}

/**
 * A worker on this thread, for servers in memory: the same messages, cloned as between threads, each in a turn of its own.
 * @param make is given the way back to the main side
 */
export function inlinePort(make: (send: (message: FromWorker) => void) => DataPlane): WorkerPort {
  const handlers: ((message: FromWorker) => void)[] = [];
  const plane = make((message) => {
    // Registrations hold shared memory and must come at once; the rest waits its turn, as between threads.
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

/** @throws Problem if the system gives no thread */
function threadOrWhy(): BlankThread {
  try {
    return blankThread();
  } catch (error) {
    throw new Problem({
      code: 'no-thread',
      text: `no thread can be started: ${(error as Error).message}`,
      hint: 'The container, or the user, has as many threads and processes as it may.',
      remedy: 'Raise the limit: podPidsLimit of the kubelet, --pids-limit, TasksMax=, ulimit -u.',
      cause: error,
    });
  }
}
