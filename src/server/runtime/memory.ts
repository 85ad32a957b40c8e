import { forgetMemory, noteMemory } from './held-by-thread.ts';
import { libc, withLibc } from './libc.ts';

/**
 * Memory whose address can be passed to the kernel: it is outside the JavaScript heap, never moves, and stays allocated
 * until freed. All structs for system calls use it. Typed arrays are unsuitable, because small ones move, and an
 * unreferenced one is collected while the kernel still has its address.
 */
export class Memory {
  readonly address: number;
  readonly bytes: Uint8Array;
  /** The same memory as 32-bit words; the size is a multiple of 4. */
  readonly words: Uint32Array;
  #buffer: ArrayBuffer | null;

  /** @param clear false leaves large buffers untouched, because pages that are never written cost no memory */
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
    // Avoid the remainder operator, which calls fmod(3) for numbers that are not 32-bit integers.
    const high = Math.floor(address / 0x1_0000_0000);
    this.words[index] = address - high * 0x1_0000_0000;
    this.words[index + 1] = high;
  }

  /** Frees the memory. Existing views then have length 0, so late readers find nothing rather than unrelated data. */
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
 * Provides memory for the duration of one call.
 * @returns null if there is no foreign function interface
 */
export function withMemory<T>(size: number, use: (memory: Memory) => T): T | null {
  return withLibc(() => {
    const memory = new Memory(size);
    try {
      return use(memory);
    } finally {
      memory.free();
    }
  });
}

/** Returns free memory held by the C library to the system, if possible. */
export function trimMemory(): void {
  withLibc(({ trim }) => trim());
}
