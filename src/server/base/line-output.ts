/** Writes the lines from all threads to one descriptor without blocking any thread. */
import { write, writev } from 'node:fs';
import { sleep, systemClock } from './clock.ts';
import { errorCode } from './error-code.ts';
import type { LinePrinter } from './log.ts';
import { whyFailed } from './why-failed.ts';
import {
  LineReader,
  lineRingLimit,
  LineWriter,
  makeLineRing,
  type LineRingMemory,
} from './line-ring.ts';

/** Milliseconds to collect lines before writing them. */
const GATHER_MS = 25;

/**
 * Writes the lines from all threads to one descriptor in one place, so that no thread ever waits for a slow reader.
 * Each thread has a ring in shared memory. A line that does not fit is dropped and counted, and a separate line reports
 * the loss once there is room. Writes may block, and usually do when a pipe is full. Making the descriptor non-blocking
 * would affect every process that shares it, including the terminal's shell. Writes therefore run on the runtime's
 * thread pool, one at a time, so a stalled reader blocks one pool thread and nothing else. If the process is killed,
 * unwritten lines are lost: the last 25 ms, and anything the reader has not accepted yet. Lines logged by a thread
 * survive that thread, however it ended.
 */
export function lineOutput(
  fd: number,
  ringSize: number = lineRingLimit.default,
  print: LinePrinter = (line) => line,
): LineOutput {
  const output = new LineOutput(fd, ringSize, print);
  void output.run();
  return output;
}

interface Ring {
  readonly memory: LineRingMemory;
  readonly reader: LineReader;
}

export class LineOutput {
  readonly #fd: number;
  readonly #ringSize: number;
  /** Format for its own lines. */
  readonly #print: LinePrinter;
  readonly #bell = new Int32Array(new SharedArrayBuffer(4));
  /** By thread; null is this one. */
  readonly #rings = new Map<number | null, Ring>();
  readonly #own: LineWriter;
  /** Lines lost to failed writes, and the reason for the latest failure, which is empty if there was none. */
  #failed = 0;
  #why = '';
  /** Lost lines already reported. */
  #told = 0;
  /** True while lines are being collected or written. */
  #busy = false;

  constructor(fd: number, ringSize: number, print: LinePrinter) {
    this.#print = print;
    this.#fd = fd;
    this.#ringSize = ringSize;
    this.#own = new LineWriter(this.ringOf(null));
  }

  /** Writes a line, given without a line ending, from this thread. This is a bound function. */
  readonly write = (line: string): void => this.#own.write(line);

  /** Number of lines lost because the reader was too slow or had stopped. */
  get lost(): number {
    return [...this.#rings.values()].reduce((sum, { reader }) => sum + reader.lost, this.#failed);
  }

  /** Resolves to true once all lines so far have been written, or to false after `limitMs`. */
  async flushed(limitMs: number): Promise<boolean> {
    const end = performance.now() + limitMs;
    while (this.#busy || this.#isWaiting) {
      if (performance.now() > end) return false;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return true;
  }

  /** Writes lines as they appear; never returns. */
  async run(): Promise<never> {
    for (;;) {
      const { async, value } = Atomics.waitAsync(this.#bell, 0, 0);
      if (async) await value;
      this.#busy = true;
      await sleep(systemClock, GATHER_MS);
      Atomics.store(this.#bell, 0, 0);
      await this.#round();
      this.#busy = false;
    }
  }

  /** Returns the ring for a thread's lines (`LineWriter`). The same number always gives the same ring. */
  ringOf(thread: number | null): LineRingMemory {
    let known = this.#rings.get(thread);
    if (known === undefined) {
      const memory = makeLineRing(this.#ringSize, this.#bell);
      known = { memory, reader: new LineReader(memory) };
      this.#rings.set(thread, known);
    }
    return known.memory;
  }

  get #isWaiting(): boolean {
    return [...this.#rings.values()].some(({ reader }) => reader.pieces().length > 0);
  }

  /** Writes the contents of the rings and reports any lost lines. */
  async #round(): Promise<void> {
    let flows = true;
    for (const { reader } of this.#rings.values()) {
      try {
        await this.#drain(reader);
      } catch (error) {
        // The reader is gone (EPIPE) or the disk is full. Later lines may succeed.
        flows = false;
        this.#why = whyFailed(error);
        for (const piece of reader.pieces()) {
          this.#failed += countLines(piece);
          reader.release(piece.length);
        }
      }
    }
    const missing = this.lost - this.#told;
    // A line about the loss would be lost as well, which would increase the count.
    if (missing === 0 || !flows) return;
    this.#told += missing;
    const why = this.#why === '' ? 'standard output was too slow' : this.#why;
    this.#why = '';
    this.#own.write(this.#print(`[WARNING] ${missing} log lines were lost: ${why}`));
  }

  /** Writes what a ring currently contains. Later lines wait for the next round, so that every thread gets its turn. */
  async #drain(reader: LineReader): Promise<void> {
    let pieces = reader.pieces();
    while (pieces.length > 0) {
      const written = await writeSome(this.#fd, pieces);
      reader.release(written);
      pieces = after(pieces, written);
    }
  }
}

/** @returns the number of bytes written, at least one */
async function writeSome(fd: number, pieces: Uint8Array[]): Promise<number> {
  for (;;) {
    try {
      return await new Promise<number>((resolve, reject) => {
        const done = (error: Error | null, written: number): void =>
          error === null ? resolve(written) : reject(error);
        if (pieces.length === 1) write(fd, pieces[0]!, done);
        else writev(fd, pieces, done);
      });
    } catch (error) {
      // Another process has made the descriptor non-blocking, and it is full.
      if (errorCode(error) !== 'EAGAIN') throw error;
      await new Promise((resolve) => setTimeout(resolve, GATHER_MS));
    }
  }
}

/** Returns the pieces without their first `count` bytes. */
function after(
  pieces: readonly Uint8Array<SharedArrayBuffer>[],
  count: number,
): Uint8Array<SharedArrayBuffer>[] {
  const [first, ...others] = pieces;
  if (first === undefined) return [];
  if (count < first.length) return [first.subarray(count), ...others];
  return after(others, count - first.length);
}

function countLines(bytes: Uint8Array): number {
  let lines = 0;
  for (const byte of bytes) if (byte === 10) lines++;
  return lines;
}
