/** Reads large manifest files in a thread of their own, with bounds of memory and time. */
import { Worker } from 'node:worker_threads';
import { errorCode } from '../../base/error-code.ts';
import { printBytes } from '../../base/limits.ts';
import { Problem, type ProblemParts } from '../../base/problem.ts';
import { manifestMemoryRemedy, type ManifestFile } from './manifest-file.ts';

/** A file that takes longer than this was made to. Milliseconds; 16 MiB of common manifests take a third of it. */
const READ_MAX_MS = 120_000;
/** Memory of the thread beside what it may read with and what it has read, MiB: the runtime, the parser, the text of a file. */
const BASE_MB = 48;

/** A file to be read, and the bytes that one of its objects may take meanwhile. */
export interface ManifestRequest {
  readonly path: string;
  readonly memory: number;
}

/** A file's objects on their way between threads: problems as what they are made of. Or why it cannot be read. */
export type ManifestMessage =
  | (Omit<ManifestFile, 'problems'> & { readonly problems: readonly ProblemParts[] })
  | { readonly message: string; readonly code: string | undefined };

/**
 * Reads files one after the other in a thread of their own, so that a large one holds up nothing else and one that takes all
 * memory, or for ever, is one problem and not the end of the server. The thread ends with the last file.
 * @param memory bytes that one object may take while it is read, and those of a file afterwards
 * @param take is given each file as it has been read, in order, or the error of the system
 */
export async function readInThread(
  paths: readonly string[],
  memory: number,
  take: (path: string, read: ManifestFile | Error) => void,
): Promise<void> {
  let reader = new ReadThread(memory);
  try {
    for (const path of paths) {
      try {
        take(path, await reader.read(path));
      } catch (error) {
        take(path, { manifests: [], bytes: 0, problems: [tooHard(path, memory, error as Error)] });
        await reader.end();
        reader = new ReadThread(memory);
      }
    }
  } finally {
    await reader.end();
  }
}

const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js';

class ReadThread {
  readonly #worker: Worker;
  readonly #memory: number;

  constructor(memory: number) {
    this.#memory = memory;
    this.#worker = new Worker(new URL(`read-thread-entry${extension}`, import.meta.url), {
      name: 'ndots-manifests',
      resourceLimits: {
        maxOldGenerationSizeMb: BASE_MB + Math.ceil((2 * memory) / (1024 * 1024)),
        // Garbage is collected soon, in place of being let pile up.
        maxYoungGenerationSizeMb: 8,
      },
    });
  }

  read(path: string): Promise<ManifestFile | Error> {
    const worker = this.#worker;
    return new Promise<ManifestFile | Error>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`it takes longer than ${READ_MAX_MS / 1000} seconds`)),
        READ_MAX_MS,
      );
      timer.unref();
      worker.removeAllListeners();
      worker.on('message', (message: ManifestMessage) => {
        clearTimeout(timer);
        if ('message' in message) {
          const { message: text, code } = message;
          return resolve(Object.assign(new Error(text), { code }));
        }
        const { problems, ...read } = message;
        resolve({ ...read, problems: problems.map((parts) => new Problem(parts)) });
      });
      worker.on('error', (error) => {
        clearTimeout(timer);
        reject(error);
      });
      worker.postMessage({ path, memory: this.#memory } satisfies ManifestRequest);
    });
  }

  async end(): Promise<void> {
    this.#worker.removeAllListeners();
    // Nobody waits for the worker any more; an error without a listener would end the process.
    this.#worker.on('error', () => undefined);
    await this.#worker.terminate();
  }
}

function tooHard(path: string, memory: number, error: Error): Problem {
  const isMemory = errorCode(error) === 'ERR_WORKER_OUT_OF_MEMORY';
  return new Problem({
    code: 'manifest-too-large',
    text: isMemory
      ? `reading ${path} takes more than ${printBytes(memory)} of memory`
      : `cannot read ${path}: ${error.message}`,
    remedy: isMemory ? manifestMemoryRemedy : 'split it, or leave out what is not needed',
    cause: error,
  });
}
