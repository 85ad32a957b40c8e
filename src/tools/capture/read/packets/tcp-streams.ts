/**
 * Reads DNS messages from TCP segments in bounded memory. Out-of-order segments wait for the missing one, and repeated
 * ones are skipped. After a loss, reading resumes at the next segment that looks like the start of a message. Each
 * message is preceded by its two-byte length (RFC 7766, section 8).
 */
import { limit, type Limit } from '../../../../server/base/limits.ts';
import type { Remarks } from './remarks.ts';

/** The number of connection directions to track. The one that has been silent for longest is dropped first. */
const streamLimit: Limit = limit({ default: 8192, min: 16, max: 1_048_576 });
/** The number of bytes in one direction that may wait for a missing segment. */
const AHEAD_MAX = 160 * 1024;
/** The same for all directions together. When it is reached, those that have been silent for longest are dropped. */
const TOTAL_MAX = 16 * 1024 * 1024;
/** The overhead of a waiting segment in bytes. */
const SEGMENT = 256;
const MESSAGE_MIN = 12;

/** The remark for a connection of which only later segments were captured. */
export const missingRemark = 'segments of a TCP connection are missing';

const nothing = new Uint8Array(0);

/** The contents of one packet on a connection. */
export interface Segment {
  /** The sequence number of its first byte. */
  readonly sequence: number;
  readonly bytes: Uint8Array;
  /** The number of bytes at the end that are missing from the capture. */
  readonly missing: number;
}

/**
 * Receives a copy of each complete message, or of its beginning if the rest was not captured. `size` is the length on
 * the wire.
 */
export type GiveMessage = (message: Uint8Array, size: number) => void;

/**
 * `gap` if it comes before an earlier one, `gap-filled` if it closes a gap, `segment-again` if it has been seen before.
 */
export type SegmentEvent = 'gap' | 'gap-filled' | 'segment-again';

interface Direction {
  /** The next sequence number, or null if unknown. */
  next: number | null;
  /** True if a message starts at the next byte. Otherwise, we search for the start of one. */
  aligned: boolean;
  /** An incomplete message is in `part[0, partLength)`, and the rest is spare room. */
  part: Uint8Array;
  partLength: number;
  /** The number of bytes still to come in a message that was reported as truncated. */
  skip: number;
  readonly ahead: Map<number, Segment>;
  aheadBytes: number;
  /** The lowest number in `ahead`, if any. */
  nearest: number;
}

export class TcpStreams {
  readonly #directions = new Map<string, Direction>();
  readonly #remarks: Remarks;
  readonly #most: number;
  #waiting = 0;

  constructor(remarks: Remarks, most: number = streamLimit.default) {
    this.#remarks = remarks;
    this.#most = most;
  }

  /** Handles a SYN, whose number is followed by the start of a message. */
  open(key: string, sequence: number): void {
    const direction = this.#of(key);
    this.#clear(direction);
    direction.next = (sequence + 1) >>> 0;
    direction.aligned = true;
  }

  /** @returns what the segment means for the connection, or null if it simply continues it */
  push(key: string, segment: Segment, frame: number, give: GiveMessage): SegmentEvent | null {
    const direction = this.#of(key);
    const had = direction.ahead.size > 0;
    const isKnown = isRepeat(direction, segment);
    this.#push(direction, segment, frame, give);
    const has = direction.ahead.size > 0;
    if (has !== had) return has ? 'gap' : 'gap-filled';
    return isKnown ? 'segment-again' : null;
  }

