/** Records where a query spends its time. */
import type { Clock } from '../../base/clock.ts';
import { printHostPort } from '../../base/ip.ts';
import { rcodeName } from '../../wire/iana.ts';
import type { LinkRecorder } from '../../transport/query.ts';
import { printSeconds } from '../../engine/contract/log-format.ts';

/** Maximum number of recorded links, because a query can loop. This is a power of two. */
const LINKS_MAX = 64;
/** Maximum number of recorded exchanges with upstreams. */
const EXCHANGES_MAX = 8;
/** Number of distinct values for a recorder's uses. Combined with the link number, each is a small integer. */
const USES = 1 << 20;
/** Shorter times, in milliseconds, are not reported. */
const WORTH_MS = 0.5;

/**
 * The cache's part in a reply. `joined` means that it used another query's exchange, and `-` that the query did not
 * reach the cache.
 */
export type CacheState = 'hit' | 'joined' | 'miss' | '-';

/**
 * Records which links a query enters, and when they have their reply. Events in the turn when the query arrives take
 * too little time to matter, so the clock is read only from `wait` on. A recorder whose query was answered at once is
 * reused (`begin`), and late events from the previous query are ignored.
 */
export class SlowRecorder implements LinkRecorder {
  readonly #clock: Clock;
  readonly #names: string[] = [];
  readonly #within: number[] = [];
  readonly #began: number[] = [];
  readonly #ended: number[] = [];
  readonly #others: number[] = [];
  readonly #exchanges: string[] = [];
  #other: LinkRecorder | null = null;
  #use = 0;
  #size = 0;
  #inner = -1;
  #more = 0;
  #begun = 0;
  #waiting = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Starts recording a query that arrived at this clock time.
   * @param other another recorder for the query
   */
  begin(at: number, other: LinkRecorder | null): void {
    this.#use = (this.#use + 1) & (USES - 1);
    this.#size = 0;
    this.#inner = -1;
    this.#begun = at;
    this.#other = other;
  }

  wait(): void {
    this.#waiting = true;
  }

  entered(link: string): number {
    const index = this.#size;
    if (index >= LINKS_MAX) return -1;
    this.#size++;
    this.#names[index] = link;
    this.#within[index] = this.#inner;
    this.#began[index] = this.#waiting ? this.#clock.now() : this.#begun;
    this.#ended[index] = -1;
    this.#inner = index;
    if (this.#other !== null) this.#others[index] = this.#other.entered(link);
    return this.#use * LINKS_MAX + index;
  }

  left(span: number): void {
    const index = this.#indexOf(span);
    if (index < 0) return;
    this.#inner = this.#within[index]!;
    if (this.#other !== null) this.#other.left(this.#others[index]!);
  }

  done(span: number): void {
    const index = this.#indexOf(span);
    if (index < 0) return;
    this.#ended[index] = this.#waiting ? this.#clock.now() : this.#begun;
    if (this.#other !== null) this.#other.done(this.#others[index]!);
  }

  /**
   * Records a finished exchange with an upstream.
   * @param rcode -1 if there was no reply
   */
  exchanged(host: string, port: number, proto: string, sentAt: number, rcode: number): void {
    if (this.#exchanges.length >= EXCHANGES_MAX) {
      this.#more++;
      return;
    }
    const took = printSeconds(rounded(this.#clock.now() - sentAt));
    const result = rcode < 0 ? 'no-reply' : rcodeName(rcode);
    this.#exchanges.push(`${proto}://${printHostPort(host, port)}/${result}/${took}`);
  }

  get cache(): CacheState {
    for (let index = 0; index < this.#size; index++) {
      if (this.#names[index] !== 'cache') continue;
      if (this.#within.lastIndexOf(index, this.#size - 1) >= 0) return 'miss';
      return this.#ended[index] === this.#begun ? 'hit' : 'joined';
    }
    return '-';
  }

  /** Formats the exchanges with upstreams in order: `udp://10.0.0.53:53/no-reply/2s`. Returns `-` if none has ended. */
  get upstreams(): string {
    if (this.#exchanges.length === 0) return '-';
    return this.#exchanges.join(',') + (this.#more > 0 ? `,+${this.#more}` : '');
  }

  /**
   * Formats the time spent in each link itself, excluding the links after it, longest first:
   * `forward:2.003s,cache:0.1s`. Returns `-` if none has ended.
   * @param end clock time in ms
   */
  spent(end: number): string {
    const own = new Map<string, number>();
    const add = (index: number, ms: number): void => {
      const name = this.#names[index]!;
      own.set(name, (own.get(name) ?? 0) + ms);
    };
    for (let index = 0; index < this.#size; index++) {
      const ended = this.#ended[index]!;
      const took = (ended < 0 ? end : ended) - this.#began[index]!;
      add(index, took);
      if (this.#within[index]! >= 0) add(this.#within[index]!, -took);
    }
    const longest = [...own].filter(([, ms]) => ms >= WORTH_MS).toSorted((a, b) => b[1] - a[1]);
    return longest.map(([name, ms]) => `${name}:${printSeconds(rounded(ms))}`).join(',') || '-';
  }

  #indexOf(span: number): number {
    return span >= 0 && Math.floor(span / LINKS_MAX) === this.#use ? span % LINKS_MAX : -1;
  }
}

/** Rounds to a microsecond. */
function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
