/** Memory shared by the keys of all directives. */
import type { ControlContext, KeptAcrossReloads } from '../../engine/contract/control-context.ts';

export interface KeyRoom {
  /** Limit in bytes for log messages, for this directive's keys or for all. */
  readonly most: number;
  readonly shared: boolean;
  /** True if this directive has room for a total of `bytes`. */
  fits(bytes: number): boolean;
  /** Sets the number of bytes currently held. */
  hold(bytes: number): void;
  /** Calls `run` whenever others have permanently released keys. */
  whenFreed(run: () => void): void;
  leave(): void;
}

/**
 * Returns the room for a directive's data set. It is separate if the directive sets a limit (`maxBytes`), otherwise
 * shared by all directives without one.
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
 * One limit for the keys of all directives without their own. While one configuration replaces another, both copies
 * exist, and the old one does not count. Otherwise the new one would permanently lack keys.
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

  /** Called once by each directive in a new configuration when it starts. */
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
    // The memory is released by the users that hold the keys.
  }

  #others(key: string): number {
    let bytes = 0;
    for (const [other, held] of this.#held)
      if (other !== key && this.#present.has(other)) bytes += held;
    return bytes;
  }
}
