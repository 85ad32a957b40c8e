/** Builds names with the search list. */
import { nameBytes } from './reply.ts';

/**
 * True if the name fits into a DNS message, with labels of 1 to 63 bytes and 255 in total (RFC 1035, section 2.3.4).
 */
export function isSendable(name: string, longest = 255): boolean {
  if (name === '.') return true;
  return nameBytes(presented(name)) <= longest && hasValidLabels(name);
}

/** True if every label has 1 to 63 bytes, with or without a trailing dot. */
export function hasValidLabels(name: string): boolean {
  const bare = name.endsWith('.') ? name.slice(0, -1) : name;
  return bare.split('.').every((label) => label.length > 0 && byteLength(label) <= 63);
}

/**
 * The name in presentation form (RFC 1035, section 5.1), where bytes other than printable ASCII become `\\DDD`.
 * Backslashes are not escaped again, so existing escapes are unchanged.
 */
export function presented(name: string): string {
  return name.replace(/[^!#-&*-:<-?A-~]/gu, (letter) =>
    '"\'();@$'.includes(letter)
      ? letter === "'"
        ? letter
        : `\\${letter}`
      : [...new TextEncoder().encode(letter)]
          .map((byte) => `\\${String(byte).padStart(3, '0')}`)
          .join(''),
  );
}

/** Counts UTF-8 bytes. */
export function byteLength(text: string): number {
  let bytes = 0;
  for (const letter of text) {
    const point = letter.codePointAt(0) ?? 0;
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  }
  return bytes;
}
