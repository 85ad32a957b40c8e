/**
 * The descriptors that a thread has opened past the runtime. The runtime closes what it knows of when a thread ends, but not
 * these: a socket that outlives its thread stays bound, and the system goes on handing it a share of all queries, which nobody
 * reads. So they are noted where they outlive the thread, too: in shared memory that the next thread in its place is given.
 */
const SLOTS = 4096;

/** Words of descriptor plus one; 0: free. */
export type SocketTable = Int32Array<SharedArrayBuffer>;

/** A table for a thread and all that will take its place. */
export function makeSocketTable(): SocketTable {
  return new Int32Array(new SharedArrayBuffer(4 * SLOTS));
}

let present: SocketTable | null = null;
/** Where to look for a free slot first. */
let next = 0;
/** Left behind by the thread before, and not taken over yet. */
let orphans: number[] = [];

/** From now on this thread notes its sockets there. What is noted already was left behind by the thread before it. */
export function useSocketTable(table: SocketTable): void {
  present = table;
  next = 0;
  orphans = Array.from(table, (word) => word - 1).filter((fd) => fd >= 0);
}

export function noteSocket(fd: number): void {
  if (present === null) return;
  for (let looked = 0; looked < SLOTS; looked++) {
    const slot = (next + looked) % SLOTS;
    if (present[slot] !== 0) continue;
    present[slot] = fd + 1;
    next = slot + 1;
    return;
  }
}

/** To be called before the descriptor is closed: from then on its number may be somebody else's. */
export function forgetSocket(fd: number): void {
  const slot = present === null ? -1 : present.indexOf(fd + 1);
  if (slot < 0) return;
  present![slot] = 0;
  next = slot;
}

/** The first socket left behind that `fits`; it is the caller's from then on, and stays noted. */
export function takeOrphan(fits: (fd: number) => boolean): number | null {
  const index = orphans.findIndex(fits);
  return index < 0 ? null : orphans.splice(index, 1)[0]!;
}

/** All that were left behind and that nobody has taken. */
export function takeOrphans(): readonly number[] {
  const left = orphans;
  orphans = [];
  return left;
}
