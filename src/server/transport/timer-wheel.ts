import type { Clock, Timer } from '../base/clock.ts';

/** Something that has a deadline. It can be in only one wheel at a time. */
export abstract class Timed {
  /** For the wheel's use: the neighbours in the slot's ring, and the tick when this is due. */
  nextTimed: Timed | null = null;
  previousTimed: Timed | null = null;
  dueTick = 0;

  /** Called when the deadline has passed. By then, the item has been removed from the wheel. */
  abstract expire(): void;
}

/** The head of a slot's ring. */
class WheelSlot extends Timed {
  constructor() {
    super();
    this.nextTimed = this;
    this.previousTimed = this;
  }

  override expire(): void {}
}

/** A power of two, so that no division is needed to find a tick's slot. */
const SLOTS = 256;
const LAST_SLOT: number = SLOTS - 1;

/** Number of ticks by which a turn must be late to show that the thread or the whole process was stopped. */
const LATE = 4;

/**
 * Manages many deadlines with a single timer. Setting or cancelling one costs a few memory writes, however many there
 * are. A deadline may fire up to one tick late, but never early. The timer runs only while deadlines are set. Node runs
 * timers before it reads. After a standstill (a stopped process, or a container without CPU time), the wheel therefore
 * waits for one more tick. Bytes that have already arrived are then read before their deadline counts.
 */
export class TimerWheel {
  readonly #clock: Clock;
  readonly #tickMs: number;
  readonly #slots: WheelSlot[] = Array.from({ length: SLOTS }, () => new WheelSlot());
  #count = 0;
  /** All ticks up to this one have been processed. */
  #done = 0;
  #alarm: Timer | null = null;
  /** The tick at which the alarm is due. */
  #alarmTick = 0;
  /** True if the previous turn was late and its work was postponed. */
  #isPutOff = false;

  /** @param tickMs maximum delay of a deadline */
  constructor(clock: Clock, tickMs: number) {
    this.#clock = clock;
    this.#tickMs = tickMs;
  }

  get size(): number {
    return this.#count;
  }

  /**
   * Sets or moves the deadline.
   * @param now the clock's current time, if the caller already has it
   */
  set(item: Timed, delayMs: number, now: number = this.#clock.now()): void {
    const tick = Math.ceil((now + delayMs) / this.#tickMs);
    if (item.nextTimed !== null) unlink(item);
    else if (this.#count++ === 0) this.#done = Math.floor(now / this.#tickMs);
    item.dueTick = Math.max(tick, this.#done + 1);
    const slot = this.#slots[item.dueTick & LAST_SLOT]!;
    item.nextTimed = slot;
    item.previousTimed = slot.previousTimed;
    slot.previousTimed!.nextTimed = item;
    slot.previousTimed = item;
    if (this.#alarm === null) this.#arm(Math.floor(now / this.#tickMs));
  }

  cancel(item: Timed): void {
    if (item.nextTimed === null) return;
    unlink(item);
    this.#count--;
  }

  /** Clears the timer. Nothing expires any more until another deadline is set. */
  stop(): void {
    this.#alarm?.cancel();
    this.#alarm = null;
  }

  /** @param now tick */
  #arm(now: number): void {
    this.#alarmTick = now + 1;
    this.#alarm = this.#clock.after(this.#tickMs, this.#turn);
  }

  #turn = (): void => {
    this.#alarm = null;
    const now = Math.floor(this.#clock.now() / this.#tickMs);
    // Do this only once, because a thread that is late in every turn has read in between.
    this.#isPutOff = !this.#isPutOff && now - this.#alarmTick >= LATE;
    if (this.#isPutOff) return this.#arm(now);
    // After a long pause, each slot still has to be processed only once.
    const first = Math.max(this.#done + 1, now - SLOTS + 1);
    this.#done = now;
    for (let tick = first; tick <= now; tick++)
      this.#expireSlot(this.#slots[tick & LAST_SLOT]!, now);
    if (this.#count > 0 && this.#alarm === null) this.#arm(now);
  };

  #expireSlot(slot: WheelSlot, now: number): void {
    // Move due items to a list first, because `expire` may set and cancel any deadline, even one in this slot.
    const due: Timed[] = [];
    for (let item = slot.nextTimed!; item !== slot; item = item.nextTimed!) {
      if (item.dueTick <= now) due.push(item);
    }
    for (const item of due) {
      if (item.nextTimed === null || item.dueTick > now) continue;
      unlink(item);
      this.#count--;
      item.expire();
    }
  }
}

function unlink(item: Timed): void {
  item.previousTimed!.nextTimed = item.nextTimed;
  item.nextTimed!.previousTimed = item.previousTimed;
  item.nextTimed = null;
  item.previousTimed = null;
}
