/** /etc/hosts: an address, then its names; `#` begins a comment. */
import { parseAddress } from '../base/ip.ts';
import type { Family } from './client.ts';
import { linesOf, wordsOf } from './resolv-conf.ts';

export interface HostsEntry {
  readonly line: number;
  readonly address: string;
  readonly family: Family;
  readonly names: readonly string[];
}

export function readHosts(text: string | null): HostsEntry[] {
  const entries: HostsEntry[] = [];
  linesOf(text).forEach((line, index) => {
    const [address, ...names] = wordsOf(line.replace(/#.*$/s, ''));
    const bytes = address === undefined ? null : parseAddress(address.replace(/%.*$/, ''));
    if (address === undefined || bytes === null || names.length === 0) return;
    entries.push({ line: index + 1, address, family: bytes.length === 4 ? 4 : 6, names });
  });
  return entries;
}

/** The entries that list exactly this name; case is ignored, a final dot is not. */
export function entriesFor(entries: readonly HostsEntry[], name: string): HostsEntry[] {
  const wanted = name.toLowerCase();
  return entries.filter((entry) => entry.names.some((other) => other.toLowerCase() === wanted));
}

/** HOSTALIASES: `alias canonical` a line, for names without a dot; null = no alias. */
export function hostAlias(text: string | null, name: string): string | null {
  if (text === null || name.includes('.')) return null;
  for (const line of linesOf(text)) {
    const [alias, canonical] = wordsOf(line);
    if (alias?.toLowerCase() === name.toLowerCase() && canonical !== undefined) return canonical;
  }
  return null;
}
