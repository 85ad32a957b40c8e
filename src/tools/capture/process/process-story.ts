/**
 * Joins lookups with the connections that followed: lookups are held until their connections have
 * been seen, too.
 */
import type { SeenLookup } from '../pair/seen-exchange.ts';
import type { Attribution } from './attribution.ts';
import { OpenedConnections, type OpenedConnection } from './opened-connections.ts';

/** A program connects within this time after its last reply, milliseconds. */
const HOLD_MS = 1000;
/** The most lookups that are held; with more, the oldest are reported sooner. */
const HELD_MAX = 10_000;

/** Tells a lookup with the connections after it. */
export type TellLookup = (lookup: SeenLookup, next: readonly OpenedConnection[]) => void;

/** Holds lookups, and watches connections. */
export class ProcessStory {
  readonly #connections: OpenedConnections;
  readonly #tell: TellLookup;
  readonly #held: SeenLookup[] = [];
  #timer: NodeJS.Timeout | null = null;

  /** @param ports of name servers */
  constructor(attribution: Attribution, ports: readonly number[], tell: TellLookup) {
    this.#connections = new OpenedConnections(attribution, ports);
    this.#tell = tell;
  }

  /** @returns whether the packet opens a connection, and is not one of DNS */
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

  /** Tells what has waited for long enough. To be called from time to time. */
  tell(nowMs: number = Date.now()): void {
    while (this.#held.length > 0 && this.#held[0]!.endMs + HOLD_MS <= nowMs) this.#tellFirst();
  }

  /** Tells all that is left. */
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

/** The first connection of a pause is settled after this time, milliseconds. */
const SETTLE_AFTER_MS = 10;
