/**
 * Starts the threads of workers. The first one starts before the rest of the program is loaded, because a thread takes
 * as long to start as the main thread takes to read the Corefile.
 */
import { MessageChannel, Worker } from 'node:worker_threads';

/** Heap limit of a worker: an index of 100 000 pods and a full cache take a small part of it. */
const HEAP_MB = 256;
/**
 * Size of a worker's young generation. Answers leave no garbage and forwarded queries little; this size costs a
 * forwarded query nothing (half of it costs 40 %), and saves memory.
 */
const YOUNG_MB = 4;

/** A started thread without a task. */
export interface BlankThread {
  readonly worker: Worker;
  /** Gives the thread its task: a WorkerStart. To be called once. */
  readonly begin: (start: object) => void;
}

let spare: BlankThread | null = null;

/** Starts the thread that the first `blankThread` returns. If it is never used it ends with the process. */
export function startSpareThread(): void {
  try {
    spare = startThread();
  } catch {
    // `blankThread` will report why there is none.
  }
}

/** The spare thread, if there is one, or a new one. @throws Error if the system cannot start one */
export function blankThread(): BlankThread {
  const thread = spare ?? startThread();
  spare = null;
  return thread;
}

function startThread(): BlankThread {
  const own = import.meta.url;
  const entry = new URL(
    own.endsWith('.ts') ? '../worker/worker-thread.ts' : '../worker/worker-thread.js',
    own,
  );
  const { port1, port2 } = new MessageChannel();
  const worker = new Worker(entry, {
    workerData: port2,
    transferList: [port2],
    name: 'ndots-worker',
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB, maxYoungGenerationSizeMb: YOUNG_MB },
  });
  return {
    worker,
    begin(start) {
      port1.postMessage(start);
      // Messages that were sent still arrive.
      port1.close();
    },
  };
}
