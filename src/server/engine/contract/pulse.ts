/** Shows that a worker's event loop is running. */
import { readlinkSync } from 'node:fs';
import { every, type Clock } from '../../base/clock.ts';

/**
 * A worker's sign of life: a few words of memory shared with the control thread. No messages are
 * involved, so it can be read even if the worker does not respond.
 */
export type Pulse = Int32Array<SharedArrayBuffer>;

/** A counter that rises while the worker's event loop runs; 0: it has not begun to. */
const BEATS = 0;
/** The system's id of the worker's thread; 0: unknown. */
const THREAD = 1;
/** 1 while the worker builds a configuration, which may block its event loop. */
const BUILDING = 2;
/** 1 once its modules and libraries are loaded. */
const LOADED = 3;

/** Milliseconds between two beats. */
const BEAT_MS = 200;

/** The pulse of a worker that has not started. */
export function makePulse(): Pulse {
  return new Int32Array(new SharedArrayBuffer(16));
}

/**
 * To be called once, on the worker's thread: from now on the pulse beats while the event loop runs.
 * @param also another job to do at each beat, to save it a timer
 */
export function beat(pulse: Pulse, clock: Clock, also: () => void = () => undefined): void {
  Atomics.store(pulse, THREAD, ownThread());
  Atomics.add(pulse, BEATS, 1);
  every(clock, BEAT_MS, () => {
    Atomics.add(pulse, BEATS, 1);
    also();
  });
}

/** The counter of beats; it changes while the worker's event loop runs; 0: it has not begun to. */
export function beatsOf(pulse: Pulse): number {
  return Atomics.load(pulse, BEATS);
}

/** The system's id of the worker's thread; 0: unknown. */
export function threadOf(pulse: Pulse): number {
  return Atomics.load(pulse, THREAD);
}

/**
 * Sets whether the worker is building a configuration, during which its event loop may be blocked.
 */
export function showBuilding(pulse: Pulse, building: boolean): void {
  Atomics.store(pulse, BUILDING, building ? 1 : 0);
}

/** True if the worker is building a configuration, which may block its event loop. */
export function isBuilding(pulse: Pulse): boolean {
  return Atomics.load(pulse, BUILDING) === 1;
}

/** Sets that the worker has loaded all its code. */
export function showLoaded(pulse: Pulse): void {
  Atomics.store(pulse, LOADED, 1);
}

/**
 * True if the worker has loaded all its code: before that it must not be terminated
 * (`runtime/event-loop.ts`).
 */
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
