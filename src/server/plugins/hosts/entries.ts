/** Reads the lines of hosts files. */
import { parseAddress, unmappedBytes } from '../../base/ip.ts';
import { foldName, parseName, parseNameOrNull, type WireName } from '../../wire/name.ts';
import { nameOfAddress } from '../../wire/reverse-name.ts';
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
    const spelled = parseNameOrNull(word);
    const name = spelled === null ? null : foldName(spelled);
    if (name === null || !wanted(name)) continue;
    if (reverse && !isWildcard(name)) back ??= parseName(nameOfAddress(address));
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
  return address === null ? null : unmappedBytes(address);
}

function isWildcard(name: Uint8Array): boolean {
  return name[0] === 1 && name[1] === 0x2a;
}
