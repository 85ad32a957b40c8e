/**
 * DNS messages out of TCP segments, with bounded memory: segments out of order wait for what is missing, repeated ones are passed
 * over, and after a loss reading begins anew at the next segment that looks like the begin of a message (RFC 7766 section 8: each
 * message stands behind its length, two bytes).
 */
import { limit, type Limit } from '../../base/limits.ts';
import type { Remarks } from './remarks.ts';

/** Directions of connections that are followed at a time; the one that was silent for longest goes first. */
const streamLimit: Limit = limit({ default: 8192, min: 16, max: 1_048_576 });
/** Bytes that may wait in one direction for a segment that is missing. */
const AHEAD_MAX = 128 * 1024;
/** Bytes that may wait in all of them. */
const TOTAL_MAX = 16 * 1024 * 1024;
const MESSAGE_MIN = 12;

const nothing = new Uint8Array(0);

interface Direction {
  /** The number of the next byte; null until one is known. */
  next: number | null;
  /** Whether a message begins at the next byte; else a place has to be found where one does. */
  aligned: boolean;
  /** What has come of a message that is not whole. */
  part: Uint8Array;
  readonly ahead: Map<number, Uint8Array>;
  aheadBytes: number;
}

/** Takes the segments of all connections apart. */
export class TcpStreams {
  readonly #directions = new Map<string, Direction>();
  readonly #remarks: Remarks;
  readonly #most: number;
  #waiting = 0;

  constructor(remarks: Remarks, most: number = streamLimit.default) {
    this.#remarks = remarks;
    this.#most = most;
  }

  /** A SYN: bytes begin behind its number, with a message. */
  open(key: string, sequence: number): void {
    const direction = this.#of(key);
    this.#clear(direction);
    direction.next = (sequence + 1) >>> 0;
    direction.aligned = true;
  }

  /**
   * @param give gets each message that has become whole: its bytes are its own
   */
  push(
    key: string,
    sequence: number,
    bytes: Uint8Array,
    frame: number,
    give: (message: Uint8Array) => void,
  ): void {
    const direction = this.#of(key);
    if (direction.next === null) {
      direction.next = sequence;
      direction.aligned = false;
    }
    const late = difference(sequence, direction.next);
    if (late > 0) {
      this.#wait(direction, sequence, bytes, frame, give);
      return;
    }
    // What was there before is passed over; a keep-alive repeats one byte.
    if (-late >= bytes.length) return;
    this.#take(direction, bytes.subarray(-late), frame, give);
    this.#catchUp(direction, frame, give);
  }

  /** The connection is over. */
  close(key: string, frame: number): void {
    const direction = this.#directions.get(key);
    if (direction === undefined) return;
    if (direction.part.length > 0 || direction.aheadBytes > 0)
      this.#remarks.add('a TCP connection ended within a message', `frame ${frame}`);
    this.#clear(direction);
    this.#directions.delete(key);
  }

  #of(key: string): Direction {
    let direction = this.#directions.get(key);
    if (direction !== undefined) {
      // Insertion order is the order of use.
      this.#directions.delete(key);
    } else {
      direction = { next: null, aligned: false, part: nothing, ahead: new Map(), aheadBytes: 0 };
      if (this.#directions.size >= this.#most) {
        const [oldest, silent] = this.#directions.entries().next().value!;
        this.#clear(silent);
        this.#directions.delete(oldest);
      }
    }
    this.#directions.set(key, direction);
    return direction;
  }

  #wait(
    direction: Direction,
    sequence: number,
    bytes: Uint8Array,
    frame: number,
    give: (message: Uint8Array) => void,
  ): void {
    if (direction.ahead.has(sequence)) return;
    direction.ahead.set(sequence, bytes.slice());
    direction.aheadBytes += bytes.length;
    this.#waiting += bytes.length;
    if (direction.aheadBytes <= AHEAD_MAX && this.#waiting <= TOTAL_MAX) return;
    // What is missing will not come: go on behind the gap.
    this.#remarks.add('segments of a TCP connection are missing', `frame ${frame}`);
    let first = sequence;
    for (const each of direction.ahead.keys()) if (difference(each, first) < 0) first = each;
    direction.next = first;
    direction.aligned = false;
    direction.part = nothing;
    this.#catchUp(direction, frame, give);
  }

  #catchUp(direction: Direction, frame: number, give: (message: Uint8Array) => void): void {
    for (let found = true; found && direction.ahead.size > 0;) {
      found = false;
      for (const [sequence, bytes] of direction.ahead) {
        const late = difference(sequence, direction.next!);
        if (late > 0) continue;
        direction.ahead.delete(sequence);
        direction.aheadBytes -= bytes.length;
        this.#waiting -= bytes.length;
        found = true;
        if (-late < bytes.length) this.#take(direction, bytes.subarray(-late), frame, give);
      }
    }
  }

  #take(
    direction: Direction,
    bytes: Uint8Array,
    frame: number,
    give: (message: Uint8Array) => void,
  ): void {
    direction.next = (direction.next! + bytes.length) >>> 0;
    if (!direction.aligned) {
      if (!looksLikeBegin(bytes)) {
        this.#remarks.add('a TCP segment is of a message whose begin is missing', `frame ${frame}`);
        return;
      }
      direction.aligned = true;
    }
    const { part } = direction;
    const all = part.length === 0 ? bytes : Buffer.concat([part, bytes]);
    let at = 0;
    while (at + 2 <= all.length) {
      const length = (all[at]! << 8) | all[at + 1]!;
      if (length < MESSAGE_MIN) {
        this.#remarks.add('what came over TCP is no DNS', `frame ${frame}`);
        direction.aligned = false;
        direction.part = nothing;
        return;
      }
      if (at + 2 + length > all.length) break;
      give(all.slice(at + 2, at + 2 + length));
      at += 2 + length;
    }
    direction.part = at === all.length ? nothing : all.slice(at);
  }

  #clear(direction: Direction): void {
    this.#waiting -= direction.aheadBytes;
    direction.ahead.clear();
    direction.aheadBytes = 0;
    direction.part = nothing;
  }
}

/** A length, a header with few records, and one question: what a message begins with. */
function looksLikeBegin(bytes: Uint8Array): boolean {
  if (bytes.length < 2 + MESSAGE_MIN) return false;
  const length = (bytes[0]! << 8) | bytes[1]!;
  return length >= MESSAGE_MIN && bytes[6] === 0 && bytes[7] === 1 && (bytes[4]! & 0x78) === 0;
}

/** Numbers of bytes wrap around at 2^32 (RFC 9293 section 3.4). */
function difference(one: number, other: number): number {
  return (one - other) | 0;
}