  #push(direction: Direction, segment: Segment, frame: number, give: GiveMessage): void {
    const { sequence } = segment;
    if (direction.next === null) {
      direction.next = sequence;
      direction.aligned = false;
    }
    const late = difference(sequence, direction.next);
    if (late > 0) {
      this.#wait(direction, segment, frame, give);
      return;
    }
    this.#take(direction, segment, frame, give);
    this.#catchUp(direction, frame, give);
  }

  /** Called when the connection has ended, to read segments that are waiting for a missing one. */
  close(key: string, frame: number, give: GiveMessage): void {
    const direction = this.#directions.get(key);
    if (direction === undefined) return;
    if (direction.aheadBytes > 0) this.#goOnBehind(direction, frame, give);
    else if (direction.partLength > 0)
      this.#remarks.add('a TCP connection ended in the middle of a message', `frame ${frame}`);
    this.#clear(direction);
    this.#directions.delete(key);
  }

  /** Called when the input has ended, because sequence numbers in another capture are unrelated. */
  end(): void {
    for (const direction of this.#directions.values()) {
      if (direction.aheadBytes > 0) this.#remarks.add(missingRemark);
      this.#clear(direction);
    }
    this.#directions.clear();
  }

  #of(key: string): Direction {
    let direction = this.#directions.get(key);
    if (direction !== undefined) {
      // Insertion order reflects recent use.
      this.#directions.delete(key);
    } else {
      direction = {
        ...{ next: null, aligned: false, part: nothing, partLength: 0, skip: 0 },
        ...{ ahead: new Map(), aheadBytes: 0, nearest: 0 },
      };
    }
    if (this.#directions.size >= this.#most || this.#waiting > TOTAL_MAX) this.#makeRoom();
    this.#directions.set(key, direction);
    return direction;
  }

  /**
   * Drops several directions at once, those that have been silent for longest, because finding a Map's first entry
   * skips all entries deleted before it.
   */
  #makeRoom(): void {
    for (const [key, direction] of this.#directions) {
      if (this.#directions.size <= this.#most * 0.95 && this.#waiting <= TOTAL_MAX * 0.95) return;
      if (direction.partLength > 0 || direction.aheadBytes > 0)
        this.#remarks.add('too many TCP messages are incomplete at once');
      this.#clear(direction);
      this.#directions.delete(key);
    }
  }

  #wait(direction: Direction, segment: Segment, frame: number, give: GiveMessage): void {
    const { ahead } = direction;
    const { sequence, bytes, missing } = segment;
    if (ahead.has(sequence)) return;
    if (ahead.size === 0 || difference(sequence, direction.nearest) < 0)
      direction.nearest = sequence;
    // Copied, because a view would pin the file's entire buffer.
    ahead.set(sequence, { sequence, bytes: new Uint8Array(bytes), missing });
    direction.aheadBytes += bytes.length + SEGMENT;
    this.#waiting += bytes.length + SEGMENT;
    if (direction.aheadBytes <= AHEAD_MAX) return;
    this.#goOnBehind(direction, frame, give);
  }

  /** Called when the missing segment will not arrive. */
  #goOnBehind(direction: Direction, frame: number, give: GiveMessage): void {
    this.#remarks.add(missingRemark, `frame ${frame}`);
    direction.next = direction.nearest;
    direction.aligned = false;
    direction.skip = 0;
    this.#dropPart(direction);
    this.#catchUp(direction, frame, give);
  }

  #catchUp(direction: Direction, frame: number, give: GiveMessage): void {
    const { ahead } = direction;
    while (ahead.size > 0 && difference(direction.nearest, direction.next!) <= 0) {
      let lowest: number | null = null;
      for (const [sequence, segment] of ahead) {
        if (difference(sequence, direction.next!) > 0) {
          if (lowest === null || difference(sequence, lowest) < 0) lowest = sequence;
          continue;
        }
        ahead.delete(sequence);
        direction.aheadBytes -= segment.bytes.length + SEGMENT;
        this.#waiting -= segment.bytes.length + SEGMENT;
        this.#take(direction, segment, frame, give);
      }
      direction.nearest = lowest ?? 0;
    }
  }

  /** Reads the new part of a segment that starts at or before the next byte. */
  #take(direction: Direction, segment: Segment, frame: number, give: GiveMessage): void {
    const { sequence } = segment;
    const { length } = segment.bytes;
    // Skips repeated bytes. A keep-alive repeats one byte.
    const known = difference(direction.next!, sequence);
    const fresh = length + segment.missing - known;
    if (fresh <= 0) return;
    direction.next = (direction.next! + fresh) >>> 0;
    const skipped = Math.min(direction.skip, fresh);
    direction.skip -= skipped;
    const bytes = segment.bytes.subarray(Math.min(known + skipped, length));
    const missing = fresh - skipped - bytes.length;
    if (bytes.length > 0) this.#read(direction, bytes, frame, give);
    if (missing > 0) this.#leaveOut(direction, missing, give);
  }

  #read(direction: Direction, bytes: Uint8Array, frame: number, give: GiveMessage): void {
    if (!direction.aligned) {
      if (!looksLikeBegin(bytes)) {
        this.#remarks.add('the start of a TCP message is missing', `frame ${frame}`);
        return;
      }
      direction.aligned = true;
    }
    if (direction.partLength > 0) this.#append(direction, bytes);
    const all = direction.partLength > 0 ? direction.part.subarray(0, direction.partLength) : bytes;
    let at = 0;
    while (at + 2 <= all.length) {
      const length = (all[at]! << 8) | all[at + 1]!;
      if (length < MESSAGE_MIN) {
        this.#remarks.add('a TCP stream does not contain DNS', `frame ${frame}`);
        direction.aligned = false;
        this.#dropPart(direction);
        return;
      }
      if (at + 2 + length > all.length) break;
      give(new Uint8Array(all.subarray(at + 2, at + 2 + length)), length);
      at += 2 + length;
    }
    if (at === 0 && direction.partLength > 0) return;
    this.#dropPart(direction);
    if (at < all.length) this.#append(direction, all.subarray(at));
  }

  /** Continues after bytes that were not captured, and reports the truncated message. */
  #leaveOut(direction: Direction, missing: number, give: GiveMessage): void {
    if (!direction.aligned) return;
    const { part, partLength } = direction;
    // The next message cannot be found if its length is missing or if it starts inside the gap.
    const size = partLength < 2 ? 0 : (part[0]! << 8) | part[1]!;
    const left = partLength < 2 ? 0 : 2 + size - partLength;
    if (partLength >= 2 + MESSAGE_MIN) give(new Uint8Array(part.subarray(2, partLength)), size);
    direction.aligned = left >= missing;
    direction.skip = Math.max(0, left - missing);
    this.#dropPart(direction);
  }

  /** Appends to an incomplete message. The buffer doubles when it grows, so single bytes are cheap. */
  #append(direction: Direction, bytes: Uint8Array): void {
    const length = direction.partLength + bytes.length;
    if (length > direction.part.length) {
      const bigger = new Uint8Array(Math.max(length, 2 * direction.part.length));
      bigger.set(direction.part.subarray(0, direction.partLength));
      this.#waiting += bigger.length - direction.part.length;
      direction.part = bigger;
    }
    direction.part.set(bytes, direction.partLength);
    direction.partLength = length;
  }

  #dropPart(direction: Direction): void {
    this.#waiting -= direction.part.length;
    direction.part = nothing;
    direction.partLength = 0;
  }

  #clear(direction: Direction): void {
    this.#waiting -= direction.aheadBytes;
    direction.ahead.clear();
    direction.aheadBytes = 0;
    direction.skip = 0;
    this.#dropPart(direction);
  }
}

/** True for the start of a message, which is a length, a header with few records, and one question. */
function looksLikeBegin(bytes: Uint8Array): boolean {
  if (bytes.length < 2 + MESSAGE_MIN) return false;
  const length = (bytes[0]! << 8) | bytes[1]!;
  return length >= MESSAGE_MIN && bytes[6] === 0 && bytes[7] === 1 && (bytes[4]! & 0x78) === 0;
}

/** Sequence numbers wrap around at 2^32 (RFC 9293, section 3.4). */
function difference(one: number, other: number): number {
  return (one - other) | 0;
}

/** True if the whole segment has been read before. A keep-alive repeats one byte. */
function isRepeat({ next }: Direction, { sequence, bytes, missing }: Segment): boolean {
  const length = bytes.length + missing;
  return next !== null && length > 1 && difference(next, sequence) >= length;
}
