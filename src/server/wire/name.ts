/**
 * Domain names. In wire form, they are length-prefixed labels of arbitrary bytes, ending in the root's zero byte (RFC
 * 1035 section 3.1). In text form, they are absolute (`example.org.`). Dots and backslashes within labels are escaped,
 * and unprintable bytes are written as `\DDD`.
 */

/** An uncompressed name in wire form, which has 1 to 255 bytes including the root byte. */
export type WireName = Uint8Array;

/** Maximum size of a name in wire form (RFC 1035 section 2.3.4). */
export const NAME_MAX = 255;
/** Maximum size of a label (RFC 1035 section 2.3.4). */
const LABEL_MAX = 63;
/** The root: no labels. */
export const ROOT: WireName = Uint8Array.of(0);

/** Explains why a text is not a domain name. */
export class NameError extends Error {
  override readonly name = 'NameError';
}

/** Maps bytes to ASCII lower case, leaving other bytes unchanged (RFC 4343). */
export const LOWER: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte >= 0x41 && byte <= 0x5a ? byte + 32 : byte,
);

/**
 * Converts a name to wire form, preserving case. If the final dot is missing, it is assumed.
 * @throws NameError
 */
export function parseName(text: string): WireName {
  if (text === '.' || text === '') return ROOT;
  return parsePlain(text) ?? parseAny(text);
}

const plainOut = new Uint8Array(NAME_MAX + 1);

/**
 * A fast path for nearly all names, which are ASCII without escapes and within the length limits. Returns null for any
 * other text.
 */
function parsePlain(text: string): WireName | null {
  if (text.length > NAME_MAX - 2) return null;
  let length = 0;
  let end = 1;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x2e) {
      const size = end - length - 1;
      if (size === 0 || size > LABEL_MAX) return null;
      plainOut[length] = size;
      length = end++;
    } else if (code === 0x5c || code >= 0x80) return null;
    else plainOut[end++] = code;
  }
  if (end > length + 1) {
    const size = end - length - 1;
    if (size > LABEL_MAX) return null;
    plainOut[length] = size;
    length = end;
  }
  plainOut[length] = 0;
  return plainOut.slice(0, length + 1);
}

function parseAny(text: string): WireName {
  const out = new Uint8Array(NAME_MAX);
  let length = 0; // position of the current label's length byte
  let end = 1;
  const bytes = encoder.encode(text);
  const close = (at: number): void => {
    const size = end - length - 1;
    if (size === 0) throw new NameError(`${JSON.stringify(text)}: empty label at character ${at}`);
    if (size > LABEL_MAX)
      throw new NameError(
        `${JSON.stringify(text)}: label of ${size} bytes; at most 63 are allowed`,
      );
    out[length] = size;
    length = end++;
  };
  for (let at = 0; at < bytes.length; at++) {
    let byte = bytes[at]!;
    if (byte === 0x2e) {
      close(at);
      continue;
    }
    if (byte === 0x5c) {
      const digits =
        text.length === bytes.length
          ? text.slice(at + 1, at + 4)
          : decodeAscii(bytes, at + 1, at + 4);
      if (/^\d{3}$/.test(digits)) {
        byte = Number(digits);
        if (byte > 255) throw new NameError(`${JSON.stringify(text)}: \\${digits} is not a byte`);
        at += 3;
      } else {
        if (++at >= bytes.length)
          throw new NameError(`${JSON.stringify(text)}: ends in a backslash`);
        byte = bytes[at]!;
      }
    }
    if (end >= NAME_MAX)
      throw new NameError(`${JSON.stringify(text.slice(0, 40))}…: longer than 255 bytes`);
    out[end++] = byte;
  }
  if (end > length + 1) close(bytes.length);
  if (length + 1 > NAME_MAX)
    throw new NameError(`${JSON.stringify(text.slice(0, 40))}…: longer than 255 bytes`);
  out[length] = 0;
  return out.slice(0, length + 1);
}

/** Does the same, but returns null if the text is not a name. */
export function parseNameOrNull(text: string): WireName | null {
  try {
    return parseName(text);
  } catch (error) {
    if (error instanceof NameError) return null;
    throw error;
  }
}

