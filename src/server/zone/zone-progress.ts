/**
 * Reports in the log and in a metric how far the reading or fetching of a zone has come. A slow load then does not look
 * like one that hangs.
 */
import { every, type Clock, type Timer } from '../base/clock.ts';
import type { Log } from '../base/log.ts';
import type { Gauge } from '../metrics/registry.ts';
import { sharedWords } from '../base/shared-memory.ts';

/** Milliseconds until the first report; shorter loads are reported only when they end. */
const FIRST_MS = 5000;
/** Interval between subsequent log lines, in milliseconds. */
const AGAIN_MS = 10_000;
/** Interval between updates of the metric, in milliseconds. */
const TICK_MS = 1000;

/** The progress of reading a file, in shared memory. */
export class ReadingProgress {
  readonly words: Uint32Array;

  constructor(words: Uint32Array = sharedWords(3)) {
    this.words = words;
  }

  /** Sets the number of records read, the last of which is on this line of its file. */
  note(records: number, line: number): void {
    this.words[0] = records;
    this.words[1] = line;
  }

  /** Records that everything has been read and is now being sorted. */
  hasRead(): void {
    this.words[2] = 1;
  }

  get records(): number {
    return this.words[0]!;
  }

  print(): string {
    return this.words[2] === 1
      ? `all ${this.records} records are read and sorted`
      : `${this.records} records so far, line ${this.words[1]!}`;
  }
}

/** The log and the metric that show progress, and the clock. */
export interface ProgressParts {
  readonly clock: Clock;
  readonly log: Log;
  /** Number of records so far; 0 when finished. */
  readonly gauge: Pick<Gauge, 'set'>;
}

/**
 * Reports the progress of an action that starts now, until this is cancelled.
 * @param print formats the action and its progress
 */
export function tellProgress(
  { clock, log, gauge }: ProgressParts,
  records: () => number,
  print: () => string,
): Timer {
  const begun = clock.now();
  let next = FIRST_MS;
  const ticks = every(clock, TICK_MS, () => {
    gauge.set(records());
    const spent = clock.now() - begun;
    if (spent < next) return;
    next += AGAIN_MS;
    log.info(`${print()} (${Math.round(spent / 1000)}s)`);
  });
  return {
    cancel() {
      ticks.cancel();
      gauge.set(0);
    },
  };
}
