/** Reads the lines of hosts files. */
import { parseAddress } from '../../base/ip.ts';
import { foldName, NameError, parseName, type WireName } from '../../wire/name.ts';
import type { HostsBuilder } from './builder.ts';

export interface EntryTerms {
  readonly wanted: (name: WireName) => boolean;
  readonly reverse: boolean;
}

/**
 * Parses a line from a hosts file (`ADDRESS NAME…`; `#` starts a comment). Invalid lines and unwanted names are
 * skipped.
 * @returns false if further lines would be ignored
 */
export function readEntry(line: string, terms: EntryTerms, builder: HostsBuilder): boolean {
  const steps = entrySteps(line, terms, builder);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Does the same in steps of one name, because a line may have millions and the caller has other work to do. */
export function* entrySteps(
  line: string,
  { wanted, reverse }: EntryTerms,
  builder: HostsBuilder,
): Generator<void, boolean> {
  const words = wordsOf(line);
  const first = words.next();
  const address = first.done === true ? null : addressOf(first.value);
  if (address === null) return true;
  let back: WireName | null = null;
  for (const word of words) {
    yield;
    const name = nameOf(word);
    if (name === null || !wanted(name)) continue;
    if (reverse && !isWildcard(name)) back ??= reverseName(address);
    if (!builder.add(name, address, isWildcard(name) ? null : back)) return false;
  }
  return true;
}

/** Does not build an array, because a line may have millions of words. */
function* wordsOf(line: string): Generator<string> {
  const comment = line.indexOf('#');
  const text = comment < 0 ? line : line.slice(0, comment);
  for (let from = 0; from < text.length;) {
    WORD.lastIndex = from;
    const found = WORD.exec(text);
    if (found === null) return;
    from = WORD.lastIndex;
    yield found[0];
  }
}

const WORD = /\S+/g;

/** True if the line consists of an address and at least one name. */
export function isEntry(line: string): boolean {
  const [first, name] = line.split(/\s+/);
  return name !== undefined && addressOf(first!) !== null;
}

/** Parses an address and drops its zone (`fe80::1%eth0`). An IPv4-mapped address (`::ffff:10.0.0.1`) becomes IPv4. */
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
