/** A hosts file with change detection. */
import { statSync, type Stats } from 'node:fs';
import { hasControls } from '../../base/binary-text.ts';
import type { Clock } from '../../base/clock.ts';
import { errorCode } from '../../base/error-code.ts';
import { whyFailed } from '../../base/why-failed.ts';
import type { Log } from '../../base/log.ts';
import { Problem } from '../../base/problem.ts';
import { FILE_MAX, readFileLines } from '../../base/read-file.ts';
import { inSlices, type Slices } from '../../base/slices.ts';

/** Bit mask for the number of steps after which the work may pause. */
const STEP_SLICE = 0x3f;

/**
 * A hosts file, which is read again whenever its modification time or size changes. A missing file is treated as empty.
 */
export class HostsFile {
  readonly path: string;
  readonly #clock: Clock;
  readonly #log: Log;
  /** Time when the file was last modified, in seconds since 1970, or null if it was never read. */
  changedAt: number | null = null;
  #mtimeMs = -1;
  #size = -1;
  /** Why the last read failed, or `''`. */
  #failure = '';

  constructor(path: string, clock: Clock, log: Log) {
    this.path = path;
    this.#clock = clock;
    this.#log = log;
  }

  /**
   * Reports an unusable file early.
   * @throws Problem if the file exists but cannot be read
   */
  check(): void {
    try {
      if (statSync(this.path).isDirectory())
        this.#log.warning(`Hosts file "${this.path}" is a directory`);
    } catch (error) {
      if (errorCode(error) === 'ENOENT') {
        this.#log.warning(`File does not exist: ${this.path}`);
        return;
      }
      throw new Problem({
        code: 'hosts-unreadable',
        text: `unable to access hosts file '${this.path}': ${whyFailed(error)}`,
        remedy: `Check the path and its permissions: ls -l ${this.path}`,
        cause: error,
      });
    }
  }

  /**
   * Reads a changed file in slices, so that the thread is never blocked for long. If the file is unreadable, the next
   * check tries again. If it is too large or is not a regular file, it is not tried again until it changes.
   * @param take processes each line in small steps, and returns false to stop
   * @returns true if the whole file was read
   */
  async read(take: (line: string) => Generator<void, boolean>): Promise<boolean> {
    let stats: Stats | null = null;
    try {
      stats = statSync(this.path);
      if (stats.mtimeMs === this.#mtimeMs && stats.size === this.#size) return false;
      await inSlices(this.#lines(take), this.#clock);
      this.#seen(stats);
      this.#failure = '';
      this.changedAt = stats.mtimeMs / 1000;
      return true;
    } catch (error) {
      const code = errorCode(error);
      if (code === '') throw error;
      if (stats !== null && (code === 'EFBIG' || code === 'ENOTREG')) {
        this.#seen(stats);
        this.#log.error(`${this.path} is not read because it ${whyFailed(error)}`);
      } else if (code !== 'ENOENT' && code !== 'EISDIR') this.#tell(whyFailed(error));
      return false;
    }
  }

  *#lines(take: (line: string) => Generator<void, boolean>): Slices<void> {
    let steps = 0;
    let number = 0;
    let odd = 0;
    let firstOdd = 0;
    for (const line of readFileLines(this.path, FILE_MAX.hosts)) {
      number++;
      if (hasControls(line) && hasControls(line.replace(/#.*/s, '')) && odd++ === 0)
        firstOdd = number;
      const taking = take(line);
      let step;
      do {
        step = taking.next();
        if ((++steps & STEP_SLICE) === 0) yield;
      } while (step.done !== true);
      if (!step.value) break;
    }
    if (odd > 0) this.#tellOdd(firstOdd, odd);
  }

  /** Lines with control characters probably result from a crash, or the file is not a hosts file at all. */
  #tellOdd(first: number, count: number): void {
    const lines = count === 1 ? 'this line contains' : `this line and ${count - 1} more contain`;
    this.#log.warning(
      `${this.path}:${first}: ${lines} binary data: lines without an address and names are ignored; check that the file is complete`,
    );
  }

  /** Reports each failure only once, because reading is retried every few seconds. */
  #tell(failure: string): void {
    if (failure !== this.#failure)
      this.#log.error(`${this.path} cannot be read: ${failure}; its names stay unchanged`);
    this.#failure = failure;
  }

  #seen({ mtimeMs, size }: Stats): void {
    this.#mtimeMs = mtimeMs;
    this.#size = size;
  }
}
