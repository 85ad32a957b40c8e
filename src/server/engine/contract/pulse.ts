/** Shows that a worker's event loop is running. */
import { readlinkSync } from 'node:fs';
import { every, type Clock } from '../../base/clock.ts';

/**
 * A worker's heartbeat: a few words of memory shared with the control thread. It involves no messages, so it can be
 * read even if the worker does not respond.
 */
export type Pulse = Int32Array<SharedArrayBuffer>;

/** A counter that increases while the worker's event loop runs, or 0 if it has not started. */
const BEATS = 0;
/** The system's id of the worker's thread; 0: unknown. */
const THREAD = 1;
/** 1 while the worker is building a configuration, which may block its event loop. */
const BUILDING = 2;
/** 1 once its modules and libraries are loaded. */
const LOADED = 3;

/** Milliseconds between two beats. */
const BEAT_MS = 200;

/** Creates the pulse for a worker that has not started yet. */
export function makePulse(): Pulse {
  return new Int32Array(new SharedArrayBuffer(16));
}

/**
 * Call this once, on the worker's thread. From then on, the pulse beats while the event loop runs.
 * @param also an additional job to run with each beat, which saves it a timer
 */
export function beat(pulse: Pulse, clock: Clock, also: () => void = () => undefined): void {
  Atomics.store(pulse, THREAD, ownThread());
  Atomics.add(pulse, BEATS, 1);
  every(clock, BEAT_MS, () => {
    Atomics.add(pulse, BEATS, 1);
    also();
  });
}

/** Returns the beat counter, which changes while the worker's event loop runs, or 0 if the worker has not started. */
export function beatsOf(pulse: Pulse): number {
  return Atomics.load(pulse, BEATS);
}

/** Returns the system's id for the worker's thread, or 0 if it is unknown. */
export function threadOf(pulse: Pulse): number {
  return Atomics.load(pulse, THREAD);
}

/** Sets whether the worker is building a configuration, which may block its event loop. */
export function showBuilding(pulse: Pulse, building: boolean): void {
  Atomics.store(pulse, BUILDING, building ? 1 : 0);
}

/** Returns true if the worker is building a configuration, which may block its event loop. */
export function isBuilding(pulse: Pulse): boolean {
  return Atomics.load(pulse, BUILDING) === 1;
}

/** Records that the worker has loaded all its code. */
export function showLoaded(pulse: Pulse): void {
  Atomics.store(pulse, LOADED, 1);
}

/**
 * Returns true if the worker has loaded all its code. Until then, it must not be terminated (`runtime/event-loop.ts`).
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
