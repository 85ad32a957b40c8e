/** Joins lookups with the connections that followed them. Lookups are delayed until their connections were seen. */
import type { SeenLookup } from '../pair/seen-exchange.ts';
import type { Attribution } from './attribution.ts';
import { OpenedConnections, type OpenedConnection } from './opened-connections.ts';

/** Milliseconds; a program connects within this time after its last reply. */
const HOLD_MS = 1000;
/** Delayed lookups; at the limit the oldest are reported early. */
const HELD_MAX = 10_000;

/** Reports a lookup with its connections. */
export type TellLookup = (lookup: SeenLookup, next: readonly OpenedConnection[]) => void;

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

  /** @returns true if the packet opens a connection other than DNS */
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

  /** Call it periodically: reports the lookups whose delay has passed. */
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

/** Milliseconds after which the first connection of a pause is settled. */
const SETTLE_AFTER_MS = 10;
