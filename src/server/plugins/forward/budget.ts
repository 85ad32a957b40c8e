import type { Gauge } from '../../metrics/registry.ts';

/**
 * Limits packets per second to one upstream. Some resolvers, such as those in cloud networks, drop packets above a
 * limit, and every drop costs a client seconds.
 * Packets are spaced evenly, with a small burst: at most `limit` packets leave within any second (burst + rate =
 * limit). Reserving a packet in advance returns its waiting time, so the queue consists only of its members' waits.
 */
export class Budget {
  #limit = 0;
  #gapMs = 0;
  #slackMs = 0;
  /** Time when the next packet is due with even spacing. */
  #due = 0;
  #sent = 0;
  #second = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  get limit(): number {
    return this.#limit;
  }

  /** Packets per second; may be fractional if several workers share an upstream. */
  set limit(limit: number) {
    const burst = Math.max(1, Math.floor(limit / 20));
    this.#limit = limit;
    this.#gapMs = 1000 / Math.max(limit / 2, limit - burst);
    this.#slackMs = (burst - 1) * this.#gapMs;
  }

  /** Returns the milliseconds until a packet may leave; 0 means now. */
  wait(now: number): number {
    return Math.max(0, this.#due - this.#slackMs - now);
  }

  /** Deducts `packets` from the budget. */
  spend(packets: number, now: number): void {
    this.#due = Math.max(this.#due, now) + packets * this.#gapMs;
    this.#sent += packets;
  }

  /** Exports the last second's unused packets. */
  show(headroom: Gauge, now: number): void {
    const seconds = Math.max(0.001, (now - this.#second) / 1000);
    headroom.set(Math.max(0, Math.round(this.#limit - this.#sent / seconds)));
    this.#sent = 0;
    this.#second = now;
  }
}
