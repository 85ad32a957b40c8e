/**
 * Combines lookups with the connections that followed. Lookups are held back until their connections have been seen.
 */
import type { SeenLookup } from '../pair/seen-exchange.ts';
import type { Attribution } from './attribution.ts';
import { OpenedConnections, type OpenedConnection } from './opened-connections.ts';

/** In milliseconds. Programs connect within this time after the last reply. */
const HOLD_MS = 1000;
/** Limit on lookups held back. When it is reached, the oldest are reported early. */
const HELD_MAX = 10_000;
/** Milliseconds until the first connection after a pause is settled. */
const SETTLE_AFTER_MS = 10;

export type TellLookup = (lookup: SeenLookup, next: readonly OpenedConnection[]) => void;

export class ProcessStory {
  readonly #connections: OpenedConnections;
  readonly #tell: TellLookup;
  readonly #held: SeenLookup[] = [];
  #timer: NodeJS.Timeout | null = null;

  constructor(attribution: Attribution, ports: readonly number[], tell: TellLookup) {
    this.#connections = new OpenedConnections(attribution, ports);
    this.#tell = tell;
  }

  /** @returns true if the packet opens a connection that is not for DNS */
  take(bytes: Uint8Array, start: number, end: number, timeMs: number): boolean {
    this.#connections.settle(timeMs);
    if (!this.#connections.take(bytes, start, end, timeMs)) return false;
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      this.#connections.settle(Infinity);
    }, SETTLE_AFTER_MS);
    return true;
  }

  hold(lookup: SeenLookup): void {
    this.#held.push(lookup);
    if (this.#held.length > HELD_MAX) this.#tellFirst();
  }

  /** Call this periodically to report lookups that have been held for long enough. */
  tell(nowMs: number = Date.now()): void {
    while (this.#held.length > 0 && this.#held[0]!.endMs + HOLD_MS <= nowMs) this.#tellFirst();
  }

  end(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#connections.settle(Infinity);
    while (this.#held.length > 0) this.#tellFirst();
  }

  #tellFirst(): void {
    const lookup = this.#held.shift()!;
    this.#tell(lookup, this.#connections.after(lookup));
  }
}
