/** Frames on their way from the workers to the main thread. */
import { readUint32 } from '../../base/big-endian.ts';
import { sleep, type Clock } from '../../base/clock.ts';
import { LineReader, makeLineRing, type LineRingMemory } from '../../base/line-ring.ts';

/** Milliseconds for which frames are collected before they are written. */
const GATHER_MS = 10;
/** Number of bytes collected for one write. The last frame may exceed it. */
const CHUNK = 262_144;
/** Larger than the longest frame. */
const FRAME_MAX = 73_728;

/**
 * Complete frames on their way to all connected collectors. Their memory is freed when the last collector has received
 * them, because tens of megabytes per second would otherwise keep the garbage collector busy.
 */
export class FrameChunk {
  readonly bytes: Buffer;
  readonly frames: number;
  readonly #memory: ArrayBuffer;
  #holders = 1;

  /** @param memory not shared with anything else */
  constructor(memory: ArrayBuffer, length: number, frames: number) {
    this.bytes = Buffer.from(memory, 0, length);
    this.frames = frames;
    this.#memory = memory;
  }

  /** Adds a user of the bytes. */
  hold(): void {
    this.#holders++;
  }

  /** Called once by each user that no longer needs the frames, including the one that took the chunk. */
  release(): void {
    if (--this.#holders === 0) this.#memory.transfer(0);
  }
}

export class Frames {
  readonly #bell = new Int32Array(new SharedArrayBuffer(4));
  readonly #clock: Clock;
  /** Unread rings; `retired`: the writer has ended. */
  readonly #rings = new Map<LineRingMemory, { readonly reader: LineReader; retired: boolean }>();
  #lostBefore = 0;
  #ended = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Allocates `size` bytes of memory for one more worker. */
  add(size: number): LineRingMemory {
    const memory = makeLineRing(size, this.#bell);
    this.#rings.set(memory, { reader: new LineReader(memory), retired: false });
    return memory;
  }

  /** Marks a ring whose writer has ended. It is removed once it has been read. */
  retire(memory: LineRingMemory): void {
    const ring = this.#rings.get(memory);
    if (ring !== undefined) ring.retired = true;
  }

  /** Total number of frames that did not fit. */
  get lost(): number {
    let sum = this.#lostBefore;
    for (const { reader } of this.#rings.values()) sum += reader.lost;
    return sum;
  }

  /** Takes some of the frames, or returns null if there are none. By the time this returns, their space is free. */
  take(): FrameChunk | null {
    for (const [memory, { reader, retired }] of this.#rings) {
      const pieces = reader.pieces();
      if (pieces.length > 0) {
        const chunk = wholeFrames(pieces);
        reader.release(chunk.bytes.length);
        return chunk;
      }
      if (!retired) continue;
      this.#lostBefore += reader.lost;
      this.#rings.delete(memory);
    }
    return null;
  }

  /** Calls `run` whenever frames have arrived, until `end`. */
  async listen(run: () => void): Promise<void> {
    while (!this.#ended) {
      const { async, value } = Atomics.waitAsync(this.#bell, 0, 0);
      if (async) await value;
      if (this.#ended) return;
      await sleep(this.#clock, GATHER_MS);
      Atomics.store(this.#bell, 0, 0);
      run();
    }
  }

  end(): void {
    this.#ended = true;
    Atomics.store(this.#bell, 0, 1);
    Atomics.notify(this.#bell, 0);
  }
}

/** Copies the first frames, up to CHUNK bytes or slightly more. */
function wholeFrames(pieces: readonly Uint8Array[]): FrameChunk {
  const most = CHUNK + FRAME_MAX;
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const all = new Uint8Array(Math.min(most, length));
  let filled = 0;
  for (const piece of pieces) {
    const part = piece.subarray(0, all.length - filled);
    all.set(part, filled);
    filled += part.length;
  }
  let at = 0;
  let frames = 0;
  while (at < CHUNK && at + 4 <= all.length) {
    const size = readUint32(all, at);
    if (at + 4 + size > all.length) break;
    at += 4 + size;
    frames++;
  }
  return new FrameChunk(all.buffer, at, frames);
}
