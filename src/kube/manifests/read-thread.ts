import { Worker } from 'node:worker_threads';
import { errorCode } from '../../base/error-code.ts';
import { Problem, type ProblemParts } from '../../base/problem.ts';
import type { Manifest, ManifestFile } from './manifest.ts';

/** The text of one manifest file. */
export interface ManifestText {
  readonly path: string;
  readonly text: string;
}

/** A file that takes longer than this was made to. Milliseconds; 16 MiB of common manifests take a third of it. */
const READ_MAX_MS = 120_000;
/** Memory that one file's reading may take, MiB; about twenty times the size of its text. */
const HEAP_MAX_MB = 768;

/** A file's objects on their way between threads: problems as what they are made of. */
export interface ManifestMessage {
  readonly manifests: readonly Manifest[];
  readonly problems: readonly ProblemParts[];
}

/**
 * Reads files one after the other in a thread of their own, so that a large one holds up nothing else and one that takes all
 * memory, or for ever, is one problem and not the end of the server. The thread ends with the last file.
 * @param take is given each file as it has been read, in order
 */
export async function readInThread(
  files: readonly ManifestText[],
  take: (file: ManifestText, read: ManifestFile) => void,
): Promise<void> {
  let reader = new Reader();
  try {
    for (const file of files) {
      try {
        take(file, await reader.read(file));
      } catch (error) {
        take(file, { manifests: [], problems: [tooHard(file, error as Error)] });
        await reader.end();
        reader = new Reader();
      }
    }
  } finally {
    await reader.end();
  }
}

const extension = import.meta.url.endsWith('.ts') ? '.ts' : '.js';

class Reader {
  readonly #worker = new Worker(new URL(`read-thread-entry${extension}`, import.meta.url), {
    name: 'ndots-manifests',
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MAX_MB },
  });

  read(file: ManifestText): Promise<ManifestFile> {
    const worker = this.#worker;
    return new Promise<ManifestFile>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`it takes longer than ${READ_MAX_MS / 1000} seconds`)),
        READ_MAX_MS,
      );
      timer.unref();
      worker.removeAllListeners();
      worker.on('message', ({ manifests, problems }: ManifestMessage) => {
        clearTimeout(timer);
        resolve({ manifests, problems: problems.map((parts) => new Problem(parts)) });
      });
      worker.on('error', (error) => {
        clearTimeout(timer);
        reject(error);
      });
      worker.postMessage(file);
    });
  }

  async end(): Promise<void> {
    this.#worker.removeAllListeners();
    // One that ends with an error after nobody waits for it any more has nothing to tell.
    this.#worker.on('error', () => undefined);
    await this.#worker.terminate();
  }
}

function tooHard({ path }: ManifestText, error: Error): Problem {
  const memory = errorCode(error) === 'ERR_WORKER_OUT_OF_MEMORY';
  return new Problem({
    code: 'manifest-too-large',
    text: memory
      ? `reading ${path} takes more than ${HEAP_MAX_MB} MiB of memory`
      : `cannot read ${path}: ${error.message}`,
    remedy: 'split it, or leave out what is not needed',
    cause: error,
  });
}
