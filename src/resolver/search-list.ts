/** Names as a search makes them. */
import { nameBytes } from './reply.ts';

/** Whether the name fits into a DNS message: labels of 1 to 63 bytes, 255 in all (RFC 1035 section 2.3.4). */
export function isSendable(name: string): boolean {
  if (name === '.') return true;
  if (nameBytes(name) > 255) return false;
  const bare = name.endsWith('.') ? name.slice(0, -1) : name;
  return bare.split('.').every((label) => label.length > 0 && byteLength(label) <= 63);
}

/** UTF-8 bytes. */
export function byteLength(text: string): number {
  let bytes = 0;
  for (const letter of text) {
    const point = letter.codePointAt(0) ?? 0;
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  }
  return bytes;
}
