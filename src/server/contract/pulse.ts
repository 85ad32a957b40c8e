/** How a worker shows that it turns. */
import { readlinkSync } from 'node:fs';
import { every, type Clock } from '../../base/clock.ts';

/**
 * A worker's sign of life: words of memory that it shares with the control thread. Nothing is sent and nobody is asked, so
 * that it can be read of a worker that does not answer.
 */
export type Pulse = Int32Array<SharedArrayBuffer>;

/** Counts up while the worker's event loop turns; 0: it has not begun to. */
const BEATS = 0;
/** The system's id of the worker's thread; 0: unknown. */
const THREAD = 1;
/** 1 while it builds a configuration, which may keep it from turning. */
const BUILDING = 2;
/** 1 once its modules and libraries are loaded. */
const LOADED = 3;

/** How often a worker says that it turns, milliseconds. */
const BEAT_MS = 200;

/** The pulse of a worker that has not begun to turn. */
export function makePulse(): Pulse {
  return new Int32Array(new SharedArrayBuffer(16));
}

/**
 * To be called on the worker's thread, once: from now on the pulse beats for as long as the event loop turns.
 * @param also what else is done as often, without a timer of its own
 */
export function beat(pulse: Pulse, clock: Clock, also: () => void = () => undefined): void {
  Atomics.store(pulse, THREAD, ownThread());
  Atomics.add(pulse, BEATS, 1);
  every(clock, BEAT_MS, () => {
    Atomics.add(pulse, BEATS, 1);
    also();
  });
}

/** Changes while the worker turns; 0: it has not begun to. */
export function beatsOf(pulse: Pulse): number {
  return Atomics.load(pulse, BEATS);
}

/** The system's id of the worker's thread; 0: unknown. */
export function threadOf(pulse: Pulse): number {
  return Atomics.load(pulse, THREAD);
}

/** Shows that the worker begins or has ended building a configuration, during which it may not turn for a while. */
export function showBuilding(pulse: Pulse, building: boolean): void {
  Atomics.store(pulse, BUILDING, building ? 1 : 0);
}

/** Whether the worker builds a configuration, which may keep it from turning. */
export function isBuilding(pulse: Pulse): boolean {
  return Atomics.load(pulse, BUILDING) === 1;
}

/** Shows that the worker has loaded all that it runs. */
export function showLoaded(pulse: Pulse): void {
  Atomics.store(pulse, LOADED, 1);
}

/** Whether the worker has loaded all that it runs: before that it must not be terminated (`linux/event-loop.ts`). */
export function hasLoaded(pulse: Pulse): boolean {
  return Atomics.load(pulse, LOADED) === 1;
}

function ownThread(): number {
  try {
    return Number(readlinkSync('/proc/thread-self').split('/').at(-1));
  } catch {
    return 0;
  }
}
