/** Reading the lines of hosts files. */
import { parseAddress } from '../../base/ip.ts';
import { foldName, NameError, parseName, printName, type WireName } from '../../wire/name.ts';

/** What hosts lines say of one name: addresses forward, names backward. */
export interface Entry {
  /** Wire form, lower case; a first label `*` stands for exactly one label. */
  readonly name: WireName;
  readonly v4: Uint8Array[];
  readonly v6: Uint8Array[];
  readonly pointers: WireName[];
}

/** What several hosts files say together. */
export interface Entries {
  readonly byName: ReadonlyMap<string, Entry>;
  /** As CoreDNS counts them: every address of every name, and every name of every address. */
  readonly count: number;
  /** Names that have more addresses than are kept. */
  readonly crowded: readonly string[];
}

/** Addresses of one name, or names of one address: what fits into one message, with room to spare. */
const PER_NAME_MAX = 1000;

/**
 * Understands hosts files (`ADDRESS NAME…`, `#` begins a comment). Lines that make no sense, and names that `wanted` does not
 * want, are passed over.
 * @param texts in order of precedence: what a later one says of a name is added
 */
export function readEntries(
  texts: readonly string[],
  wanted: (name: WireName) => boolean,
  reverse: boolean,
): Entries {
  const byName = new Map<string, Entry>();
  const crowded = new Set<string>();
  let count = 0;
  const entryOf = (name: WireName): Entry => {
    const key = Buffer.from(name).toString('latin1');
    let entry = byName.get(key);
    if (entry === undefined) {
      entry = { name, v4: [], v6: [], pointers: [] };
      byName.set(key, entry);
    }
    return entry;
  };
  const add = (list: Uint8Array[], item: Uint8Array, name: WireName): void => {
    count++;
    if (list.some((other) => Buffer.compare(other, item) === 0)) return;
    if (list.length < PER_NAME_MAX) list.push(item);
    else crowded.add(printName(name));
  };
  for (const text of texts) {
    for (const line of text.split('\n')) {
      const [first, ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
      const address = names.length === 0 ? null : addressOf(first!);
      if (address === null) continue;
      for (const word of names) {
        const name = nameOf(word);
        if (name === null || !wanted(name)) continue;
        const { v4, v6 } = entryOf(name);
        add(address.length === 4 ? v4 : v6, address, name);
        if (reverse && !isWildcard(name)) {
          const back = reverseName(address);
          add(entryOf(back).pointers, name, back);
        }
      }
    }
  }
  return { byName, count, crowded: [...crowded] };
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
