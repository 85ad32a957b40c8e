/** Memory shared by the keys of all directives. */
import type { ControlContext, KeptAcrossReloads } from '../../engine/contract/control-context.ts';

export interface KeyRoom {
  /** The limit in bytes as shown in log messages, either for this directive's keys or for all of them. */
  readonly most: number;
  readonly shared: boolean;
  /** True if this directive has room for `bytes` in total. */
  fits(bytes: number): boolean;
  /** Sets the number of bytes currently held. */
  hold(bytes: number): void;
  /** Calls `run` whenever others have permanently released keys. */
  whenFreed(run: () => void): void;
  leave(): void;
}

/**
 * Returns the room for a directive's data set. A directive with a limit (`maxBytes`) gets its own, and all others share
 * one.
 * @param share size of the shared room in bytes
 */
export function roomFor(
  context: Pick<ControlContext, 'keep' | 'onStart'>,
  key: string,
  maxBytes: number | null,
  share: () => number,
): KeyRoom {
  if (maxBytes !== null)
    return {
      most: maxBytes,
      shared: false,
      fits: (bytes) => bytes <= maxBytes,
      hold: () => undefined,
      whenFreed: () => undefined,
      leave: () => undefined,
    };
  const memory = context.keep('etcd/memory', () => new KeyMemory(share()));
  memory.join(key);
  context.onStart(() => memory.begin());
  return memory.room(key);
}

/**
 * One limit for the keys of all directives that set none themselves. While a new configuration replaces an old one,
 * both copies exist, and the old one does not count. Otherwise, the new one would permanently be missing keys.
 */
class KeyMemory implements KeptAcrossReloads {
  readonly #most: number;
  readonly #held = new Map<string, number>();
  readonly #told = new Map<string, () => void>();
  #present: ReadonlySet<string> = new Set();
  #coming = new Set<string>();

  /** @param most bytes */
  constructor(most: number) {
    this.#most = most;
  }

  join(key: string): void {
    this.#coming.add(key);
  }

  /** Called once by each directive when a new configuration starts. */
  begin(): void {
    if (this.#coming.size === 0) return;
    this.#present = this.#coming;
    this.#coming = new Set();
  }

  room(key: string): KeyRoom {
    return {
      most: this.#most,
      shared: true,
      fits: (bytes) => bytes + this.#others(key) <= this.#most,
      hold: (bytes) => {
        this.#held.set(key, bytes);
      },
      whenFreed: (run) => {
        this.#told.set(key, run);
      },
      leave: () => {
        this.#held.delete(key);
        this.#told.delete(key);
        for (const tell of this.#told.values()) tell();
      },
    };
  }

  close(): void {
    // The objects that own the keys release the memory themselves.
  }

  #others(key: string): number {
    let bytes = 0;
    for (const [other, held] of this.#held)
      if (other !== key && this.#present.has(other)) bytes += held;
    return bytes;
  }
}
