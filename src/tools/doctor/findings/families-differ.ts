/** Names that exist in some replies and not in others, seen at one address. */
import { TYPE } from '../../../server/wire/iana.ts';
import { excluded, unknown, type Rule } from './finding.ts';
import { listed } from '../texts.ts';
import { mixedNames } from '../observe/mixed-names.ts';
import { pairsText } from '../observe/mixed-names.ts';

/** Of one name of the search path A exists and AAAA does not, or the other way round, by chance. */
export const familiesDiffer: Rule = {
  code: 'ND8004',
  title: 'A and AAAA of one name disagree whether it exists, now this way, now that',
  name: 'A and AAAA that disagree',
  check(observed, claims) {
    const { mixed, both } = mixedNames(observed, claims);
    if (!observed.names.list.some(({ type }) => type === TYPE.AAAA))
      return unknown('AAAA was not asked for');
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
      seen: [
        `${listed(mixed)}: the same question is answered with the name, and with NXDOMAIN, to and fro.`,
      ],
      why: cluster
        ? 'The name is the first one of a search path, which autopath of CoreDNS completes for pods that it knows. A replica that does not know the pod yet (or knows another one with that address) says NXDOMAIN: A and AAAA of one lookup meet different replicas.'
        : 'Behind the address stand servers that do not know the same, and each query meets another one.',
      fix: [
        'If the Corefile has autopath @kubernetes: take it out, or replace it by autopath @name (ndots), which needs to know no pods.',
        'Capture on a node: then the DNS pods behind the service are told apart.',
      ],
      prove: `ndots query ${mixed[0]} @POD for each DNS pod, several times`,
      disproved: 'each DNS pod gives the same answer again and again, and all give the same',
      exchanges: observed.affected.flatMap((lookup) =>
        lookup.exchanges.filter(({ name }) => keys.has(name)),
      ),
    };
  },
};
