import { forgetMemory, noteMemory } from './held-by-thread.ts';
import { libc, LibcMissing } from './libc.ts';

/**
 * Memory whose address the kernel may be given: it lies outside the JavaScript heap, never moves, and stays until freed.
 * All structs that system calls see are in one of these. (A typed array would not do: small ones move, and one that nothing
 * refers to any more is collected although the kernel still has its address.)
 */
export class Memory {
  readonly address: number;
  readonly bytes: Uint8Array;
  /** The same memory as 32-bit words; its size is a multiple of 4. */
  readonly words: Uint32Array;
  #buffer: ArrayBuffer | null;

  /** @param clear false leaves large buffers untouched: pages that nobody writes to cost no memory */
  constructor(size: number, clear = true) {
    const rounded = (size + 15) & ~15;
    const { address, buffer } = libc().allocate(rounded);
    this.address = address;
    noteMemory(address);
    this.#buffer = buffer;
    this.bytes = new Uint8Array(buffer);
    this.words = new Uint32Array(buffer);
    if (clear) this.bytes.fill(0);
  }

  /** Writes a pointer (8 bytes) at word `index`. */
  setPointer(index: number, address: number): void {
    // Not by a remainder: of numbers that are no 32-bit integers it is a call of fmod(3).
    const high = Math.floor(address / 0x1_0000_0000);
    this.words[index] = address - high * 0x1_0000_0000;
    this.words[index + 1] = high;
  }

  /** Gives the memory back. Views of it have length 0 from then on, so late readers find nothing rather than others' data. */
  free(): void {
    const buffer = this.#buffer;
    if (buffer === null) return;
    this.#buffer = null;
    buffer.transfer(0);
    forgetMemory(this.address);
    libc().free(this.address);
  }
}

/** Gives back to the system what the C library holds for later, where there is a way to tell it. */
export function trimMemory(): void {
  try {
    libc().trim();
  } catch (error) {
    if (!(error instanceof LibcMissing)) throw error;
  }
}
