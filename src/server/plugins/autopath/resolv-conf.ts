/** Search domains: those of a file like resolv.conf, and those of the Corefile. */
import { parseName, type WireName } from '../../wire/name.ts';

export const ownResolvConf = '/etc/resolv.conf';

/**
 * Returns the search domains of a resolv.conf text: those of the last `search` or `domain` line that are
 * valid names.
 */
export function searchListOf(text: string): WireName[] {
  let domains: readonly string[] = [];
  for (const line of text.split('\n')) {
    const [keyword, ...words] = line.trim().split(/\s+/);
    if (keyword === 'search') domains = words;
    if (keyword === 'domain') domains = words.slice(0, 1);
  }
  return wireNames(domains);
}

/** Search domains in wire form, lower case, without the root. */
export function wireNames(domains: readonly string[]): WireName[] {
  return domains.flatMap((domain) => {
    try {
      const name = parseName(domain.toLowerCase());
      return name.length > 1 ? [name] : [];
    } catch {
      return [];
    }
  });
}
