/** Reading the lines of hosts files. */
import { parseAddress } from '../../base/ip.ts';
import { foldName, NameError, parseName, printName, type WireName } from '../../wire/name.ts';

/**
 * What hosts lines say of one name: addresses forward, names backward. All are bytes as text, a character each (latin1), which takes a
 * fifth of the memory that arrays of them do: there may be hundreds of thousands.
 */
export interface Entry {
  readonly v4: readonly string[];
  readonly v6: readonly string[];
  /** Wire form. */
  readonly pointers: readonly string[];
}

/** What several hosts files say together. */
export interface Entries {
  /** By wire form in lower case, as text; a first label `*` stands for exactly one label. */
  readonly byName: ReadonlyMap<string, Entry>;
  /** As CoreDNS counts them: every address of every name, and every name of every address. */
  readonly count: number;
  /** Names that have more addresses than are kept. */
  readonly crowded: readonly string[];
  /** Whether there were more names than are kept. */
  readonly full: boolean;
}

/** Addresses of one name, or names of one address: what fits into one message, with room to spare. */
const PER_NAME_MAX = 1000;
/** Names of one file, those of addresses among them: the largest lists of blocked names have a third. Each takes some 120 bytes while it is read. */
export const NAMES_MAX = 400_000;

/**
 * Understands hosts files (`ADDRESS NAME…`, `#` begins a comment). Lines that make no sense, and names that `wanted` does not
 * want, are passed over.
 * @param texts in order of precedence: what a later one says of a name is added
 * @param namesMax names that one text may add; the rest of it is left out
 */
export function readEntries(
  texts: readonly string[],
  wanted: (name: WireName) => boolean,
  reverse: boolean,
  namesMax: number = NAMES_MAX,
): Entries {
  const byName = new Map<string, MutableEntry>();
  const crowded = new Set<string>();
  let count = 0;
  let full = false;
  let cut = false;
  let most = 0;
  const add = (owner: string, what: keyof Entry, item: string): void => {
    let entry = byName.get(owner);
    if (entry === undefined) {
      if (byName.size >= most) return void (cut = true);
      entry = { v4: none, v6: none, pointers: none };
      byName.set(owner, entry);
    }
    count++;
    const list = entry[what];
    if (list.includes(item)) return;
    if (list.length >= PER_NAME_MAX) crowded.add(printName(Buffer.from(owner, 'latin1')));
    else if (list.length === 0) entry[what] = [item];
    else list.push(item);
  };
  for (const text of texts) {
    most = byName.size + namesMax;
    cut = false;
    for (const line of linesOf(text)) {
      if (cut) break;
      const words = wordsOf(line);
      const first = words.next();
      const address = first.done === true ? null : addressOf(first.value);
      if (address === null) continue;
      const item = textOf(address);
      const back = reverse ? textOf(reverseName(address)) : '';
      for (const word of words) {
        const name = nameOf(word);
        if (name === null || !wanted(name)) continue;
        const owner = textOf(name);
        add(owner, address.length === 4 ? 'v4' : 'v6', item);
        if (reverse && !isWildcard(name)) add(back, 'pointers', owner);
      }
    }
    full ||= cut;
  }
  return { byName, count, crowded: [...crowded], full };
}

interface MutableEntry {
  v4: string[];
  v6: string[];
  pointers: string[];
}

/** Nothing is ever added to it. */
const none: string[] = [];

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');

/** Without an array of all: a file may have millions, and a line as many words. */
function* linesOf(text: string): Generator<string> {
  for (let from = 0; from <= text.length;) {
    const end = text.indexOf('\n', from);
    const to = end < 0 ? text.length : end;
    yield text.slice(from, to);
    from = to + 1;
  }
}

function* wordsOf(line: string): Generator<string> {
  const comment = line.indexOf('#');
  const text = comment < 0 ? line : line.slice(0, comment);
  for (const [word] of text.matchAll(/\S+/g)) yield word;
}

/** Whether a line says anything: an address, then names. */
export function isEntry(line: string): boolean {
  const [first, name] = line.split(/\s+/);
  return name !== undefined && addressOf(first!) !== null;
}

/** An address without its zone (`fe80::1%eth0`); an IPv4-mapped one (`::ffff:10.0.0.1`) is the IPv4 address. */
function addressOf(text: string): Uint8Array | null {
  const address = parseAddress(text.replace(/%.*/s, ''));
  if (address === null || address.length === 4) return address;
  const mapped =
    address[10] === 0xff &&
    address[11] === 0xff &&
    address.subarray(0, 10).every((byte) => byte === 0);
  return mapped ? address.slice(12) : address;
}

function nameOf(text: string): WireName | null {
  try {
    return foldName(parseName(text));
  } catch (error) {
    if (error instanceof NameError) return null;
    throw error;
  }
}

function isWildcard(name: Uint8Array): boolean {
  return name[0] === 1 && name[1] === 0x2a;
}

function reverseName(address: Uint8Array): WireName {
  const labels =
    address.length === 4
      ? Array.from(address, String)
      : Array.from(address, (byte) => byte.toString(16).padStart(2, '0')).flatMap((pair) => [
          pair[0],
          pair[1],
        ]);
  return parseName(
    `${labels.toReversed().join('.')}.${address.length === 4 ? 'in-addr.arpa.' : 'ip6.arpa.'}`,
  );
}
