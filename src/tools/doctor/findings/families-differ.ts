/** Names that exist in some replies and not in others, seen at one address. */
import { oddFamilies } from '../cluster/families.ts';
import { TYPE } from '../../../server/wire/iana.ts';
import { excluded, unknown, type FindingKind, notAsked, clusterFinding } from './finding.ts';
import { listed } from '../texts.ts';
import { mixedNames } from '../observe/mixed-names.ts';
import { pairsText } from '../observe/mixed-names.ts';

/** Of one name of the search path A exists and AAAA does not, or the other way round, by chance. */
export const familiesDiffer: FindingKind = {
  code: 'ND8004',
  title: 'A and AAAA disagree about whether a name exists, differently each time',
  name: 'A and AAAA that disagree',
  inCapture(observed, claims) {
    const { mixed, both } = mixedNames(observed, claims);
    if (!observed.names.list.some(({ type }) => type === TYPE.AAAA))
      return unknown('no AAAA query was seen');
    if (mixed.length === 0) return excluded(pairsText(observed));
    const keys = new Set(mixed);
    // Servers that disagree for both types are a finding of their own.
    if (both.length > 0) return [];
    const cluster = mixed.filter((name) => name.includes('.svc.')).length > 0;
    return {
      code: this.code,
      title: this.title,
      severity: 'critical',
      confidence: cluster ? 0.9 : 0.8,
      seen: [`${listed(mixed)}: the same question alternately gets an answer and NXDOMAIN.`],
      why: cluster
        ? 'The name is the first one of a search path, which CoreDNS’s autopath completes for pods that it knows. A replica that does not know the pod yet (or knows another pod with that address) answers NXDOMAIN. The A and AAAA queries of one lookup reach different replicas.'
        : 'The servers that share this address have different data, and each query may reach another one.',
      fix: [
        'If the Corefile has autopath @kubernetes: remove it, or replace it with autopath @name (ndots), which does not depend on pods.',
        'Capture on a node: there, the DNS pods behind the Service have their own addresses.',
      ],
      prove: `ndots query ${mixed[0]} @POD for each DNS pod, several times`,
      disproved: 'all DNS pods give the same answer, every time',
      exchanges: observed.affected.flatMap((lookup) =>
        lookup.exchanges.filter(({ name }) => keys.has(name)),
      ),
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
    if (odd === 'unasked') return unknown('no server could be queried for A and AAAA');
    if (odd === 'none') return excluded('A and AAAA agree whether names exist');
    return clusterFinding(this, {
      severity: 'critical',
      ...odd,
      confidence: 0.93,
      why: 'A name exists for all types or for none (RFC 2308). Something answers NXDOMAIN for one type: a template against IPv6, or autopath that knows the client for only one of the two queries. musl reads NXDOMAIN for AAAA as "no such name", and caches keep it for the whole name.',
      fix: [
        'In template, use rcode NOERROR with an SOA instead of NXDOMAIN.',
        'If autopath @kubernetes runs with several replicas, remove it, or use autopath @name (ndots).',
      ],
    });
  },
};
