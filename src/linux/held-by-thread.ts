/**
 * What a thread holds past the runtime: descriptors and memory. The runtime gives back what it knows of when a thread ends, but
 * not these, and a thread that is out of memory or terminated does not come to give them back itself. A socket that outlives
 * its thread stays bound, and the system goes on handing it a share of all queries, which nobody reads. So both are noted where
 * they outlive the thread, in shared memory, and the next thread in its place is given the notes: it goes on with the sockets
 * and gives back the rest.
 */

const DESCRIPTORS = 4096;
const PIECES = 256;

/** The notes: shared memory with a fixed number of places. What finds no place is not noted, and lost with its thread. */
export interface HeldByThread {
  /** Descriptor plus one; 0: free. */
  readonly descriptors: Int32Array<SharedArrayBuffer>;
  /** Addresses; 0: free. */
  readonly memory: Float64Array<SharedArrayBuffer>;
}

/** Notes for a thread and all that will take its place. */
export function makeNotes(): HeldByThread {
  return {
    descriptors: new Int32Array(new SharedArrayBuffer(4 * DESCRIPTORS)),
    memory: new Float64Array(new SharedArrayBuffer(8 * PIECES)),
  };
}

/**
 * The same notes without the memory: for the successor of a thread that could not be ended, which may still write there.
 */
export function withoutMemory({ descriptors }: HeldByThread): HeldByThread {
  return { ...makeNotes(), descriptors };
}

let present: HeldByThread | null = null;
/** Where to look for a free slot first. */
let next = 0;
/** Left behind by the thread before, and not taken over yet. */
let orphans: number[] = [];
let orphanMemory: number[] = [];

/** From now on this thread notes there what it holds. What is noted already was left behind by the thread before it. */
export function useNotes(notes: HeldByThread): void {
  present = notes;
  next = 0;
  orphans = Array.from(notes.descriptors, (word) => word - 1).filter((fd) => fd >= 0);
  orphanMemory = Array.from(notes.memory).filter((address) => address > 0);
}

/** This thread holds the descriptor. */
export function noteDescriptor(fd: number): void {
  if (present === null) return;
  const { descriptors } = present;
  for (let looked = 0; looked < DESCRIPTORS; looked++) {
    const slot = (next + looked) % DESCRIPTORS;
    if (descriptors[slot] !== 0) continue;
    descriptors[slot] = fd + 1;
    next = slot + 1;
    return;
  }
}

/** To be called before the descriptor is closed: from then on its number may be somebody else's. */
export function forgetDescriptor(fd: number): void {
  if (present === null) return;
  const slot = present.descriptors.indexOf(fd + 1);
  if (slot < 0) return;
  present.descriptors[slot] = 0;
  next = slot;
}

/** This thread holds the memory. */
export function noteMemory(address: number): void {
  const slot = present?.memory.indexOf(0) ?? -1;
  if (slot >= 0) present!.memory[slot] = address;
}

/** To be called before the memory is freed. */
export function forgetMemory(address: number): void {
  const slot = present?.memory.indexOf(address) ?? -1;
  if (slot >= 0) present!.memory[slot] = 0;
}

/** The first descriptor left behind that `fits`; it is the caller's from then on, and stays noted. */
export function takeOrphan(fits: (fd: number) => boolean): number | null {
  const index = orphans.findIndex(fits);
  return index < 0 ? null : orphans.splice(index, 1)[0]!;
}

/** All that was left behind and that nobody has taken: the caller gives it back. */
export function takeOrphans(): {
  readonly descriptors: readonly number[];
  readonly memory: readonly number[];
} {
  const left = { descriptors: orphans, memory: orphanMemory };
  orphans = [];
  orphanMemory = [];
  return left;
}
