/**
 * Keeps threads from being terminated during calls that must not be interrupted. Some functions of
 * the foreign function interface throw in a thread that is being terminated (`alloc`, `view`,
 * `free`, those of poll handles, declarations). That ends the whole process:
 * `FATAL ERROR: napi_throw`. A thread that seems to hang may only lack CPU time, and be inside such
 * a call at any moment. So each such call is marked in shared memory while it lasts, and the
 * terminating thread closes the gate first: from then on the thread begins no such call but waits
 * to be terminated.
 */

/** Memory that a thread shares with the threads that may terminate it. */
export type TerminationGate = Int32Array<SharedArrayBuffer>;

/** The nesting depth of such calls. */
const INSIDE = 0;
/** 1: the thread will be terminated. */
const CLOSED = 1;

/** An open gate. */
export function makeGate(): TerminationGate {
  return new Int32Array(new SharedArrayBuffer(8));
}

let present: TerminationGate | null = null;

/** To be called on the thread that may be terminated, before it calls anything else here. */
export function useGate(gate: TerminationGate): void {
  present = gate;
}

/**
 * Makes a call during which this thread must not be terminated. Does not return once the thread is
 * to be terminated.
 */
export function unterminated<T>(call: () => T): T {
  const gate = present;
  if (gate === null) return call();
  // This thread first marks, then checks; the other one first closes, then checks: one of the two
  // sees the other.
  if (Atomics.add(gate, INSIDE, 1) === 0 && Atomics.load(gate, CLOSED) === 1) {
    Atomics.sub(gate, INSIDE, 1);
    for (;;) Atomics.wait(gate, CLOSED, 1);
  }
  try {
    return call();
  } finally {
    Atomics.sub(gate, INSIDE, 1);
  }
}

/**
 * Closes the gate for good, in order to terminate the thread. @returns whether it can be terminated
 * now; false: it is inside such a call, so call this again
 */
export function closeGate(gate: TerminationGate): boolean {
  Atomics.store(gate, CLOSED, 1);
  return Atomics.load(gate, INSIDE) === 0;
}
