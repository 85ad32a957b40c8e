/**
 * Records descriptors and memory held by a thread but unknown to Node, which therefore does not release them when the
 * thread ends. A thread that runs out of memory or is terminated cannot release them either. A socket that outlives its
 * thread stays bound, and the kernel keeps giving it a share of all queries, which no thread reads. Both are therefore
 * recorded in shared memory, which outlives the thread. The replacement thread receives the records, continues with the
 * sockets, and releases the rest.
 */

const DESCRIPTORS = 4096;
const PIECES = 256;

/**
 * Records in shared memory with a fixed number of slots. If all slots are in use, the resource is not recorded and is
 * leaked when its thread ends.
 */
export interface HeldByThread {
  /** Descriptor plus one; 0: free. */
  readonly descriptors: Int32Array<SharedArrayBuffer>;
  /** Addresses; 0: free. */
  readonly memory: Float64Array<SharedArrayBuffer>;
}

/** Creates the records for a thread and all its replacements. */
export function makeNotes(): HeldByThread {
  return {
    descriptors: new Int32Array(new SharedArrayBuffer(4 * DESCRIPTORS)),
    memory: new Float64Array(new SharedArrayBuffer(8 * PIECES)),
  };
}

/**
 * Returns the records without the memory, for the replacement of a thread that could not be stopped and may still write
 * there.
 */
export function withoutMemory({ descriptors }: HeldByThread): HeldByThread {
  return { ...makeNotes(), descriptors };
}

let present: HeldByThread | null = null;
/** The slot where the search for a free one starts. */
let next = 0;
/** Descriptors of the previous thread that have not been adopted yet. */
let orphans: number[] = [];
let orphanMemory: number[] = [];

/** Makes this thread use these records, including those of the previous thread. */
export function useNotes(notes: HeldByThread): void {
  present = notes;
  next = 0;
  orphans = Array.from(notes.descriptors, (word) => word - 1).filter((fd) => fd >= 0);
  orphanMemory = Array.from(notes.memory).filter((address) => address > 0);
}

/** Records that this thread holds the descriptor. */
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

/** Call before closing the descriptor, because its number may be reused afterwards. */
export function forgetDescriptor(fd: number): void {
  if (present === null) return;
  const slot = present.descriptors.indexOf(fd + 1);
  if (slot < 0) return;
  present.descriptors[slot] = 0;
  next = slot;
}

/** Records that this thread holds the memory. */
export function noteMemory(address: number): void {
  const slot = present?.memory.indexOf(0) ?? -1;
  if (slot >= 0) present!.memory[slot] = address;
}

/** Call before freeing the memory. */
export function forgetMemory(address: number): void {
  const slot = present?.memory.indexOf(address) ?? -1;
  if (slot >= 0) present!.memory[slot] = 0;
}

/**
 * Takes the first remaining descriptor for which `fits` returns true. It belongs to the caller from then on, and stays
 * recorded.
 */
export function takeOrphan(fits: (fd: number) => boolean): number | null {
  const index = orphans.findIndex(fits);
  return index < 0 ? null : orphans.splice(index, 1)[0]!;
}

/** Returns all remaining descriptors; the caller closes them. */
export function takeOrphans(): {
  readonly descriptors: readonly number[];
  readonly memory: readonly number[];
} {
  const left = { descriptors: orphans, memory: orphanMemory };
  orphans = [];
  orphanMemory = [];
  return left;
}
