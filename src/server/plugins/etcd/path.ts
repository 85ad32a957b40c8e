/** Converts names to key paths and back. */
import { parseNameOrNull, type WireName } from '../../wire/name.ts';

/**
 * The path for a name's records, with labels from right to left: `/local/skydns/www`. Paths are byte strings (latin1),
 * without the directive's `path`.
 */
export interface NamePath {
  readonly path: string;
  /** The part before the first wildcard (`*` or `any`), or the whole `path` if there is none. */
  readonly base: string;
}

const scratch = Buffer.alloc(1024);
const SLASH = 0x2f;

/** Returns the path for a name in wire form and lower case, escaping special bytes as CoreDNS does. */
export function pathOf(name: Uint8Array, length: number = name.length): NamePath {
  const starts: number[] = [];
  for (let at = 0; at < length && name[at] !== 0; at += name[at]! + 1) starts.push(at);
  let end = 0;
  let wild = -1;
  for (let i = starts.length - 1; i >= 0; i--) {
    const at = starts[i]!;
    const size = name[at]!;
    if (wild < 0 && isWildcard(name, at)) wild = end;
    scratch[end++] = SLASH;
    for (let from = at + 1; from <= at + size; from++) end = writeByte(name[from]!, end);
  }
  const path = scratch.toString('latin1', 0, end);
  return { path, base: wild < 0 ? path : path.slice(0, wild) };
}

function isWildcard(name: Uint8Array, at: number): boolean {
  if (name[at] === 1) return name[at + 1] === 0x2a;
  return name[at] === 3 && name[at + 1] === 0x61 && name[at + 2] === 0x6e && name[at + 3] === 0x79;
}

function writeByte(byte: number, at: number): number {
  const escaped = escapes[byte];
  if (escaped === undefined) {
    scratch[at] = byte;
    return at + 1;
  }
  return at + scratch.write(escaped, at, 'latin1');
}

/** Escape sequences, indexed by byte. */
const escapes: readonly (string | undefined)[] = Array.from({ length: 256 }, (_, byte) => {
  if (byte < 0x20 || byte > 0x7e) return `\\${String(byte).padStart(3, '0')}`;
  const char = String.fromCharCode(byte);
  return '. \'@;()"\\'.includes(char) ? `\\${char}` : undefined;
});

/** True if a key matches a name with wildcards, segment by segment. The key may have further segments. */
export function matches(key: string, segments: readonly string[]): boolean {
  let at = 0;
  for (let i = 1; i < segments.length; i++) {
    if (at >= key.length) return false;
    const next = key.indexOf('/', at + 1);
    const end = next < 0 ? key.length : next;
    const wanted = segments[i]!;
    if (wanted !== '*' && wanted !== 'any') {
      if (end - at - 1 !== wanted.length || !key.startsWith(wanted, at + 1)) return false;
    }
    at = end;
  }
  return true;
}

/**
 * Returns the name for a key's path, which is the target of records whose host is an address. Returns null if it is not
 * a domain name.
 */
export function nameOf(path: string): WireName | null {
  const segments = Buffer.from(path, 'latin1').toString('utf8').split('/');
  if (segments.at(-1) === '') segments.pop();
  return parseNameOrNull(`${segments.slice(1).toReversed().join('.')}.`);
}

/** Removes the first labels, unless the name has too few. */
export function stripped(name: WireName, labels: number): WireName {
  let at = 0;
  for (let i = 0; i < labels && name[at] !== 0; i++) at += name[at]! + 1;
  return name[at] === 0 ? name : name.subarray(at);
}

/** Returns the directive's `path` as a key prefix: `skydns` becomes `/skydns`, and `/` becomes an empty text. */
export function normalPrefix(path: string): string {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  return parts.map((part) => `/${part}`).join('');
}
