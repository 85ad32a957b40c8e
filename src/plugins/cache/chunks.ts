/** The memory of stored messages. */
import { copyBytes } from '../../base/copy-bytes.ts';

/**
 * Memory for replies that are stored for a long time: chunks that are filled from front to back and
 * never overwritten, so that a reply that was handed out stays valid even if its entry was removed
 * meanwhile. A removed entry leaves a hole. Chunks with many holes are emptied by copying their
 * remaining entries, and a chunk without entries is released.
 */
export interface ReplyChunk {
  readonly id: number;
  readonly bytes: Uint8Array;
  /** Whether it takes more than one message. */
  readonly shared: boolean;
  used: number;
  /** Bytes that still belong to entries. */
  live: number;
  /** Slots that were put here; some may have moved on since. */
  readonly slots: number[];
}

const CHUNK_SIZE = 65536;
/**
 * Messages above this get a chunk of their own: they would leave too large a gap at the end of a
 * shared one.
 */
const SHARED_MAX = 16384;

/**
 * The chunks of one cache, oldest first. It decides where a message goes and which chunk has to
 * make room.
 */
export class ChunkLog {
  /** Bytes of all chunks. */
  allocated = 0;
  /** Bytes in them that belong to entries. */
  live = 0;
  readonly #limit: number;
  readonly #dropped: (bytes: number) => void;
  readonly #chunks = new Map<number, ReplyChunk>();
  #open: ReplyChunk | null = null;
  #next = 0;

  /**
   * @param limit the most bytes of all chunks
   * @param dropped called with the size of each large message that was removed
   */
  constructor(limit: number, dropped: (bytes: number) => void) {
    this.#limit = limit;
    this.#dropped = dropped;
  }

  /**
   * A chunk with room for `size` bytes, or null when the limit is reached: empty the oldest one
   * first.
   */
  room(size: number): ReplyChunk | null {
    const open = this.#open;
    if (open !== null && open.used + size <= open.bytes.length) return open;
    const shared = size <= SHARED_MAX;
    const length = shared ? CHUNK_SIZE : size;
    if (this.#chunks.size > 0 && this.allocated + length > this.#limit) return null;
    const bytes = new Uint8Array(length);
    const chunk: ReplyChunk = { id: this.#next++, bytes, shared, used: 0, live: 0, slots: [] };
    this.#chunks.set(chunk.id, chunk);
    this.allocated += length;
    if (shared) {
      this.#open = chunk;
      if (open !== null && open.live === 0) this.#release(open);
    }
    return chunk;
  }

  /** Copies `from[start, end)` for `slot` into a chunk that has room. @returns where it begins */
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

  /** `size` bytes of the chunk are no longer wanted. */
  drop(id: number, size: number): void {
    const chunk = this.#chunks.get(id)!;
    chunk.live -= size;
    this.live -= size;
    if (chunk.live === 0 && chunk !== this.#open) this.#release(chunk);
  }

  /**
   * The chunk that has to go when the limit is reached: the oldest one; the one being filled only
   * if it is the last.
   */
  victim(): ReplyChunk | null {
    for (const chunk of this.#chunks.values()) if (chunk !== this.#open) return chunk;
    const last = this.#open;
    this.#open = null;
    if (last !== null && last.live === 0) this.#release(last);
    return last;
  }

  /** A chunk that is mostly holes, if holes make up more than a third of everything. */
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
    if (!chunk.shared) this.#dropped(chunk.bytes.length);
  }
}
