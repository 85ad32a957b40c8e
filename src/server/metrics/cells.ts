/**
 * Memory for the counts: blocks of 8-byte cells, owned and written by one thread and read by another.
 *
 * Counts need no atomics. Each cell has one writer, so no increment can be lost. A reader could see a torn value only
 * if a write were split. Elements of a Float64Array are aligned to 8 bytes. An aligned 8-byte store is a single
 * instruction on every 64-bit machine that Node supports (x86-64, arm64, ppc64, s390x, riscv64). V8 compiles it that
 * way, although the language itself would allow tearing for floats. On a 32-bit machine a scrape could occasionally
 * print one wrong value. The next scrape would be right again, because nothing is ever computed from a value that was
 * read. Two cells may be read at different instants (a histogram's sum may be one observation ahead).
 *
 * Cells never move: when a block is full, another one is added. Each slot (the cells of one label set) is preceded by
 * one cell, its lock. A freed slot stays locked until the reader unlocks it, which it does once it will no longer read
 * the slot. A slot is therefore never reused while its old label set can still be printed, and never at all if there is
 * no reader.
 */
import { appendTo } from '../base/append-to.ts';

export class CellMemory {
  readonly #onBlock: (block: number, memory: SharedArrayBuffer) => void;
  readonly #freed = new Map<number, CellSlot[]>();
  #block: Block | null = null;
  #blocks = 0;
  #used = 0;

  constructor(onBlock: (block: number, memory: SharedArrayBuffer) => void) {
    this.#onBlock = onBlock;
  }

  /** Allocates `width` adjacent cells, all zero. */
  allocate(width: number): CellSlot {
    return this.#reuse(width) ?? this.#fresh(width);
  }

  /** Frees a slot. Its cells retain their values until it is allocated again. */
  free(slot: CellSlot): void {
    appendTo(this.#freed, slot.width, slot);
  }

  #reuse(width: number): CellSlot | null {
    const queue = this.#freed.get(width);
    const oldest = queue?.[0];
    if (queue === undefined || oldest === undefined) return null;
    // Removals are processed in order, so if the oldest slot is still locked, the others are too.
    if (Atomics.compareExchange(oldest.block.locks, lockOf(oldest.at), 1, 0) !== 1) return null;
    queue.shift();
    oldest.cells.fill(0, oldest.at, oldest.at + width);
    return oldest;
  }

  #fresh(width: number): CellSlot {
    let block = this.#block;
    if (block === null || this.#used + 1 + width > BLOCK_CELLS) {
      const memory = new SharedArrayBuffer(BLOCK_CELLS * 8);
      block = {
        index: this.#blocks++,
        locks: new Int32Array(memory),
        cells: new Float64Array(memory),
      };
      this.#block = block;
      this.#used = 0;
      this.#onBlock(block.index, memory);
    }
    const at = this.#used + 1;
    this.#used = at + width;
    return { block, cells: block.cells, at, width };
  }
}

/** Cells per block, 8 KiB in total. This is enough for two histograms with native buckets, or dozens without. */
export const BLOCK_CELLS = 1024;

/** Counts in shared memory, one 8-byte float each. */
export type Cells = Float64Array<SharedArrayBuffer>;

/** The cells `at` … `at + width - 1` of a block. */
export interface CellSlot {
  readonly block: Block;
  readonly cells: Cells;
  readonly at: number;
  readonly width: number;
}

interface Block {
  readonly index: number;
  readonly cells: Cells;
  /** The same memory as 4-byte words, because only integers can be exchanged atomically. */
  readonly locks: Int32Array<SharedArrayBuffer>;
}

/** Called by the reader when it will no longer read the freed slot at `at`, so that the owner may reuse it. */
export function unlock(memory: SharedArrayBuffer, at: number): void {
  Atomics.store(new Int32Array(memory), lockOf(at), 1);
}

function lockOf(at: number): number {
  return (at - 1) * 2;
}
