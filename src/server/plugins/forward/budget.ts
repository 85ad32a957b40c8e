import type { Gauge } from '../../metrics/registry.ts';

/**
 * Limits packets per second to one upstream: some resolvers (such as those of cloud networks) drop packets
 * above a limit, and every drop costs a client seconds.
 *
 * Packets are spaced, with a small burst: within any second at most `limit` packets leave (burst + rate =
 * limit). A packet taken in advance returns its waiting time, so the queue is only the waits of its members.
 */
export class Budget {
  #limit = 0;
  #gapMs = 0;
  #slackMs = 0;
  /** Time at which the next packet is due with even spacing. */
  #due = 0;
  #sent = 0;
  #second = 0;

  constructor(limit: number) {
    this.limit = limit;
  }

  get limit(): number {
    return this.#limit;
  }

  /** Packets per second; may be a fraction when several workers share an upstream. */
  set limit(limit: number) {
    const burst = Math.max(1, Math.floor(limit / 20));
    this.#limit = limit;
    this.#gapMs = 1000 / Math.max(limit / 2, limit - burst);
    this.#slackMs = (burst - 1) * this.#gapMs;
  }

  /** Milliseconds until a packet may leave; 0: now. */
  wait(now: number): number {
    return Math.max(0, this.#due - this.#slackMs - now);
  }

  /** Takes `packets` out of the budget. */
  spend(packets: number, now: number): void {
    this.#due = Math.max(this.#due, now) + packets * this.#gapMs;
    this.#sent += packets;
  }

  /** Shows the unused packets of the last second. */
  show(headroom: Gauge, now: number): void {
    const seconds = Math.max(0.001, (now - this.#second) / 1000);
    headroom.set(Math.max(0, Math.round(this.#limit - this.#sent / seconds)));
    this.#sent = 0;
    this.#second = now;
  }
}
