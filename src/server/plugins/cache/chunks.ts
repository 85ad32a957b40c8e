/** Memory for stored messages. */
import { copyBytes } from '../../base/copy-bytes.ts';

/**
 * Memory for long-lived replies. Chunks are filled from front to back and never overwritten, so a reply that was handed
 * out stays valid after its entry is removed. Chunks with many holes are emptied by copying their remaining entries. A
 * chunk without entries is released.
 */
export interface ReplyChunk {
  readonly id: number;
  readonly bytes: Uint8Array;
  readonly shared: boolean;
  used: number;
  /** Bytes that still belong to entries. */
  live: number;
  /** Slots whose messages were stored here; some may since have moved. */
  readonly slots: number[];
}

const CHUNK_SIZE = 65536;
/**
 * Longer messages get their own chunks, which may use only part of the memory. They are rare, and a client that queries
 * many of them must not evict everything else.
 */
const SHARED_MAX = 4096;
/** Messages in their own chunks use at most this fraction of the memory. */
const LARGE_PART = 4;

/** A cache's chunks, oldest first. This class decides where a message is stored and which chunk has to make room. */
export class ChunkLog {
  /** Total bytes in all chunks. */
  allocated = 0;
  /** Bytes in use by entries. */
  live = 0;
  /** Bytes in single-message chunks. */
  large = 0;
  readonly #limit: number;
  readonly #dropped: (bytes: number) => void;
  readonly #chunks = new Map<number, ReplyChunk>();
  #open: ReplyChunk | null = null;
  #next = 0;

  /**
   * @param limit maximum total size in bytes
   * @param dropped called with the size of each large message that was removed
   */
  constructor(limit: number, dropped: (bytes: number) => void) {
    this.#limit = limit;
    this.#dropped = dropped;
  }

  /**
   * Returns a chunk with room for `size` bytes, or null if the limit is reached and a `victim` has to be emptied first.
   * @param moving true if the message is already stored, so that moving it frees its old space
   */
  room(size: number, moving = false): ReplyChunk | null {
    const open = this.#open;
    const shared = size <= SHARED_MAX;
    if (shared && open !== null && open.used + size <= open.bytes.length) return open;
    const length = shared ? CHUNK_SIZE : size;
    if (!moving && !this.#hasRoom(length, shared)) return null;
    const bytes = new Uint8Array(length);
    const chunk: ReplyChunk = { id: this.#next++, bytes, shared, used: 0, live: 0, slots: [] };
    this.#chunks.set(chunk.id, chunk);
    this.allocated += length;
    if (shared) {
      this.#open = chunk;
      if (open !== null && open.live === 0) this.#release(open);
    } else this.large += length;
    return chunk;
  }

  #hasRoom(length: number, shared: boolean): boolean {
    if (this.#chunks.size === 0) return true;
    if (!shared && this.large > 0 && this.large + length > this.#limit / LARGE_PART) return false;
    return this.allocated + length <= this.#limit;
  }

  /**
   * Copies `from[start, end)` into a chunk with enough room, for `slot`.
   * @returns the copy's offset
   */
  put(chunk: ReplyChunk, slot: number, from: Uint8Array, start: number, end: number): number {
    const at = chunk.used;
    const size = end - start;
    copyBytes(from, start, chunk.bytes, at, size);
    chunk.used = at + size;
    chunk.live += size;
    chunk.slots.push(slot);
    this.live += size;
    return at;
  }

  /** Marks `size` bytes in the chunk as unused. */
  drop(id: number, size: number): void {
    const chunk = this.#chunks.get(id)!;
    chunk.live -= size;
    this.live -= size;
    if (chunk.live === 0 && chunk !== this.#open) this.#release(chunk);
  }

  /**
   * Returns the chunk to empty to make room for `size` bytes. This is the oldest chunk, or the oldest large one if
   * large messages have used up their share. The chunk that is being filled is chosen only if no other is left.
   */
  victim(size: number): ReplyChunk | null {
    const large = size > SHARED_MAX && this.large + size > this.#limit / LARGE_PART;
    for (const chunk of this.#chunks.values())
      if (chunk !== this.#open && !(large && chunk.shared)) return chunk;
    const last = this.#open;
    this.#open = null;
    if (last !== null && last.live === 0) this.#release(last);
    return last;
  }

  renew(chunk: ReplyChunk): void {
    this.#chunks.delete(chunk.id);
    this.#chunks.set(chunk.id, chunk);
  }

  /** Returns a chunk that consists mostly of holes, if holes make up more than a third of all memory. */
  get sparse(): ReplyChunk | null {
    if (this.live * 3 >= this.allocated * 2 || this.allocated <= 4 * CHUNK_SIZE) return null;
    let sparsest: ReplyChunk | null = null;
    for (const chunk of this.#chunks.values()) {
      if (chunk === this.#open || !chunk.shared || chunk.live * 2 > CHUNK_SIZE) continue;
      if (sparsest === null || chunk.live < sparsest.live) sparsest = chunk;
    }
    return sparsest;
  }

  #release(chunk: ReplyChunk): void {
    this.#chunks.delete(chunk.id);
    this.allocated -= chunk.bytes.length;
    if (chunk.shared) return;
    this.large -= chunk.bytes.length;
    this.#dropped(chunk.bytes.length);
  }
}
