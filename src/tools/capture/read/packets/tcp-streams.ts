/**
 * DNS messages out of TCP segments, with bounded memory: segments out of order wait for what is
 * missing, repeated ones are passed over, and after a loss reading begins anew at the next segment
 * that looks like the begin of a message (RFC 7766 section 8: each message stands behind its
 * length, two bytes).
 */
import { limit, type Limit } from '../../../../server/base/limits.ts';
import type { Remarks } from './remarks.ts';

/**
 * Directions of connections that are followed at a time; the one that was silent for longest goes
 * first.
 */
const streamLimit: Limit = limit({ default: 8192, min: 16, max: 1_048_576 });
/** Memory that segments may take in one direction while they wait for one that is missing. */
const AHEAD_MAX = 160 * 1024;
/** Memory that may wait in all of them; with more, those that were silent for longest go first. */
const TOTAL_MAX = 16 * 1024 * 1024;
/** What a waiting segment takes besides its bytes. */
const SEGMENT = 256;
const MESSAGE_MIN = 12;

/** What is noted of a connection of which later segments came, and earlier ones did not. */
export const missingRemark = 'segments of a TCP connection are missing';

const nothing = new Uint8Array(0);

/** What one packet carries of a connection. */
export interface Segment {
  /** The number of its first byte. */
  readonly sequence: number;
  readonly bytes: Uint8Array;
  /** Bytes behind these that the packet had, and the capture left out. */
  readonly missing: number;
}

/**
 * Gets each message when it is whole, or when the rest of it was left out of the capture; its bytes
 * are its own. `size` is how many it has, more than there are if it is cut.
 */
export type GiveMessage = (message: Uint8Array, size: number) => void;

interface Direction {
  /** The number of the next byte; null until one is known. */
  next: number | null;
  /** Whether a message begins at the next byte; else a place has to be found where one does. */
  aligned: boolean;
  /**
   * What has come of a message that is not whole is `part[0, partLength)`; behind it there is room.
   */
  part: Uint8Array;
  partLength: number;
  /** Bytes still to come of a message that was given without them. */
  skip: number;
  readonly ahead: Map<number, Segment>;
  aheadBytes: number;
  /** The lowest number in `ahead`, if there is any. */
  nearest: number;
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
   * @returns whether a gap begins with this segment (true) or is closed by it (false); null:
   * neither
   */
  push(key: string, segment: Segment, frame: number, give: GiveMessage): boolean | null {
    const direction = this.#of(key);
    const had = direction.ahead.size > 0;
    this.#push(direction, segment, frame, give);
    const has = direction.ahead.size > 0;
    return has === had ? null : has;
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

  /** The connection is over: what waits for a segment that is missing is read all the same. */
  close(key: string, frame: number, give: GiveMessage): void {
    const direction = this.#directions.get(key);
    if (direction === undefined) return;
    if (direction.aheadBytes > 0) this.#goOnBehind(direction, frame, give);
    else if (direction.partLength > 0)
      this.#remarks.add('a TCP connection ended within a message', `frame ${frame}`);
    this.#clear(direction);
    this.#directions.delete(key);
  }

  /** No more will come: the numbers of another capture may be any. */
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
      // Insertion order is the order of use.
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
   * Gives up those that were silent for longest, several at once: each look for the first of a Map
   * passes what was deleted before it.
   */
  #makeRoom(): void {
    for (const [key, direction] of this.#directions) {
      if (this.#directions.size <= this.#most * 0.95 && this.#waiting <= TOTAL_MAX * 0.95) return;
      if (direction.partLength > 0 || direction.aheadBytes > 0)
        this.#remarks.add('more TCP messages are incomplete at a time than are followed');
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
    // A copy: a view would hold all that was read from the file with it.
    ahead.set(sequence, { sequence, bytes: new Uint8Array(bytes), missing });
    direction.aheadBytes += bytes.length + SEGMENT;
    this.#waiting += bytes.length + SEGMENT;
    if (direction.aheadBytes <= AHEAD_MAX) return;
    this.#goOnBehind(direction, frame, give);
  }

  /** What is missing will not come. */
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

  /** Takes what is new of a segment that begins at the next byte, or before it. */
  #take(direction: Direction, segment: Segment, frame: number, give: GiveMessage): void {
    const { sequence } = segment;
    const { length } = segment.bytes;
    // What was there before is passed over; a keep-alive repeats one byte.
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
        this.#remarks.add('a TCP segment is of a message whose begin is missing', `frame ${frame}`);
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
        this.#remarks.add('what came over TCP is no DNS', `frame ${frame}`);
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

  /**
   * Goes on behind bytes that the capture left out: the message that they are of is given as far as
   * it goes.
   */
  #leaveOut(direction: Direction, missing: number, give: GiveMessage): void {
    if (!direction.aligned) return;
    const { part, partLength } = direction;
    // Where the next message begins cannot be told if its length is not there, or it lies within
    // the gap.
    const size = partLength < 2 ? 0 : (part[0]! << 8) | part[1]!;
    const left = partLength < 2 ? 0 : 2 + size - partLength;
    if (partLength >= 2 + MESSAGE_MIN) give(new Uint8Array(part.subarray(2, partLength)), size);
    direction.aligned = left >= missing;
    direction.skip = Math.max(0, left - missing);
    this.#dropPart(direction);
  }

  /**
   * Takes in what has come of a message: room grows by doubling, so that single bytes cost no more
   * than they are.
   */
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
