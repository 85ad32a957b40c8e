/** Names a client's resolver and how certain that is, or explains why it is unknown. */
import type { Kind } from './asking-classes.ts';
import type { Recognition } from './recognition.ts';

export interface NamedResolver {
  /** One kind, two that cannot be distinguished (likelier first), or none. */
  readonly kinds: readonly Kind[];
  /** The probability of `kinds`, 0 to 1; null if empty. */
  readonly confidence: number | null;
  /** The number of lookups used, at most 64. */
  readonly lookups: number;
  /** Empty if it is known. */
  readonly why: string;
}

/** A client that also answers queries in the same capture, such as CoreDNS, dnsmasq or a stub on the node. */
export const forwarder: NamedResolver = {
  kinds: ['forwarder'],
  confidence: null,
  lookups: 0,
  why: 'a name server, which queries for its clients',
};

/** With fewer lookups, an uncertain result is expected. */
const FEW = 5;

/** @param asked the client's number of lookups */
export function resolverOf({ best, untimed }: Recognition, asked: number): NamedResolver {
  if (best === null) {
    const unseen = asked > 0 ? 'its lookups do not show it' : 'its names are not in the capture';
    const why = untimed ? 'the log has no times' : unseen;
    return { kinds: [], confidence: null, lookups: 0, why };
  }
  const { among, sure, lookups, several } = best;
  if (among.length > 0) return { kinds: among, confidence: sure, lookups, why: '' };
  if (several.length > 0) {
    const programs = several
      .map((kind) => (kind === 'tool' || kind === 'forwarder' ? `a ${kind}` : kind))
      .join(' and ');
    return { kinds: [], confidence: null, lookups, why: `several programs, like ${programs}` };
  }
  const why =
    lookups < FEW ? 'too few lookups' : 'its behaviour matches no known resolver, or several';
  return { kinds: [], confidence: null, lookups, why };
}
