/**
 * Keeps threads from being terminated amid calls that cannot bear it. Some functions of the foreign function interface (`alloc`,
 * `view`, `free`, those of poll handles, declarations) throw in a thread that is being terminated, which ends the whole process:
 * `FATAL ERROR: napi_throw`. A thread that seems to hang may turn after all (the machine had no time for it), and be amid such a
 * call at any moment. So each such call is shown in shared memory while it lasts, and whoever wants to terminate the thread
 * closes the gate first: the thread begins no such call any more, and waits to be terminated when it would.
 */

/** Words of memory that a thread shares with those who may terminate it. */
export type TerminationGate = Int32Array<SharedArrayBuffer>;

/** How deep the thread is in such calls. */
const INSIDE = 0;
/** 1: the thread is to be terminated. */
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

/** Makes a call amid which this thread must not be terminated. Does not return once the thread is to be terminated. */
export function unterminated<T>(call: () => T): T {
  const gate = present;
  if (gate === null) return call();
  // First shown, then looked; the other side closes first and then looks: one of the two sees the other.
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
 * For those who want to terminate the thread: closes the gate for good.
 * @returns whether it can be terminated now; false: it is amid such a call, and is to be asked about again
 */
export function closeGate(gate: TerminationGate): boolean {
  Atomics.store(gate, CLOSED, 1);
  return Atomics.load(gate, INSIDE) === 0;
}
