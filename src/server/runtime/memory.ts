import { forgetMemory, noteMemory } from './held-by-thread.ts';
import { libc, LibcMissing } from './libc.ts';

/**
 * Memory whose address can be given to the kernel: it is outside the JavaScript heap, never moves,
 * and stays until it is freed. All structs for system calls are in such memory. (Typed arrays are
 * unsuitable: small ones move, and one without references is collected although the kernel still
 * has its address.)
 */
export class Memory {
  readonly address: number;
  readonly bytes: Uint8Array;
  /** The same memory as 32-bit words; its size is a multiple of 4. */
  readonly words: Uint32Array;
  #buffer: ArrayBuffer | null;

  /**
   * @param clear false leaves large buffers untouched: pages that are never written cost no memory
   */
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
    // No remainder operator: for numbers that are not 32-bit integers it calls fmod(3).
    const high = Math.floor(address / 0x1_0000_0000);
    this.words[index] = address - high * 0x1_0000_0000;
    this.words[index + 1] = high;
  }

  /**
   * Frees the memory. Views of it have length 0 from then on, so that late readers find nothing
   * instead of other data.
   */
  free(): void {
    const buffer = this.#buffer;
    if (buffer === null) return;
    this.#buffer = null;
    buffer.transfer(0);
    forgetMemory(this.address);
    libc().free(this.address);
  }
}

/**
 * Lends memory for one call.
 * @returns null where there is no foreign function interface
 */
export function withMemory<T>(size: number, use: (memory: Memory) => T): T | null {
  let memory: Memory | null = null;
  try {
    memory = new Memory(size);
    return use(memory);
  } catch (error) {
    if (error instanceof LibcMissing) return null;
    throw error;
  } finally {
    memory?.free();
  }
}

/** Returns memory that the C library keeps to the system, where that is possible. */
export function trimMemory(): void {
  try {
    libc().trim();
  } catch (error) {
    if (!(error instanceof LibcMissing)) throw error;
  }
}
