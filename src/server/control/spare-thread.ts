/**
 * Starts the threads of workers, the first one before anything else of the program is loaded: what a thread needs until it knows its task takes
 * as long as the main thread needs until it knows the Corefile.
 */
import { MessageChannel, Worker } from 'node:worker_threads';

/** Workers may hold no more than this on their heap: an index of 100 000 pods and a full cache take a small part of it. */
const HEAP_MB = 256;
/**
 * Answers leave no garbage and forwarded queries little: a nursery this small costs a forwarded query nothing (half of it
 * costs 40 %), and stays small.
 */
const YOUNG_MB = 4;

/** A thread that has been told nothing yet. */
export interface BlankThread {
  readonly worker: Worker;
  /** Tells it what it is: a WorkerStart. To be called once. */
  readonly begin: (start: object) => void;
}

let spare: BlankThread | null = null;

/** Starts the thread that the first `blankThread` gives. One that nobody asks for ends with the process. */
export function startSpareThread(): void {
  try {
    spare = startThread();
  } catch {
    // Whoever asks for it is told why there is none.
  }
}

/** The spare thread, if there is one, or a new one. @throws Error if the system gives none */
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
      // What was sent still arrives.
      port1.close();
    },
  };
}
