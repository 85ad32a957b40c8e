/** Reassembles IP fragments in bounded memory (RFC 791, section 3.2; RFC 8200, section 4.5). */
import { limit, type Limit } from '../../../../server/base/limits.ts';
import type { IpPacket } from './ip-packet.ts';
import type { Remarks } from './remarks.ts';

/** Limit on incomplete packets, beyond which the oldest is dropped. A DNS message has at most 45 fragments. */
const incompleteLimit: Limit = limit({ default: 1024, min: 16, max: 65_536 });
const PACKET_MAX = 65_535;
const PIECES_MAX = 128;
/** Memory limit for all pieces. When it is reached, the oldest packets are dropped. */
const TOTAL_MAX = 8 * 1024 * 1024;
/** The overhead of a piece in bytes. */
const PIECE = 256;
/** Linux's time-out (net.ipv4.ipfrag_time). */
const WAIT_MS = 30_000;

interface Piece {
  readonly offset: number;
  /** As much as the capture has. */
  readonly bytes: Uint8Array;
  readonly size: number;
}

interface Incomplete {
  readonly sinceMs: number;
  readonly frame: number;
  readonly pieces: Piece[];
  held: number;
  /** The packet's size in bytes, or -1 until the last fragment has arrived. */
  length: number;
}

/** Collects fragments, and returns the packet once it is complete. */
export class Fragments {
  readonly #incomplete = new Map<string, Incomplete>();
  readonly #remarks: Remarks;
  readonly #most: number;
  #held = 0;

  constructor(remarks: Remarks, most: number = incompleteLimit.default) {
    this.#remarks = remarks;
    this.#most = most;
  }

  /**
   * @param port the interface, because some packets may be missing on another one
   * @returns true if the packet is now complete, in which case it has other bytes that are valid until the next call
   */
  add(packet: IpPacket, timeMs: number, frame: number, port: number): boolean {
    this.#expire(timeMs);
    const { head, addressesAt, family, id, protocol, offset, more } = packet;
    const addresses = family === 4 ? 8 : 32;
    const key = `${port}/${id}/${protocol}/${latin1(head, addressesAt, addressesAt + addresses)}`;
    let whole = this.#incomplete.get(key);
    if (whole === undefined) {
      whole = { sinceMs: timeMs, frame, pieces: [], held: 0, length: -1 };
      this.#incomplete.set(key, whole);
      if (this.#incomplete.size > this.#most || this.#held > TOTAL_MAX) this.#makeRoom();
    }
    const size = packet.end - packet.at + packet.missing;
    const end = offset + size;
    if (end > PACKET_MAX || whole.pieces.length >= PIECES_MAX) {
      this.#forget(key, whole);
      this.#remarks.add('a fragmented packet cannot be reassembled', `frame ${frame}`);
      return false;
    }
    // A repeated fragment changes nothing.
    if (!whole.pieces.some((piece) => piece.offset === offset)) {
      // Copied, because a view would pin the file's entire buffer.
      const piece = new Uint8Array(packet.bytes.subarray(packet.at, packet.end));
      whole.pieces.push({ offset, bytes: piece, size });
      whole.held += piece.length + PIECE;
      this.#held += piece.length + PIECE;
    }
    if (!more) whole.length = end;
    if (whole.length < 0 || !isComplete(whole)) return false;
    this.#forget(key, whole);
    const bytes = beginning(whole);
    packet.bytes = bytes;
    packet.at = 0;
    packet.end = bytes.length;
    packet.missing = whole.length - bytes.length;
    packet.offset = 0;
    packet.more = false;
    return true;
  }

  end(): void {
    for (const key of [...this.#incomplete.keys()]) this.#drop(key);
  }

  #expire(nowMs: number): void {
    for (const [key, { sinceMs }] of this.#incomplete) {
      if (nowMs - sinceMs < WAIT_MS) return;
      this.#drop(key);
    }
  }

  #makeRoom(): void {
    for (const key of this.#incomplete.keys()) {
      if (this.#incomplete.size <= this.#most && this.#held <= TOTAL_MAX) return;
      this.#drop(key);
    }
  }

  #drop(key: string): void {
    const whole = this.#incomplete.get(key)!;
    this.#forget(key, whole);
    this.#remarks.add(MISSING_FRAGMENT, `frame ${whole.frame}`);
  }

  #forget(key: string, { held }: Incomplete): void {
    this.#incomplete.delete(key);
    this.#held -= held;
  }
}

const MISSING_FRAGMENT = 'fragments of a packet are missing';

/** True if every fragment has arrived, even if some are truncated. Sorts the pieces. */
function isComplete({ pieces, length }: Incomplete): boolean {
  pieces.sort((one, other) => one.offset - other.offset);
  let reached = 0;
  for (const { offset, size } of pieces) {
    if (offset > reached) return false;
    reached = Math.max(reached, offset + size);
  }
  return reached >= length;
}

/** The packet's bytes up to the first one that the capture does not have. */
function beginning({ pieces, length }: Incomplete): Uint8Array {
  const whole = new Uint8Array(length);
  let reached = 0;
  for (const { offset, bytes } of pieces) {
    if (offset > reached) break;
    whole.set(bytes.subarray(0, Math.max(0, length - offset)), offset);
    reached = Math.max(reached, Math.min(length, offset + bytes.length));
  }
  return whole.subarray(0, reached);
}

function latin1(bytes: Uint8Array, from: number, to: number): string {
  let text = '';
  for (let at = from; at < to; at++) text += String.fromCharCode(bytes[at]!);
  return text;
}
