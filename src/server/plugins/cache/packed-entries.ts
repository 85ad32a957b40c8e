/** Packs cache entries into bytes for the process that takes over. */
import { FLAG, HEADER, TYPE } from '../../wire/iana.ts';
import { Query } from '../../transport/query.ts';
import { Reply } from '../../wire/reply.ts';
import type { Half } from './entries.ts';
import type { Store } from './store.ts';

/**
 * Size of the header before each message, in bytes. It contains size, half, variant, whether the entry covers the whole
 * name, result code, TTL and age.
 */
const HEAD = { SIZE: 20, HALF: 4, VARIANT: 5, WHOLE: 6, RCODE: 7, TTL: 8, AGE: 12 };
/** Maximum size of a handover; entries beyond it are omitted. */
const BYTES_MAX = 16 * 1024 * 1024;

/** Packs all entries that are valid at `now` (store clock, in milliseconds). */
export function packEntries(store: Store, now: number): Uint8Array<ArrayBuffer> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  store.each((slot, message, variant, whole) => {
    const left = store.end(slot) - now;
    if (left <= 0 || size + HEAD.SIZE + message.length > BYTES_MAX) return;
    const ttl = store.ttl(slot);
    const head = new Uint8Array(HEAD.SIZE);
    const view = new DataView(head.buffer);
    view.setUint32(0, message.length);
    view.setUint8(HEAD.HALF, store.half(slot));
    view.setUint8(HEAD.VARIANT, variant);
    view.setUint8(HEAD.WHOLE, whole ? 1 : 0);
    view.setUint8(HEAD.RCODE, store.rcode(slot));
    view.setUint32(HEAD.TTL, ttl);
    view.setFloat64(HEAD.AGE, ttl * 1000 - left);
    pieces.push(head, message);
    size += head.length + message.length;
  });
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

/**
 * Stores packed entries until it finds one that is incomplete or not a reply to a question.
 * @returns the number of entries stored
 */
export function unpackEntries(bytes: Uint8Array, store: Store, now: number): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let count = 0;
  for (let at = 0; at + HEAD.SIZE <= bytes.length;) {
    const start = at + HEAD.SIZE;
    const end = start + view.getUint32(at);
    if (end > bytes.length) break;
    const variant = view.getUint8(at + HEAD.VARIANT);
    const query = asked(bytes, start, end, variant);
    if (query === null) break;
    const rcode = view.getUint8(at + HEAD.RCODE);
    const reply = new Reply(bytes, start, end, rcode, 'cache');
    const half = view.getUint8(at + HEAD.HALF) as Half;
    const entry = {
      ttlAt: store.offsets.of(reply),
      rcode,
      everyType: view.getUint8(at + HEAD.WHOLE) === 1,
      seconds: view.getUint32(at + HEAD.TTL),
      born: now - view.getFloat64(at + HEAD.AGE),
    };
    if (store.put(query, reply, half, entry) >= 0) count++;
    at = end;
  }
  return count;
}

/** Returns a query as a client of this kind (DO, CD) would send it, or null if the message has no question. */
function asked(bytes: Uint8Array, start: number, end: number, variant: number): Query | null {
  let at = start + HEADER.SIZE;
  while (at < end && bytes[at] !== 0) at += 1 + bytes[at]!;
  at += 5;
  if (at > end) return null;
  const question = bytes.subarray(start + HEADER.SIZE, at);
  const message = new Uint8Array(HEADER.SIZE + question.length + OPT.length);
  message[2] = FLAG.RD >> 8;
  message[3] = (variant & 2) === 0 ? 0 : FLAG.CD;
  message[5] = 1;
  message[11] = 1;
  message.set(question, HEADER.SIZE);
  message.set(OPT, HEADER.SIZE + question.length);
  message[message.length - 4] = (variant & 1) === 0 ? 0 : 0x80;
  const query = new Query();
  return query.read(message, 0, message.length) === 'serve' ? query : null;
}

/** The OPT record in a query: root, type, 1232 bytes, version 0, no options. */
const OPT = Uint8Array.of(0, 0, TYPE.OPT, 0x04, 0xd0, 0, 0, 0, 0, 0, 0);
