/** One input of the live model: packets, dnstap, a log, a file that is replayed. */
import { printElapsed } from '../../server/base/elapsed.ts';
import type { SearchDomains } from '../capture/pair/search-walk.ts';
import { printRemark } from '../capture/read/packets/remarks.ts';
import { Reading, type ReadingEvents } from '../capture/read/reading.ts';
import type { InputRow } from './view.ts';

/** A clock that is further off than this makes its messages fall out of the window, milliseconds. */
const OFF_MS = 5000;
/** Looks at the clock after which its distance is believed, and by how much they may differ. */
const LOOKS = 3;
const STEADY_MS = 2000;
/** Lines of a log without times count from the beginning of time, milliseconds. */
const UNTIMED_MS = 30 * 24 * 3600 * 1000;
/** Packets wait in the kernel and in buffers for so long at most, milliseconds. */
const SLACK_MS = 1000;

export interface LiveInputParts {
  /** For people: `interface eth0, port 53`. */
  readonly name: string;
  readonly ports: readonly number[];
  /**
   * `now`: its messages are of the present, so a clock that is off is corrected. `own`: its messages
   * move the time of the model, as those of a file do that is replayed at any speed.
   */
  readonly time: 'now' | 'own';
}

/** Gives packets, messages and lines to the model. */
export class LiveInput {
  readonly name: string;
  /** Gets the input: `takeNetwork`, `takeMessage`, or `read` for a file or a log. */
  readonly reading: Reading;
  readonly #time: LiveInputParts['time'];
  readonly #now: () => number;
  #state: InputRow['state'] = 'reading';
  #why = '';
  #awayMs: number | null = null;
  #lostByKernel = 0;
  #aheadMs = 0;
  /** The lead of the newest message over the model's time, for each of the last looks. */
  #looks: number[] = [];
  /** On its own clock; -Infinity: no input since the last check. */
  #newestMs = -Infinity;
  #lastMs: number | null = null;

  /**
   * @param now the time of the model
   * @param domains shared by all inputs
   */
  constructor(
    { name, ports, time }: LiveInputParts,
    events: ReadingEvents,
    now: () => number,
    domains: SearchDomains,
  ) {
    this.name = name;
    this.#time = time;
    this.#now = now;
    this.reading = new Reading(events, ports, {
      domains,
      ...(time === 'now' && { clock: (ms: number) => this.#onClock(ms) }),
    });
  }

  /** Notes packets that the kernel has dropped: all since the input began. */
  lostByKernel(packets: number): void {
    this.#lostByKernel = packets;
  }

  /** The other side is unavailable, and is tried again. @param why a text for people */
  away(why: string): void {
    if (this.#state === 'ended' || this.#state === 'failed') return;
    this.#awayMs ??= this.#now();
    this.#state = 'away';
    this.#why = why;
  }

  /** Its messages come again. */
  back(): void {
    if (this.#state !== 'away') return;
    this.#state = 'reading';
    this.#why = '';
    this.#awayMs = null;
  }

  /** Nothing more comes. @param why for people, if it failed */
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

  /** Packets that the kernel has dropped. */
  get lost(): number {
    return this.#lostByKernel;
  }

  /** @returns changes of its clock, as text; empty: none */
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

  /** The parts that it could not read, as text. */
  get remarks(): readonly string[] {
    return this.reading.remarks.list.map((remark) => `${this.name}: ${printRemark(remark)}`);
  }

  #onClock(ms: number): number {
    const nowMs = this.#now();
    if (ms < UNTIMED_MS && nowMs > UNTIMED_MS) return (this.#lastMs = nowMs);
    if (ms > this.#newestMs) this.#newestMs = ms;
    // A time to come would make the whole window old: until the clock is known, it is now.
    const isAhead = ms - this.#aheadMs > nowMs + OFF_MS && Number.isFinite(nowMs);
    return (this.#lastMs = isAhead ? nowMs : ms - this.#aheadMs);
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
