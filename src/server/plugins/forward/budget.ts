import type { Gauge } from '../../metrics/registry.ts';

/**
 * Limits the number of packets per second sent to one upstream. Some resolvers, such as those in cloud networks, drop
 * packets above a limit, and every drop costs a client seconds. Packets are spaced evenly, with a small burst: at most
 * `limit` packets are sent within any second (burst + rate = limit). Reserving a packet returns how long to wait, so
 * the queue is simply the waiting times of its members.
 */
export class Budget {
  #limit = 0;
  #gapMs = 0;
  #slackMs = 0;
  /** Time when the next evenly spaced packet is due. */
  #due = 0;
  #sent = 0;
  #second = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  get limit(): number {
    return this.#limit;
  }

  /** Packets per second, which can be a fraction if several workers share an upstream. */
  set limit(limit: number) {
    const burst = Math.max(1, Math.floor(limit / 20));
    this.#limit = limit;
    this.#gapMs = 1000 / Math.max(limit / 2, limit - burst);
    this.#slackMs = (burst - 1) * this.#gapMs;
  }

  /** Returns how many milliseconds to wait before sending a packet; 0 means now. */
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
