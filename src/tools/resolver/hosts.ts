/** Reads /etc/hosts, where each address is followed by its names and `#` starts a comment. */
import { parseAddress } from '../../server/base/ip.ts';
import type { AddressFamily } from './client.ts';
import { shortIPv4 } from './glibc-conf.ts';
import { withoutZone } from './myhostname.ts';
import { linesOf, wordsOf } from './resolv-conf.ts';

/** Line numbers start at 1. */
export interface HostsEntry {
  readonly line: number;
  readonly address: string;
  readonly family: AddressFamily;
  readonly names: readonly string[];
}

/** @param comment matches the part of a line to ignore */
export function readHosts(text: string | null, comment: RegExp = /#.*/s): HostsEntry[] {
  const entries: HostsEntry[] = [];
  linesOf(text).forEach((line, index) => {
    const [address, ...names] = wordsOf(line.replace(comment, ''));
    const bytes = address === undefined ? null : parseAddress(address.replace(/%.*/s, ''));
    if (address === undefined || bytes === null || names.length === 0) return;
    entries.push({ line: index + 1, address, family: bytes.length === 4 ? 4 : 6, names });
  });
  return entries;
}

/**
 * Parses entries like musl. The address must be at the start of the line, and may be in short form (`127.1`). If the
 * file does not end in a newline, its last name is lost.
 */
export function readMuslHosts(text: string | null): HostsEntry[] {
  const lines = linesOf(text);
  const unterminated = text !== null && !text.endsWith('\n');
  return lines.flatMap((line, index) => {
    const [bare = '', comment] = line.split(/#(.*)/s);
    const [address = '', ...names] = /^\s/.test(bare) ? [] : wordsOf(bare);
    const open = unterminated && index === lines.length - 1 && comment === undefined;
    if (open && !/\s$/.test(bare)) names.pop();
    const plain = withoutZone(shortIPv4(address) ?? address);
    const bytes = parseAddress(plain);
    if (bytes === null || names.length === 0) return [];
    return [{ line: index + 1, address: plain, family: bytes.length === 4 ? 4 : 6, names }];
  });
}

/** Returns the entries that list exactly this name, ignoring case. Trailing dots matter. */
export function entriesFor(entries: readonly HostsEntry[], name: string): HostsEntry[] {
  const wanted = name.toLowerCase();
  return entries.filter((entry) => entry.names.some((other) => other.toLowerCase() === wanted));
}

/**
 * Returns the addresses that c-ares 1.34 finds for a name. It has one entry per address. A line adds its names to the
 * entry that has its address, or its address to an entry that has one of its names. A name resolves to its first entry.
 */
export function mergedAddresses(entries: readonly HostsEntry[], name: string): string[] {
  const byAddress = new Map<string, string[]>();
  const byName = new Map<string, string[]>();
  for (const { address, names } of entries) {
    const folded = names.map((one) => one.toLowerCase());
    const named = folded.map((one) => byName.get(one)).find((one) => one !== undefined);
    const entry = byAddress.get(address) ?? named ?? [];
    if (!entry.includes(address)) entry.push(address);
    byAddress.set(address, entry);
    for (const one of folded) if (!byName.has(one)) byName.set(one, entry);
  }
  return byName.get(name.toLowerCase()) ?? [];
}

/**
 * Returns a name's alias from HOSTALIASES, which has lines of `alias canonical` for names without dots. Null if there
 * is none.
 */
export function hostAlias(text: string | null, name: string): string | null {
  if (text === null || name.includes('.')) return null;
  for (const line of linesOf(text)) {
    const [alias, canonical] = wordsOf(line);
    if (alias?.toLowerCase() === name.toLowerCase() && canonical !== undefined) return canonical;
  }
  return null;
}
