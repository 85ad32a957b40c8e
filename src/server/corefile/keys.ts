import type { Problem } from '../base/problem.ts';
import { transports } from '../wire/transports.ts';
import { gluedBrace } from './glued-brace.ts';
import { blockProblem, meant, warning } from './problems.ts';
import type { Key, Token } from './corefile-tree.ts';
import { followsPreferredSyntax, schemes, splitAddress, splitScheme } from './zones.ts';

/** The interpretation of one server block address. */
export interface ParsedKey {
  /** Several keys for a CIDR between two label boundaries, or none if there is a problem. */
  readonly keys: readonly Key[];
  readonly problem: Problem | null;
  readonly warnings: readonly Problem[];
}

/** Parses one server block address: `[scheme://]zone[:port]`. */
export function parseKey(token: Token, dnsPort: number): ParsedKey {
  const { text, place } = token;
  const { scheme, rest } = splitScheme(text);
  const glued = gluedBrace(text);
  const refused = (why: string, remedy: string | null = null): ParsedKey => ({
    keys: [],
    problem: blockProblem(place, why, glued ?? { remedy }),
    warnings: [],
  });
  if (scheme === 'unix') return refused(`cannot serve on unix://: ${text}`);
  const address = splitAddress(rest);
  if ('wrong' in address) return refused(address.wrong, remedyFor(rest));
  const port = address.port ?? (scheme === 'dns' ? dnsPort : transports[scheme].port);
  if (port < 0 || port > 65535)
    return refused(`invalid port in ${text}`, 'Ports go from 0 to 65535.');
  const keys = address.zones.map((zone) => ({ text, place, scheme, zone, port }));
  return { keys, problem: null, warnings: remarks(token, keys) };
}

function remedyFor(address: string): string | null {
  return /^:\d*$/.test(address) ? `Include the zone; the root zone is '.${address}'.` : null;
}

function remarks({ text, place }: Token, keys: readonly Key[]): readonly Problem[] {
  const odd = keys.filter(({ zone }) => !followsPreferredSyntax(zone));
  const unknown = /^([a-z0-9+.-]+):\/\//i.exec(text)?.[1];
  const foreign = unknown !== undefined && keys.some(({ zone }) => zone.includes('://'));
  const hint = foreign
    ? `'${unknown}' is not a scheme. ${meant(unknown, schemes) ?? `Known: ${schemes.slice(0, -1).join(', ')}.`}`
    : null;
  return odd.slice(0, 1).map(({ zone }) =>
    warning(place, `Domain ${JSON.stringify(zone)} does not follow RFC1035 preferred syntax`, {
      code: 'zone-unusual',
      ...(gluedBrace(text) ?? { hint }),
    }),
  );
}
