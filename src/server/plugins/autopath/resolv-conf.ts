/** Reads search domains from resolv.conf files and from the Corefile. */
import { parseNameOrNull, type WireName } from '../../wire/name.ts';

export const ownResolvConf = '/etc/resolv.conf';

/** Returns the valid search domains from the last `search` or `domain` line in a resolv.conf file. */
export function searchListOf(text: string): WireName[] {
  let domains: readonly string[] = [];
  for (const line of text.split('\n')) {
    const [keyword, ...words] = line.trim().split(/\s+/);
    if (keyword === 'search') domains = words;
    if (keyword === 'domain') domains = words.slice(0, 1);
  }
  return wireNames(domains);
}

/** Returns search domains in wire form and lower case, omitting the root. */
export function wireNames(domains: readonly string[]): WireName[] {
  return domains.flatMap((domain) => {
    const name = parseNameOrNull(domain.toLowerCase());
    return name === null || name.length === 1 ? [] : [name];
  });
}
