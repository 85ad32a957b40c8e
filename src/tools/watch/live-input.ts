/** An input to the live model, which may be packets, dnstap, a log, or a replayed file. */
import { printElapsed } from '../../server/base/elapsed.ts';
import type { SearchDomains } from '../capture/pair/search-walk.ts';
import { printRemark } from '../capture/read/packets/remarks.ts';
import { Reading, type ReadingEvents } from '../capture/read/reading.ts';
import type { Peer } from '../../server/wire/exchange.ts';
import type { InputRow } from './view.ts';

/** In milliseconds. If a clock is off by more than this, its messages fall outside the window. */
const OFF_MS = 5000;
/** The number of readings needed to trust a clock's offset, and how far apart they may be. */
const LOOKS = 3;
const STEADY_MS = 2000;
/** In milliseconds. Log lines without times count from 1970. */
const UNTIMED_MS = 30 * 24 * 3600 * 1000;
/** No interface receives more packets in a second: 100 Gbit/s of the shortest Ethernet frames (84 bytes on the wire). */
const PACKETS_PER_S_MAX = 148_809_523;
/** The shortest interval for which a loss count is judged, in milliseconds, because counts arrive in batches. */
const COUNT_MS = 5000;
/** The maximum time that packets wait in the kernel and in buffers, in milliseconds. */
const SLACK_MS = 1000;

export interface LiveInputParts {
  /** A display name: `interface eth0, port 53`. */
  readonly name: string;
  readonly ports: readonly number[];
  /**
   * `now` if messages are live, so that a clock that is off gets corrected. `own` if messages advance the model's time,
   * as for a file replayed at any speed.
   */
  readonly time: 'now' | 'own';
  /** The server that reports its own queries and reloads. Null for packets, logs and other programs. */
  readonly server: Peer | null;
}

export class LiveInput {
  readonly name: string;
  readonly number: number;
  /** Receives the input through `takeNetwork`, `takeMessage` or, for a file or a log, `read`. */
  readonly reading: Reading;
  readonly #time: LiveInputParts['time'];
  readonly #now: () => number;
  #state: InputRow['state'] = 'reading';
  #why = '';
  #awayMs: number | null = null;
  #lostByKernel = 0;
  /** The time of the last count; -Infinity: none. */
  #countedMs = -Infinity;
  #aheadMs = 0;
  /** The time that the newest message was ahead of the model's time, at each of the last checks. */
  #looks: number[] = [];
  /** On its own clock, or -Infinity if there was no input since the last check. */
  #newestMs = -Infinity;
  #lastMs: number | null = null;

  /**
   * @param now the model's time
   * @param domains shared by all inputs
   */
  constructor(
    number: number,
    { name, ports, time }: LiveInputParts,
    events: ReadingEvents,
    now: () => number,
    domains: SearchDomains,
  ) {
    this.name = name;
    this.number = number;
    this.#time = time;
    this.#now = now;
    this.reading = new Reading(events, ports, {
      domains,
      ...(time === 'now' && { clock: (ms: number) => this.#onClock(ms) }),
    });
  }

  /**
   * Records the packets that the kernel has dropped since the input started. The number may come from another machine.
   * The count never falls, and grows at most by the packets that an interface can receive between two calls. Otherwise,
   * it would hide the losses of other inputs.
   */
  lostByKernel(packets: number): void {
    const nowMs = this.#now();
    const more = packets - this.#lostByKernel;
    const passedMs = Number.isFinite(this.#countedMs) ? nowMs - this.#countedMs : 0;
    const most = (PACKETS_PER_S_MAX * Math.max(COUNT_MS, passedMs)) / 1000;
    this.#countedMs = nowMs;
    if (more > 0) this.#lostByKernel += Math.min(more, Math.round(most));
  }

  /**
   * Marks the other side as unavailable. It will be retried.
   * @param why a text for the user
   */
  away(why: string): void {
    if (this.#state === 'ended' || this.#state === 'failed') return;
    this.#awayMs ??= this.#now();
    this.#state = 'away';
    this.#why = why;
  }

  /** Marks its messages as coming in again. */
  back(): void {
    if (this.#state !== 'away') return;
    this.#state = 'reading';
    this.#why = '';
    this.#awayMs = null;
  }

  /** @param why for the user, if it failed */
  close(why = ''): void {
    if (!this.isOpen) return;
    this.reading.end();
    // The last view still shows an unavailable input.
    const last = this.#state === 'away' ? this.#why : why;
    this.#state = last === '' ? 'ended' : 'failed';
    this.#why = last;
  }

  get isOpen(): boolean {
    return this.#state === 'reading' || this.#state === 'away';
  }

  /** Converts a time from this input into the model's. It may be ahead by the time since the model's last step. */
  modelMs(ms: number): number {
    const nowMs = this.#now();
    // A time in the future would make the whole window old, so use the current time until the clock is known.
    const isAhead = ms - this.#aheadMs > nowMs + OFF_MS && Number.isFinite(nowMs);
    return isAhead ? nowMs : ms - this.#aheadMs;
  }

  get lost(): number {
    return this.#lostByKernel;
  }

  /** @returns changes to its clock, as text; empty if there are none */
  advance(nowMs: number): string {
    if (!this.isOpen) return '';
    this.reading.advance(nowMs - SLACK_MS);
    return this.#time === 'now' ? this.#judgeClock(nowMs) : '';
  }

  row(): InputRow {
    const { totals } = this.reading;
    const isOff = this.#aheadMs !== 0;
    return {
      name: this.name,
      state: this.#state,
      why: this.#why,
      awayMs: this.#awayMs,
      queries: totals.exchanges,
      lookups: totals.lookups,
      lostByKernel: this.#lostByKernel,
      lastMs: this.#lastMs,
      aheadMs: this.#aheadMs,
      odd: isOff ? `${printClock(this.#aheadMs)}; its times are corrected` : '',
    };
  }

  get remarks(): readonly string[] {
    return this.reading.remarks.list.map((remark) => `${this.name}: ${printRemark(remark)}`);
  }

  #onClock(ms: number): number {
    const nowMs = this.#now();
    if (ms < UNTIMED_MS && nowMs > UNTIMED_MS) return (this.#lastMs = nowMs);
    if (ms > this.#newestMs) this.#newestMs = ms;
    return (this.#lastMs = this.modelMs(ms));
  }

  #judgeClock(nowMs: number): string {
    if (this.#newestMs === -Infinity) return '';
    this.#looks = [...this.#looks, this.#newestMs - nowMs].slice(-LOOKS);
    this.#newestMs = -Infinity;
    const [least, most] = [Math.min(...this.#looks), Math.max(...this.#looks)];
    if (this.#looks.length < LOOKS || most - least > STEADY_MS) return '';
    if (Math.abs(most - this.#aheadMs) <= OFF_MS) return '';
    this.#aheadMs = Math.abs(most) <= OFF_MS ? 0 : most;
    // Open exchanges belong to the old time.
    this.reading.end();
    return `${this.name}: ${printClock(this.#aheadMs)}`;
  }
}

function printClock(aheadMs: number): string {
  if (aheadMs === 0) return 'its clock agrees again';
  return `its clock is ${printElapsed(Math.abs(aheadMs))} ${aheadMs > 0 ? 'ahead' : 'behind'}`;
}
