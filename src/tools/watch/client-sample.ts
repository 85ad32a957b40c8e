/**
 * The clients whose traffic doctor's rules look at. To apply all rules to an exchange costs several
 * times as much as to read it. A part of the clients has the same shares as all.
 */
import { FIXED_HASH_START, nextFixedHash } from '../../server/base/fixed-hash.ts';

/** Observed exchanges per second; with more, half of the clients are skipped, and so on. */
const EXAMINED_MAX = 1250;
/** The sample never has fewer than one client in 2 to this power. */
const HALVINGS_MAX = 6;

/** Chooses clients by their addresses, so that all exchanges of a lookup are chosen or none. */
export class ClientSample {
  #halvings = 0;
  #seen = 0;
  #sinceMs: number | null = null;

  /** Counts an exchange. @returns whether it is observed */
  take(client: string): boolean {
    this.#seen++;
    // A burst does not wait for the next look.
    if (this.#seen > 2 * EXAMINED_MAX * 2 ** this.#halvings && this.#halvings < HALVINGS_MAX)
      this.#halvings++;
    return this.has(client);
  }

  has(client: string): boolean {
    if (this.#halvings === 0) return true;
    let hash = FIXED_HASH_START;
    for (let at = 0; at < client.length; at++) hash = nextFixedHash(hash, client.charCodeAt(at));
    // The low bits of this hash are those of the last character; the middle ones are mixed.
    return ((hash >>> 12) & ((1 << this.#halvings) - 1)) === 0;
  }

  /** The share of the clients that are observed. */
  get share(): number {
    return 1 / (1 << this.#halvings);
  }

  /** Looks at the rate, each second or so, and chooses more clients or fewer. */
  advance(nowMs: number): void {
    this.#sinceMs ??= nowMs;
    const seconds = (nowMs - this.#sinceMs) / 1000;
    if (seconds < 1) return;
    const rate = this.#seen / seconds;
    this.#seen = 0;
    this.#sinceMs = nowMs;
    const wanted = Math.ceil(Math.log2(Math.max(1, rate / EXAMINED_MAX)));
    // A rate that lies near a limit does not change the choice all the time.
    const isLower =
      wanted < this.#halvings && rate < 0.8 * EXAMINED_MAX * 2 ** (this.#halvings - 1);
    if (wanted > this.#halvings || isLower) this.#halvings = Math.min(HALVINGS_MAX, wanted);
  }
}
