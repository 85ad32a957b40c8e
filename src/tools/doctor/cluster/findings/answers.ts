/** Answers that are wrong, or that disagree. */
import { replicasDiffer } from '../../findings/differing-servers.ts';
import { droppedAaaa } from '../../findings/dropped-aaaa.ts';
import { familiesDiffer } from '../../findings/families-differ.ts';
import { excluded, unknown, type Verdict } from '../../findings/finding.ts';
import { listed } from '../../texts.ts';
import { wrongAaaa } from '../../findings/wrong-aaaa.ts';
import type { Answers, FamilyReplies, ServerReply } from '../asking.ts';
import { podAt, type ClusterFacts } from '../facts.ts';
import { askingRule, finding, type About, type ClusterRule } from './rule.ts';

/** Replicas have other answers than each other, or than the API server has objects. */
export const replicasDisagree: ClusterRule = askingRule(replicasDiffer, (answers, facts, about) => {
  const known = answers.known.filter(
    ({ asked, outcome }) => asked.reply !== null && outcome !== 'SERVFAIL',
  );
  const wrong = known.filter(
    ({ data, expected, outcome }) =>
      outcome === 'NXDOMAIN' ||
      (expected.length > 0 && !expected.some((each) => data.includes(each))),
  );
  const outside = differing(answers.external);
  if (known.length === 0 && answers.external.length === 0)
    return unknown('there is no name that several DNS pods could be asked for');
  if (wrong.length + outside.length === 0)
    return excluded(
      `DNS pods answer ${new Set(known.map(({ name }) => name)).size} names of services as the API server has them`,
    );
  const servers = new Set([...wrong, ...outside].map(({ server }) => server));
  return finding(about, {
    severity: 'critical',
    confidence: wrong.length > 1 ? 0.93 : 0.85,
    seen: [
      ...wrong
        .slice(0, 4)
        .map(
          ({ server, name, outcome, data, expected }) =>
            `${podAt(facts, server)}: ${name} is ${data.join(' ') || outcome}; the service has ${expected.join(' ') || 'an address of IPv6'}.`,
        ),
      ...(outside.length > 0
        ? [
            `${outside[0]!.name} is ${[...new Set(outside.map(({ outcome }) => outcome))].join(' or ')}, by the DNS pod that is asked.`,
          ]
        : []),
    ],
    affected: [...servers].map((server) => podAt(facts, server)),
    why: 'A replica has another view of the cluster than the others: its connection to the API server stands still, it has an older Corefile, or a cache in it keeps what is no longer so. A client gets one answer or the other by chance.',
    fix: [
      'Restart that pod, and look at its log for errors of the API (reflector, watch).',
      'cache { disable success CLUSTERDOMAIN; disable denial CLUSTERDOMAIN }: kubernetes answers from memory anyway.',
    ],
    prove: `ndots query ${[...wrong, ...outside][0]!.name} @${[...servers][0]!}, and the same @ another DNS pod`,
    disproved: 'all replicas answer alike a minute later: then the name was new',
  });
});

/**
 * Replies of servers that are not of the kind that most give, where some have the name and others
 * say that it is not there.
 */
function differing(replies: readonly ServerReply[]): readonly ServerReply[] {
  const byName = Map.groupBy(replies, ({ name }) => name);
  return [...byName.values()].flatMap((same) => {
    const having = same.filter(({ outcome }) => outcome === 'NOERROR' || outcome === 'NODATA');
    const lacking = same.filter(({ outcome }) => outcome === 'NXDOMAIN');
    if (having.length === 0 || lacking.length === 0) return [];
    return having.length < lacking.length ? having : lacking;
  });
}

/** AAAA is not answered at all. */
export const aaaaDropped: ClusterRule = askingRule(droppedAaaa, (answers, facts, about) =>
  ofFamilies(answers, facts, about, {
    fits: ({ a, aaaa }) => a.asked.reply !== null && aaaa.asked.reply === null,
    without: 'AAAA queries are answered',
    confidence: 0.92,
    why: 'A firewall, a proxy or the server itself drops queries of the type AAAA. glibc and Go wait 10 to 15 s and go on with what they have; musl fails after 5 s.',
    fix: [
      'Let AAAA through, or answer it: a name without addresses of IPv6 has an empty answer with the zone’s SOA.',
    ],
  }),
);

/** AAAA is answered with an error. */
export const aaaaFails: ClusterRule = askingRule(wrongAaaa, (answers, facts, about) =>
  ofFamilies(answers, facts, about, {
    fits: ({ a, aaaa }) =>
      a.outcome === 'NOERROR' &&
      ['SERVFAIL', 'REFUSED', 'NOTIMP', 'FORMERR'].includes(aaaa.outcome),
    without: 'AAAA of names that exist is answered without error',
    confidence: 0.93,
    why: 'A template or a rule against IPv6 answers with an error. musl (Alpine) takes that for the whole name and fails; others ask again and again.',
    fix: [
      'template IN AAAA { rcode NOERROR; authority "… SOA …"; fallthrough }, or nothing at all: AAAA costs little with a cache.',
    ],
  }),
);

/** A and AAAA disagree whether a name is there. */
export const familiesDisagree: ClusterRule = askingRule(familiesDiffer, (answers, facts, about) =>
  ofFamilies(answers, facts, about, {
    fits: ({ a, aaaa }) =>
      (a.outcome === 'NOERROR' && aaaa.outcome === 'NXDOMAIN') ||
      (a.outcome === 'NXDOMAIN' && aaaa.outcome === 'NOERROR'),
    without: 'A and AAAA agree whether names exist',
    confidence: 0.93,
    why: 'A name is there for all types or for none (RFC 2308). Something answers NXDOMAIN for one type: a template against IPv6, or autopath that knows the client for one of the two queries. musl takes NXDOMAIN for AAAA as "no such name"; caches keep it for the whole name.',
    fix: [
      'template: rcode NOERROR with a SOA in place of NXDOMAIN.',
      'autopath @kubernetes with several replicas: take it out, or autopath @name (ndots).',
    ],
  }),
);

function ofFamilies(
  { families }: Answers,
  facts: ClusterFacts,
  about: About,
  rule: {
    readonly fits: (families: FamilyReplies) => boolean;
    readonly without: string;
    readonly confidence: number;
    readonly why: string;
    readonly fix: readonly string[];
  },
): Verdict {
  const heard = families.filter(({ a }) => a.asked.reply !== null);
  if (heard.length === 0) return unknown('nobody could be asked for A and AAAA');
  const found = heard.filter(rule.fits);
  if (found.length === 0) return excluded(rule.without);
  const [first] = found;
  const { server, name } = first!.a;
  return finding(about, {
    severity: 'critical',
    confidence: rule.confidence,
    seen: [
      `${name} at ${podAt(facts, server)}: A ${first!.a.outcome}, AAAA ${first!.aaaa.outcome}; so at ${found.length} of ${heard.length} (names × servers).`,
    ],
    affected: [...new Set(found.map(({ a }) => podAt(facts, a.server)))],
    why: rule.why,
    fix: rule.fix,
    prove: `ndots query ${name} A @${server}, and ${name} AAAA`,
    disproved: `other names at ${listed([server])} are answered for both types: then it is the zone of this name`,
  });
}
