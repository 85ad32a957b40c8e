/**
 * Protects threads from termination during calls that must not be interrupted. In a thread that is being terminated,
 * some functions of the foreign function interface throw (`alloc`, `view`, `free`, those of poll handles,
 * declarations). That ends the whole process: `FATAL ERROR: napi_throw`. A thread that appears to hang may only be
 * short of CPU time, and may be inside such a call at any moment. Each such call is therefore marked in shared memory
 * while it lasts, and the terminating thread closes the gate first. From then on, the thread starts no such call but
 * waits to be terminated.
 */

/** Memory shared between a thread and the threads that may terminate it. */
export type TerminationGate = Int32Array<SharedArrayBuffer>;

/** Nesting depth of such calls. */
const INSIDE = 0;
/** 1 if the thread is about to be terminated. */
const CLOSED = 1;

export function makeGate(): TerminationGate {
  return new Int32Array(new SharedArrayBuffer(8));
}

let present: TerminationGate | null = null;

/** Call on the thread that may be terminated, before anything else here. */
export function useGate(gate: TerminationGate): void {
  present = gate;
}

/**
 * Makes a call during which this thread must not be terminated. Does not return if the thread is about to be
 * terminated.
 */
export function unterminated<T>(call: () => T): T {
  const gate = present;
  if (gate === null) return call();
  // This thread marks and then checks, while the other closes and then checks. At least one of them notices the other.
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
 * Closes the gate permanently, in order to terminate the thread.
 * @returns true if the thread can be terminated now; false if it is inside such a call, so call this again
 */
export function closeGate(gate: TerminationGate): boolean {
  Atomics.store(gate, CLOSED, 1);
  return Atomics.load(gate, INSIDE) === 0;
}
