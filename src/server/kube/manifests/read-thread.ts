/** Reads large manifest files in a separate thread, with limits on memory and time. */
import { Worker } from 'node:worker_threads';
import { errorCode } from '../../base/error-code.ts';
import { printBytes } from '../../base/limits.ts';
import { Problem, type ProblemParts } from '../../base/problem.ts';
import { manifestMemoryRemedy, type ManifestFile } from './manifest-file.ts';

/**
 * Time limit for a file, in milliseconds. 16 MiB of ordinary manifests take a third of it, so a file that exceeds it is
 * malicious.
 */
const READ_MAX_MS = 120_000;
/** The thread's own memory in MiB, for the runtime, the parser and a file's text. */
const BASE_MB = 48;

/** A file to read, and the maximum number of bytes for reading one of its objects. */
export interface ManifestRequest {
  readonly path: string;
  readonly memory: number;
}

/**
 * A message between threads with a file's objects and its problems as plain data, or the reason why the file cannot be
 * read.
 */
export type ManifestMessage =
  | (Omit<ManifestFile, 'problems'> & { readonly problems: readonly ProblemParts[] })
  | { readonly message: string; readonly code: string | undefined };

/**
 * Reads files one after another in a separate thread, so that a large file does not delay other work. If a file
 * exhausts memory or time, this is reported as a problem and does not end the server. The thread ends with the last
 * file.
 * @param memory maximum number of bytes for one object while it is read, and for a file's objects afterwards
 * @param take receives each file, in order, once it has been read, or else the system's error
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
        // The young generation is small, so that garbage is collected soon instead of piling up.
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
    // The worker's result is no longer needed, but an error event without a listener would end the process.
    this.#worker.on('error', () => undefined);
    await this.#worker.terminate();
  }
}

function tooHard(path: string, memory: number, error: Error): Problem {
  const isMemory = errorCode(error) === 'ERR_WORKER_OUT_OF_MEMORY';
  return new Problem({
    code: 'manifest-too-large',
    text: isMemory
      ? `reading ${path} needs more than ${printBytes(memory)} of memory`
      : `cannot read ${path}: ${error.message}`,
    remedy: isMemory ? manifestMemoryRemedy : 'split it, or remove what is not needed',
    cause: error,
  });
}
