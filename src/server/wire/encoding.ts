/** Represents bytes as text, in the encodings used by zone files. */

const base32HexDigits = '0123456789ABCDEFGHIJKLMNOPQRSTUV';

/** Prints lower-case hex. */
export function printHex({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString('hex');
}

/** Parses hex; null if the text is malformed. */
export function parseHex(text: string): Uint8Array | null {
  if (text.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(text)) return null;
  return Uint8Array.from(Buffer.from(text, 'hex'));
}

/** Prints base64 (RFC 4648 section 4), padded. */
export function printBase64({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString('base64');
}

/** Parses padded base64. Returns null unless the text is the only one for its bytes. */
export function parseBase64(text: string): Uint8Array | null {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? Uint8Array.from(bytes) : null;
}

/** Prints base32 (RFC 4648 section 7, "extended hex") in upper case without padding, as in NSEC3. */
export function printBase32Hex(bytes: Uint8Array): string {
  return printBits(bytes, 5, base32HexDigits);
}

/** Parses base32 with the extended hex alphabet. Returns null if the text is malformed. */
export function parseBase32Hex(text: string): Uint8Array | null {
  return parseBits(text.toUpperCase(), 5, base32HexDigits);
}

function printBits(bytes: Uint8Array, width: number, digits: string): string {
  let text = '';
  let held = 0;
  let count = 0;
  for (const byte of bytes) {
    held = ((held << 8) | byte) & 0xffff;
    count += 8;
    for (; count >= width; count -= width)
      text += digits[(held >> (count - width)) & ((1 << width) - 1)]!;
  }
  if (count > 0) text += digits[(held << (width - count)) & ((1 << width) - 1)]!;
  return text;
}

function parseBits(text: string, width: number, digits: string): Uint8Array | null {
  const out = new Uint8Array(Math.floor((text.length * width) / 8));
  // There must be less than one digit of leftover bits, and they must be zero. Otherwise, a value could have more than
  // one text.
  if (text.length * width - out.length * 8 >= width) return null;
  let held = 0;
  let count = 0;
  let length = 0;
  for (const char of text) {
    const digit = digits.indexOf(char);
    if (digit < 0) return null;
    held = ((held << width) | digit) & 0xffff;
    count += width;
    if (count >= 8) {
      count -= 8;
      out[length++] = held >> count;
    }
  }
  return (held & ((1 << count) - 1)) === 0 ? out : null;
}

/**
 * Prints a character string as the text between the quotes in a zone file. Quotes and backslashes are escaped, and
 * unprintable bytes become `\DDD` (RFC 1035 section 5.1).
 */
export function printString(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += stringText[byte]!;
  return text;
}

const stringText: readonly string[] = Array.from({ length: 256 }, (_, byte) => {
  const char = String.fromCharCode(byte);
  if (char === '"' || char === '\\') return `\\${char}`;
  return byte < 0x20 || byte >= 0x7f ? `\\${String(byte).padStart(3, '0')}` : char;
});

/** Parses such a text. Characters beyond ASCII become their UTF-8 bytes. Returns null if an escape is malformed. */
export function parseString(text: string): Uint8Array | null {
  const from = utf8.encode(text);
  const out = new Uint8Array(from.length);
  let length = 0;
  for (let at = 0; at < from.length; at++) {
    let byte = from[at]!;
    if (byte === 0x5c) {
      if (++at === from.length) return null;
      byte = from[at]!;
      if (isDigit(byte)) {
        if (at + 2 >= from.length || !isDigit(from[at + 1]!) || !isDigit(from[at + 2]!))
          return null;
        const value = (byte - 48) * 100 + (from[at + 1]! - 48) * 10 + from[at + 2]! - 48;
        if (value > 255) return null;
        byte = value;
        at += 2;
      }
    }
    out[length++] = byte;
  }
  return out.slice(0, length);
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

const utf8 = new TextEncoder();