/** Returns true if the text of a name ends in an unescaped dot. */
export function isAbsoluteName(text: string): boolean {
  if (!text.endsWith('.')) return false;
  let backslashes = 0;
  for (let at = text.length - 2; text[at] === '\\'; at--) backslashes++;
  return backslashes % 2 === 0;
}

/** Prints the uncompressed wire name at `at`. */
export function printName(wire: Uint8Array, at = 0): string {
  if (wire[at] === 0) return '.';
  // Nearly all names need no escapes. For these, copying the bytes once and replacing lengths with dots gives the text.
  let end = at;
  let out = 0;
  for (let length = wire[end]!; length > 0 && length <= LABEL_MAX; length = wire[end]!) {
    const next = end + length + 1;
    for (end++; end < next; end++) {
      const byte = wire[end]!;
      if (plain[byte] !== 1 || out === NAME_MAX) return printEscaped(wire, at);
      scratch[out++] = byte;
    }
    scratch[out++] = DOT;
  }
  return wire[end] === 0 ? scratch.toString('latin1', 0, out) : printEscaped(wire, at);
}

const DOT = 0x2e;
/** Scratch space, one per thread, used only within `printName`. */
const scratch = Buffer.alloc(2 * NAME_MAX);

function printEscaped(wire: Uint8Array, at: number): string {
  let text = '';
  for (let length = wire[at]!; length > 0; length = wire[at]!) {
    text += printLabel(wire, at + 1, at + 1 + length) + '.';
    at += length + 1;
  }
  return text;
}

/** Prints the label in `bytes[from, to)`, escaped. */
export function printLabel(bytes: Uint8Array, from: number, to: number): string {
  let text = '';
  for (let at = from; at < to; at++) text += labelText[bytes[at]!]!;
  return text;
}

/** Returns the length of the uncompressed wire name at `at`, including the root byte. */
export function nameLength(wire: Uint8Array, at = 0): number {
  let end = at;
  while (wire[end]! > 0) end += wire[end]! + 1;
  return end + 1 - at;
}

export function foldName(wire: WireName): WireName {
  return wire.map((byte) => LOWER[byte]!);
}

/**
 * Copies the uncompressed name at `from` in lower case.
 * @returns its length
 */
export function foldNameInto(bytes: Uint8Array, from: number, to: Uint8Array, at = 0): number {
  const size = nameLength(bytes, from);
  for (let i = 0; i < size; i++) to[at + i] = LOWER[bytes[from + i]!]!;
  return size;
}

/** Prepends the labels of `prefix` to `suffix`. Returns null if the result would exceed 255 bytes. */
export function joinNames(prefix: WireName, suffix: WireName): WireName | null {
  const length = prefix.length - 1 + suffix.length;
  if (length > NAME_MAX) return null;
  const out = new Uint8Array(length);
  out.set(prefix.subarray(0, prefix.length - 1));
  out.set(suffix, prefix.length - 1);
  return out;
}

/**
 * Returns the position in `name` of its suffix `zone` (0 if they are equal), or -1 if the name is not in the zone. Both
 * must be in lower case.
 * @param length the name's length, if it is at the start of a longer buffer
 */
export function suffixAt(name: Uint8Array, zone: WireName, length: number = name.length): number {
  const from = length - zone.length;
  let at = 0;
  while (at < from) at += name[at]! + 1;
  if (at !== from) return -1;
  for (let i = 0; i < zone.length; i++) if (name[at + i] !== zone[i]) return -1;
  return at;
}

const encoder = new TextEncoder();

function decodeAscii(bytes: Uint8Array, from: number, to: number): string {
  return String.fromCharCode(...bytes.subarray(from, to));
}

const labelText: readonly string[] = Array.from({ length: 256 }, (_, byte) => {
  const char = String.fromCharCode(byte);
  if ('."();@$\\'.includes(char)) return `\\${char}`;
  if (byte <= 0x20 || byte >= 0x7f) return `\\${String(byte).padStart(3, '0')}`;
  return char;
});
/** By byte: 1 if it is printed unescaped. */
const plain = Uint8Array.from(labelText, (text) => (text.length === 1 ? 1 : 0));
