/**
 * Reads only the beginning of a message, because pairing needs no more than the header, the first question, and a
 * query's OPT.
 */
import { FLAG, HEADER, TYPE } from '../../../server/wire/iana.ts';
import { LOWER, NAME_MAX, printName } from '../../../server/wire/name.ts';
import { KnownTexts } from './known-texts.ts';

/** A reader reuses one object. */
export interface MessageHead {
  id: number;
  flags: number;
  questions: number;
  answers: number;
  /** The name in the question, absolute and in lower case. Empty if there is no readable question. */
  name: string;
  /** 32 bits. */
  nameHash: number;
  type: number;
  /**
   * The UDP size in the OPT, in bytes. It is 0 if no OPT was seen, and 512, the minimum, if a truncated query's header
   * counts one.
   */
  udpSize: number;
  /** True if a query has a COOKIE option (RFC 7873). */
  cookie: boolean;
  /** True if the name contains capitals. Some clients randomise case to protect against forged replies. */
  capitals: boolean;
}

const COOKIE = 10;
/** The minimum size in an OPT (RFC 6891, section 6.2.3). */
const UDP_LEAST = 512;

const CUT = '…';

/** The type used for a question whose name is truncated, so that its real type is unknown. */
export const TYPE_CUT = 0;

/** True if the capture has only the beginning of the name or none of it. The type is unknown as well. */
export function isCut(name: string): boolean {
  return name === '' || name.endsWith(CUT);
}

/** Reads the beginning of each message, and interns names. */
export class HeadReader {
  readonly head: MessageHead = {
    ...{
      id: 0,
      flags: 0,
      questions: 0,
      answers: 0,
      name: '',
      nameHash: 0,
      type: TYPE_CUT,
    },
    ...{ udpSize: 0, cookie: false, capitals: false },
  };
  readonly #folded = Buffer.alloc(NAME_MAX + 1);
  readonly #names = new KnownTexts((bytes, start) => printName(bytes, start));
  readonly #beginnings = new KnownTexts(
    (bytes, start) => printName(bytes, start).slice(0, -1) + CUT,
  );

  /**
   * Reads `bytes[start, end)` into `head`.
   * @param cut true if the message had more bytes
   * @returns false if there is no readable question
   */
  read(bytes: Uint8Array, start: number, end: number, cut = false): boolean {
    const { head } = this;
    head.name = '';
    head.nameHash = 0;
    head.type = TYPE_CUT;
    head.udpSize = 0;
    head.cookie = false;
    head.capitals = false;
    head.questions = 0;
    if (end - start < HEADER.SIZE) return false;
    head.id = (bytes[start]! << 8) | bytes[start + 1]!;
    head.flags = (bytes[start + 2]! << 8) | bytes[start + 3]!;
    head.questions = (bytes[start + 4]! << 8) | bytes[start + 5]!;
    head.answers = (bytes[start + 6]! << 8) | bytes[start + 7]!;
    if (head.questions === 0) return false;
    const at = this.#name(bytes, start + HEADER.SIZE, end);
    if (at < 0 || at + 4 > end) return false;
    head.type = (bytes[at]! << 8) | bytes[at + 1]!;
    const others = (head.answers << 16) | (bytes[start + 8]! << 8) | bytes[start + 9]!;
    const additional = (bytes[start + 10]! << 8) | bytes[start + 11]!;
    if ((head.flags & FLAG.QR) === 0 && others === 0 && additional > 0)
      this.#opt(bytes, at + 4, end, cut);
    return true;
  }

  /**
   * Reads a truncated question, `bytes[start, end)`, after `read`. The rest of the name distinguishes it from others,
   * while ports and IDs match replies.
   */
  readCut(bytes: Uint8Array, start: number, end: number): void {
    const { head } = this;
    const folded = this.#folded;
    head.name = '';
    head.nameHash = 0;
    head.type = TYPE_CUT;
    head.questions = 0;
    const isQuery = end - start >= HEADER.SIZE && (head.flags & FLAG.QR) === 0;
    if (isQuery && head.answers === 0 && (bytes[start + 8]! | bytes[start + 9]!) === 0)
      if ((bytes[start + 10]! | bytes[start + 11]!) > 0) head.udpSize = UDP_LEAST;
    let length = 0;
    for (let at = start + HEADER.SIZE; at < end;) {
      const size = bytes[at++]!;
      if (size === 0) break;
      if (size > 63 || length + size + 1 > NAME_MAX) return;
      const stop = Math.min(end, at + size);
      if (stop === at) break;
      folded[length++] = stop - at;
      for (; at < stop; at++) {
        const lower = LOWER[bytes[at]!]!;
        if (lower !== bytes[at]) head.capitals = true;
        folded[length++] = lower;
      }
    }
    if (length === 0) return;
    folded[length++] = 0;
    head.name = this.#beginnings.of(folded, 0, length);
    head.nameHash = this.#beginnings.hash;
  }

  /** @returns where the name ends, or -1 if it is malformed */
  #name(bytes: Uint8Array, at: number, end: number): number {
    const folded = this.#folded;
    let length = 0;
    let capitals = false;
    for (;;) {
      if (at >= end) return -1;
      const size = bytes[at++]!;
      folded[length++] = size;
      if (size === 0) break;
      if (size > 63 || at + size > end || length + size >= NAME_MAX) return -1;
      for (const stop = at + size; at < stop; at++) {
        const byte = bytes[at]!;
        const lower = LOWER[byte]!;
        if (lower !== byte) capitals = true;
        folded[length++] = lower;
      }
    }
    this.head.capitals = capitals;
    this.head.name = this.#names.of(folded, 0, length);
    this.head.nameHash = this.#names.hash;
    return at;
  }

  #opt(bytes: Uint8Array, at: number, end: number, cut: boolean): void {
    // We assume that a query has an OPT after the question unless the bytes prove otherwise.
    for (let i = at; i < Math.min(at + 3, end); i++)
      if (bytes[i] !== (i < at + 2 ? 0 : TYPE.OPT)) return;
    if (at + 11 > end) {
      if (cut) this.head.udpSize = UDP_LEAST;
      return;
    }
    this.head.udpSize = (bytes[at + 3]! << 8) | bytes[at + 4]!;
    const stop = Math.min(end, at + 11 + ((bytes[at + 9]! << 8) | bytes[at + 10]!));
    for (let option = at + 11; option + 4 <= stop;) {
      if (((bytes[option]! << 8) | bytes[option + 1]!) === COOKIE) this.head.cookie = true;
      option += 4 + ((bytes[option + 2]! << 8) | bytes[option + 3]!);
    }
  }
}

/**
 * Hashes the client's port, the protocol, ID and question, none of which address translation changes, to 30 bits. On a
 * collision, the later one is found.
 */
export function questionHash(
  protocol: 'udp' | 'tcp',
  port: number,
  { id, type, nameHash }: MessageHead,
): number {
  let hash = Math.imul(nameHash ^ ((port << 16) | id), 0x9e3779b1);
  hash = Math.imul((hash ^ (hash >>> 15)) + (protocol === 'udp' ? type : ~type), 0x85ebca6b);
  return (hash ^ (hash >>> 13)) & 0x3fff_ffff;
}
