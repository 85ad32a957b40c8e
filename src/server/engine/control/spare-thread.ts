/**
 * Starts worker threads. The first one starts before the rest of the program is loaded, so that it is ready sooner: it
 * starts while the main thread reads the Corefile.
 */
import { MessageChannel, Worker } from 'node:worker_threads';
import { cpuCount } from '../../base/cpu-count.ts';
import { memoryLimit } from '../../runtime/memory-limit.ts';
import { defaultWorkers, workerHeapMb } from '../contract/worker-shares.ts';

/**
 * Size of a worker's young generation in MiB. Answers leave no garbage, and forwarded queries only a little. This size
 * adds no cost to a forwarded query (half of it would add 40%) and saves memory.
 */
const YOUNG_MB = 4;

/** A started thread without a task. */
export interface BlankThread {
  readonly worker: Worker;
  /**
   * Gives the thread its task: a WorkerStart, or null to end it. A thread that is still loading cannot be ended from
   * outside. Call this once.
   */
  readonly begin: (start: object | null) => void;
}

interface SpareThread extends BlankThread {
  readonly heapMb: number;
}

/** The system's name for worker threads. */
export const WORKER_THREAD = 'ndots-worker';

let spare: SpareThread | null = null;

/**
 * Starts the thread that the first call of `blankThread` returns, with the heap for the default number of workers. If
 * it is never used, it ends with the process.
 */
export function startSpareThread(): void {
  try {
    spare = startThread(workerHeapMb(memoryLimit(), defaultWorkers(cpuCount())));
  } catch {
    // `blankThread` will report why there is none.
  }
}

/**
 * Returns the spare thread if there is one with such a heap, and otherwise a new one.
 * @param heapMb maximum MiB of JavaScript objects
 * @throws Error if the system cannot start one
 */
export function blankThread(heapMb: number): BlankThread {
  const found = spare;
  spare = null;
  if (found?.heapMb === heapMb) return found;
  found?.begin(null);
  return startThread(heapMb);
}

function startThread(heapMb: number): SpareThread {
  // A limit on the command line would apply to every thread and override the thread's own. This thread's heap stays
  // unchanged.
  process.getBuiltinModule('node:v8').setFlagsFromString('--max-old-space-size=0');
  const own = import.meta.url;
  const entry = new URL(
    own.endsWith('.ts') ? '../worker/worker-thread.ts' : '../worker/worker-thread.js',
    own,
  );
  const { port1, port2 } = new MessageChannel();
  const worker = new Worker(entry, {
    workerData: port2,
    transferList: [port2],
    name: WORKER_THREAD,
    resourceLimits: { maxOldGenerationSizeMb: heapMb, maxYoungGenerationSizeMb: YOUNG_MB },
  });
  return {
    worker,
    heapMb,
    begin(start) {
      port1.postMessage(start);
      // Messages already sent still arrive.
      port1.close();
    },
  };
}
