/** Names that exist in some replies from one address but not in others. */
import { oddFamilies } from '../cluster/families.ts';
import { TYPE } from '../../../server/wire/iana.ts';
import { excluded, unknown, type FindingKind, notAsked } from './finding.ts';
import { listed } from '../texts.ts';
import { mixedNames } from '../observe/mixed-names.ts';
import { pairsText } from '../observe/mixed-names.ts';

/** For a name in the search path, A exists and AAAA does not, or vice versa, by chance. */
export const familiesDiffer: FindingKind = {
  code: 'ND8004',
  title: 'A and AAAA replies disagree about whether a name exists, and they vary',
  name: 'A and AAAA replies that disagree',
  inCapture(observed, claims) {
    const { mixed, both } = mixedNames(observed, claims);
    if (!observed.names.list.some(({ type }) => type === TYPE.AAAA))
      return unknown('no AAAA query was seen');
    if (mixed.length === 0) return excluded(pairsText(observed));
    const keys = new Set(mixed);
    // Another finding covers servers that disagree for both types.
    if (both.length > 0) return [];
    const cluster = mixed.filter((name) => name.includes('.svc.')).length > 0;
    return {
      severity: 'critical',
      confidence: cluster ? 0.9 : 0.8,
      seen: [`The same query for ${listed(mixed)} alternately gets an answer and NXDOMAIN.`],
      why: cluster
        ? 'The name is the first one in a search path, which CoreDNS’s autopath completes for pods that it knows. A replica that does not know the pod yet (or knows another pod with that address) answers NXDOMAIN. One lookup’s A and AAAA queries can reach different replicas.'
        : 'The servers that share this address have different data, and each query may reach a different server.',
      fix: [
        'If the Corefile has autopath @kubernetes, remove it or replace it with autopath @name (ndots), which does not depend on pods.',
        'Capture on a node, where the addresses of the DNS pods behind the Service are visible.',
      ],
      prove: `run ndots query ${mixed[0]} @POD several times for each DNS pod`,
      disproved: 'all DNS pods give the same answer every time',
      exchanges: observed.affectedExchanges(({ name }) => keys.has(name)),
    };
  },
  inCluster(facts) {
    const { answers } = facts;
    if (answers === null) return notAsked;
    const odd = oddFamilies(
      answers,
      facts,
      ({ a, aaaa }) =>
        (a.outcome === 'NOERROR' && aaaa.outcome === 'NXDOMAIN') ||
        (a.outcome === 'NXDOMAIN' && aaaa.outcome === 'NOERROR'),
    );
    if (odd === 'unasked') return unknown('A and AAAA could not be queried at any server');
    if (odd === 'none') return excluded('A and AAAA replies agree about which names exist');
    return {
      severity: 'critical',
      ...odd,
      confidence: 0.93,
      why: 'A name exists for all types or for none (RFC 2308). Something answers NXDOMAIN for only one type, such as a template that blocks IPv6, or autopath that knows the client for only one of the two queries. musl reads NXDOMAIN for AAAA as "no such name", and caches apply it to the whole name.',
      fix: [
        'In template, use rcode NOERROR with an SOA record instead of NXDOMAIN.',
        'If the Corefile has autopath @kubernetes and several replicas run, remove it or use autopath @name (ndots).',
      ],
    };
  },
};
