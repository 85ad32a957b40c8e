/**
 * Header blocks for replies (HPACK, RFC 7541). They never use the connection's dynamic table, so each one is
 * self-contained and can be written by copying bytes. Numbers refer to entries in the static table.
 */
import { MEDIA_TYPE } from './dns-over-https.ts';
import { leastTtl } from './least-ttl.ts';

const STATUS_200 = 0x88;
const STATUS = 8;
const CONTENT_TYPE = 31;
const CONTENT_LENGTH = 28;
const CACHE_CONTROL = 24;

/** Maximum size of a reply's header block. */
export const FIELDS_MAX = 96;

const beginning = Buffer.concat([okFields(MEDIA_TYPE), Buffer.of(...fieldName(CONTENT_LENGTH))]);
const MAX_AGE = Buffer.from('max-age=');
const cacheControl = Buffer.of(...fieldName(CACHE_CONTROL));

/** Builds the fields of a successful reply with this media type. */
export function okFields(mediaType: string): Buffer {
  return Buffer.concat([
    Buffer.of(STATUS_200, ...fieldName(CONTENT_TYPE), mediaType.length),
    Buffer.from(mediaType),
  ]);
}

/**
 * Writes the block for a reply with the DNS message `body[start, end)`.
 * @returns the position after it
 */
export function writeReplyFields(
  out: Uint8Array,
  at: number,
  body: Uint8Array,
  start: number,
  end: number,
): number {
  at = copy(beginning, out, at);
  const length = end - start;
  out[at++] = digits(length);
  at = writeNumber(out, at, length);
  at = copy(cacheControl, out, at);
  const age = leastTtl(body, start, end);
  out[at++] = MAX_AGE.length + digits(age);
  at = copy(MAX_AGE, out, at);
  return writeNumber(out, at, age);
}

/**
 * Writes the block for a reply without a body.
 * @returns the position after it
 */
export function writeStatus(out: Uint8Array, at: number, status: number): number {
  out[at++] = STATUS;
  out[at++] = 3;
  return writeNumber(out, at, status);
}

/** Encodes a name from the static table with a value that must not be indexed. */
function fieldName(index: number): readonly number[] {
  return [0x0f, index - 0x0f];
}

/** Copies all of `bytes`, and returns the position after it. */
export function copy(bytes: Uint8Array, out: Uint8Array, at: number): number {
  for (let i = 0; i < bytes.length; i++) out[at++] = bytes[i]!;
  return at;
}

function digits(number: number): number {
  let count = 1;
  for (let rest = number; rest >= 10; rest = Math.trunc(rest / 10)) count++;
  return count;
}

function writeNumber(out: Uint8Array, at: number, number: number): number {
  const end = at + digits(number);
  for (let i = end - 1, rest = number; i >= at; i--) {
    out[i] = 0x30 + (rest % 10);
    rest = Math.trunc(rest / 10);
  }
  return end;
}
