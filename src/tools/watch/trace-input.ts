/**
 * The input for tracing as one of the observed clients: its search path, its resolver, and replies to the names that a
 * lookup would try.
 */
import { isAddressType, rcodeName, TYPE } from '../../server/wire/iana.ts';
import type { Kind } from '../capture/fingerprint/asking-classes.ts';
import type { ClientResolvers } from './client-resolvers.ts';
import type { RingLookup } from './lookup-ring.ts';
import { isLostQuery, type StoredQuery } from './packed-lookup.ts';
import type { Parties } from './parties.ts';
import { NDOTS, searchPathOf } from './waste-plans.ts';

/** The number of lookups to read, newest first. */
const SCAN_MAX = 50_000;
/** The number of lookups from which a client's search path is inferred. */
const OWN_MAX = 1000;
/** The maximum number of rules for a name. */
const RULES_MAX = 100;
/** The resolvers that a trace compares by default. */
const USUAL: readonly Kind[] = ['glibc', 'musl', 'go', 'c-ares'];

export interface TraceInputView {
  readonly client: string;
  readonly resolvConf: string;
  /** The contents of an answers file. */
  readonly answers: string;
  readonly resolver: { readonly kinds: readonly Kind[]; readonly confidence: number | null };
  /** False if the default comparison lacks this resolver. */
  readonly isUsualResolver: boolean;
  /** Assumptions, for display. */
  readonly notes: readonly string[];
}

export interface TraceInputParts {
  readonly ring: { newest(fromMs: number): Iterable<RingLookup> };
  readonly parties: Parties;
  readonly resolvers: ClientResolvers;
}

/** Returns the input for a client, or null if the client has no lookup. */
export function traceInput(
  { ring, parties, resolvers }: TraceInputParts,
  client: string,
  name: string,
): TraceInputView | null {
  const own: RingLookup[] = [];
  const all: RingLookup[] = [];
  for (const lookup of ring.newest(-Infinity)) {
    all.push(lookup);
    if (lookup.client === client && own.length < OWN_MAX) own.push(lookup);
    if (all.length >= SCAN_MAX) break;
  }
  const [newest] = own;
  if (newest === undefined) return null;
  const { namespace } = parties.at(client, newest.startMs);
  const walked = searchPathOf(own);
  const search = walked.length > 0 ? walked : usualSearch(namespace);
  const servers = [...new Set(own.flatMap(({ queries }) => queries.map(serverOf)))].slice(0, 3);
  const { kinds, confidence } = resolvers.of(parties.idAt(client, newest.startMs), false);
  const answers = answersFor(name, all);
  return {
    client,
    resolvConf: [
      ...servers.map((server) => `nameserver ${server}`),
      ...(search.length === 0 ? [] : [`search ${search.join(' ')}`, `options ndots:${NDOTS}`]),
      '',
    ].join('\n'),
    answers,
    resolver: { kinds, confidence },
    isUsualResolver: kinds.length === 0 || kinds.some((kind) => USUAL.includes(kind)),
    notes: [
      walked.length > 0
        ? `Its search path was inferred from its queries; ndots:${NDOTS} is assumed.`
        : search.length > 0
          ? `It did not use a search path, so its namespace’s and ndots:${NDOTS} are assumed.`
          : 'It did not use a search path, and its namespace is unknown.',
      ...(answers === ''
        ? ['This name was not queried, so the plan treats it as missing.']
        : ['The last replies are used, with placeholder addresses.']),
    ],
  };
}

function serverOf({ server }: StoredQuery): string {
  return server.address;
}

function usualSearch(namespace: string): readonly string[] {
  return namespace === ''
    ? []
    : [`${namespace}.svc.cluster.local`, 'svc.cluster.local', 'cluster.local'];
}

/** The newest reply of each type, for the name and for the name with search domains. */
function answersFor(name: string, newestFirst: readonly RingLookup[]): string {
  const plain = `${name.replace(/\.$/, '').toLowerCase()}.`;
  const rules = new Map<string, string>();
  for (const { queries } of newestFirst)
    for (const query of queries) {
      const key = `${query.name} ${query.type}`;
      if (!query.name.startsWith(plain) || rules.has(key) || !isAddressType(query.type)) continue;
      const words = replyWords(query, rules.size + 1);
      if (words !== null && rules.size < RULES_MAX) rules.set(key, words);
    }
  const lines = [...rules].map(([key, words]) => {
    const [own, type] = key.split(' ') as [string, string];
    return `  - name: ${own}\n    type: ${Number(type) === TYPE.A ? 'A' : 'AAAA'}\n    answer: ${words}\n`;
  });
  return lines.length === 0 ? '' : `rules:\n${lines.join('')}`;
}

/** The words for a reply in an answers file. Null if there is no reply yet or the name needs no rule. */
function replyWords(query: StoredQuery, number: number): string | null {
  const { rcode, answers, truncated, type } = query;
  if (isLostQuery(query)) return 'DROP';
  if (rcode < 0) return null;
  const code = rcodeName(rcode);
  if (code !== 'NOERROR') return code;
  // A log only says that the name exists.
  if (answers === 0 && !truncated) return 'NODATA';
  const address = type === TYPE.A ? `198.18.0.${number}` : `2001:db8::${number.toString(16)}`;
  return truncated ? `TC ${address}` : address;
}
