/** Reads zone files, either on this thread or, if they are large, on a separate one. */
import { statSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import type { Clock, Timer } from '../base/clock.ts';
import { hashKey, type HashKey } from '../base/hash.ts';
import { memoryLimit } from '../runtime/memory-limit.ts';
import { Problem, type ProblemParts } from '../base/problem.ts';
import { collectLater } from '../runtime/memory-policy.ts';
import { trimMemory } from '../runtime/memory.ts';
import type { WireName } from '../wire/name.ts';
import type { FileStamp } from './file-stamp.ts';
import type { PackedZone } from './packed-zone.ts';
import type { ZoneFileResult } from './zone-file.ts';
import { ReadingProgress } from './zone-progress.ts';
import { zoneShare } from './zone-share.ts';

/**
 * Size in bytes above which a separate thread reads a file, because reading it then takes longer than starting a
 * thread.
 */
const THREAD_FROM = 512 * 1024;
/** The same limit expressed in records, because a single `$GENERATE` line can create many. */
const THREAD_FROM_RECORDS = 50_000;

/**
 * Milliseconds until the runtime may free the heap of a thread that has ended. This is about 4 MiB, which it holds for
 * a possible successor.
 */
const POOLED_MS = 10_000;

/**
 * Peak memory per byte of text, for the text, the collected records and the zone. The measured value is 6.6 for short
 * records, and less for long ones.
 */
const READING_TIMES = 7;
/** Bytes that are always permitted. */
const READ_ALWAYS = 4 * 1024 * 1024;

/** Returns how many bytes of text may be read without exceeding the container's memory limit. */
function readingRoom(): number {
  const left = memoryLimit() - process.memoryUsage.rss();
  return Math.max(READ_ALWAYS, Math.floor(left / READING_TIMES));
}

/** The thread's job. */
export interface ZoneJob {
  readonly path: string;
  readonly origin: WireName;
  readonly unless: number | null;
  /** Maximum size of the zone's records in bytes. */
  readonly share: number;
  /** Maximum size in bytes of the file with its includes; anything larger is `EFBIG`. */
  readonly bytes: number;
  /** The memory behind a `ReadingProgress`, which shows how far the reading has come. */
  readonly progress: Uint32Array;
  /** The process's key, because other threads look up names in the zone that this thread packs. */
  readonly hashKey: HashKey;
}

/** Limits and helpers for reading a zone file. */
export interface LoadTerms {
  /** Lets a thread do the reading, possibly after waiting for others. */
  readonly inTurn?: (<T>(run: () => Promise<T>) => Promise<T>) | undefined;
  /** Maximum size of the records in bytes. */
  readonly share?: number;
  /** Returns how many bytes a thread may read; a larger file is a problem. */
  readonly room?: () => number;
  /** Monitors a read that may take long, until it is cancelled. */
  readonly watch?: (progress: ReadingProgress) => Timer;
}

/** The thread's result: the zone and its problems as plain data, or the reason why the file could not be read. */
export type ZoneThreadResult =
  | {
      readonly packed: PackedZone | null;
      readonly problems: readonly ProblemParts[];
      readonly warnings: readonly ProblemParts[];
      readonly digest: string;
      readonly included: readonly FileStamp[];
    }
  | {
      readonly code: string;
      readonly message: string;
      readonly included: readonly FileStamp[];
    };

/**
 * Reads a zone file like `readZoneFile` does. If the file and its includes are large, a separate thread reads them, so
 * other threads need neither time nor memory for it.
 * @throws Error with the system's code if the file cannot be read
 */
export async function loadZone(
  path: string,
  origin: WireName,
  clock: Clock,
  unless: number | null,
  { inTurn = (run) => run(), share = zoneShare(), room = readingRoom, watch }: LoadTerms = {},
): Promise<ZoneFileResult> {
  const byThread = (): Promise<ZoneFileResult> =>
    inTurn(async () => {
      const progress = new ReadingProgress();
      const watching = watch?.(progress);
      const job = {
        path,
        origin,
        unless,
        share,
        bytes: room(),
        progress: progress.words,
        hashKey: hashKey(),
      };
      try {
        return await inThread(job, clock);
      } finally {
        watching?.cancel();
      }
    });
  if (statSync(path).size >= THREAD_FROM) return byThread();
  const { readZoneFile, ZoneTooLarge } = await import('./zone-file.ts');
  try {
    return await readZoneFile(path, origin, clock, unless, {
      bytes: THREAD_FROM,
      records: THREAD_FROM_RECORDS,
      share,
    });
  } catch (error) {
    if (error instanceof ZoneTooLarge) return byThread();
    throw error;
  }
}

async function inThread(job: ZoneJob, clock: Clock): Promise<ZoneFileResult> {
  const own = import.meta.url;
  const entry = new URL(own.endsWith('.ts') ? './zone-thread.ts' : './zone-thread.js', own);
  // This thread's own limit, because Node's default is far more than a container allows.
  const heap = process.getBuiltinModule('node:v8').getHeapStatistics().heap_size_limit;
  const worker = new Worker(entry, {
    workerData: job,
    name: 'ndots-zone',
    resourceLimits: { maxOldGenerationSizeMb: Math.ceil(heap / (1024 * 1024)) },
  });
  const result = await new Promise<ZoneThreadResult>((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', () => reject(new Error('the thread that was reading it has ended')));
  });
  await worker.terminate();
  trimMemory();
  collectLater(clock, POOLED_MS);
  if ('message' in result && result.code === 'EFBIG')
    return {
      packed: null,
      problems: [tooLarge(job.path, result.message)],
      warnings: [],
      digest: '',
      included: result.included,
    };
  if ('message' in result) throw Object.assign(new Error(result.message), { code: result.code });
  const problems = (list: readonly ProblemParts[]): Problem[] =>
    list.map((parts) => new Problem(parts));
  return {
    packed: result.packed,
    problems: problems(result.problems),
    warnings: problems(result.warnings),
    digest: result.digest,
    included: result.included,
  };
}

function tooLarge(path: string, why: string): Problem {
  return new Problem({
    code: 'bad-zone',
    text: `${path}: ${why}`,
    place: { file: path, line: 1, column: 1 },
    hint: 'The rest of the file is valid, and other zones are still served.',
    remedy: 'Raise the container’s memory limit, or delegate parts of the zone to separate zones.',
  });
}
