/**
 * Selects the clients whose traffic is examined by doctor's rules. Applying all rules to an exchange costs several
 * times as much as reading it. A subset of clients shows the same proportions as all of them.
 */
import { FIXED_HASH_START, nextFixedHash } from '../../server/base/fixed-hash.ts';

/**
 * Limit on examined exchanges per second. Above it, half of the clients are skipped, then three quarters, and so on.
 */
const EXAMINED_MAX = 1250;
/** The sample always includes at least one out of 2 to this power clients. */
const HALVINGS_MAX = 6;

/** Selects clients by address, so that either all or none of a lookup's exchanges are selected. */
export class ClientSample {
  #halvings = 0;
  #seen = 0;
  #sinceMs: number | null = null;

  /** Counts an exchange. @returns whether it is examined */
  take(client: string): boolean {
    this.#seen++;
    // Respond to a burst before the next check.
    if (this.#seen > 2 * EXAMINED_MAX * 2 ** this.#halvings && this.#halvings < HALVINGS_MAX)
      this.#halvings++;
    return this.has(client);
  }

  has(client: string): boolean {
    if (this.#halvings === 0) return true;
    let hash = FIXED_HASH_START;
    for (let at = 0; at < client.length; at++) hash = nextFixedHash(hash, client.charCodeAt(at));
    // This hash's low bits come from the last character, while the middle bits are mixed.
    return ((hash >>> 12) & ((1 << this.#halvings) - 1)) === 0;
  }

  /** The fraction of clients that are examined. */
  get share(): number {
    return 1 / (1 << this.#halvings);
  }

  /** Checks the rate about once a second, and selects more or fewer clients. */
  advance(nowMs: number): void {
    this.#sinceMs ??= nowMs;
    const seconds = (nowMs - this.#sinceMs) / 1000;
    if (seconds < 1) return;
    const rate = this.#seen / seconds;
    this.#seen = 0;
    this.#sinceMs = nowMs;
    const wanted = Math.ceil(Math.log2(Math.max(1, rate / EXAMINED_MAX)));
    // Avoids flapping when the rate is close to a limit.
    const isLower =
      wanted < this.#halvings && rate < 0.8 * EXAMINED_MAX * 2 ** (this.#halvings - 1);
    if (wanted > this.#halvings || isLower) this.#halvings = Math.min(HALVINGS_MAX, wanted);
  }
}
