/** External names that are answered with TTL 0 from some moment on: a cache serves expired records. */
import type { NameView } from '../observe/name-view.ts';
import type { Observations } from '../observe/observations.ts';
import { addressTypes } from '../../../server/wire/iana.ts';
import { clock, keysOf, listed, sentence } from '../texts.ts';
import { STALE_ANSWERS } from '../thresholds/answers.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

interface StaleName {
  readonly name: string;
  readonly server: string;
  readonly sinceMs: number;
  readonly count: number;
}

/** Known names keep their last addresses with TTL 0, and names that are not cached fail. */
export const staleAnswers: FindingKind = {
  code: 'ND4038',
  title: 'A cache serves expired records because its upstream does not answer',
  name: 'expired answers',
  inCapture(observed, claims) {
    const stale = staleNames(observed);
    const names = keysOf(stale, ({ name }) => name);
    const replies = stale.reduce((sum, { count }) => sum + count, 0);
    if (stale.length === 0)
      return observed.names.list.some(({ sets }) => (sets?.list.length ?? 0) > 0)
        ? excluded('no name’s TTL falls to 0 and stays there')
        : unknown('no reply with an address was seen');
    const since = stale.map(({ sinceMs }) => sinceMs);
    const fromMs = Math.min(...since);
    if (names.length < STALE_ANSWERS.names || replies < STALE_ANSWERS.replies)
      return excluded('hardly any name’s TTL falls to 0 and stays there');
    if (renewedSince(observed, Math.max(...since)))
      return excluded('external names are fetched again during that time');
    const failing = failingSince(observed, fromMs).filter(({ name }) => !claims.names.has(name));
    const failed = keysOf(failing, ({ name }) => name);
    for (const name of failed) claims.names.add(name);
    const servers = keysOf(stale, ({ server }) => server);
    return {
      severity: failed.length > 0 ? 'critical' : 'warning',
      confidence: 0.84,
      seen: [
        `Until ${clock(fromMs)}, external names were answered with TTLs that count down. Since then, ${replies} answers of ${listed(servers)} for ${names.length} names that it had cached have TTL 0.`,
        sentence(`These names are ${listed(names)}`),
        failed.length > 0 &&
          sentence(`External names that were not cached have failed since then: ${listed(failed)}`),
      ],
      why: 'The upstream stopped answering at that time. The DNS server answers from expired cache entries (serve_stale in CoreDNS, RFC 8767), with TTL 0 so that clients do not store them. Names that it does not have get SERVFAIL. Known names also fail when the stale period ends.',
      fix: [
        `Determine what happened to the upstream, or to the path to it, at ${clock(fromMs)}: query each upstream from a DNS pod’s node.`,
        'Use more than one upstream, with health checks (as in forward).',
      ],
      prove: `run ndots query ${failed[0] ?? 'example.com.'} at each upstream of ${servers[0]}; none of them answers`,
      disproved: 'the upstreams answer, and serve these names with TTL 0 themselves',
      exchanges: observed.affectedExchanges(
        ({ name }) => failed.includes(name) || names.includes(name),
      ),
    };
  },
};

/** External names that had a TTL, and at the end of the capture have none. */
function staleNames({ names, domains }: Observations): readonly StaleName[] {
  return names.list.flatMap(({ name, sets }) =>
    domains.isOfCluster(name)
      ? []
      : (sets?.list ?? []).flatMap(({ asked, ttl, zeroMs, zeros }) =>
          ttl > 0 && zeros > 0 ? { name, server: asked, sinceMs: zeroMs, count: zeros } : [],
        ),
  );
}

/** True if a server fetched an external name again after this time: its TTL went up. */
function renewedSince({ names, domains }: Observations, ms: number): boolean {
  return names.list.some(
    ({ name, sets }) =>
      !domains.isOfCluster(name) && (sets?.list ?? []).some(({ renewedMs }) => renewedMs > ms),
  );
}

/** External names that get only SERVFAIL, from that time on. */
function failingSince({ names, domains }: Observations, ms: number): readonly NameView[] {
  return names.list.filter(
    ({ name, type, outcomes, denial }) =>
      addressTypes.includes(type) &&
      !domains.isOfCluster(name) &&
      outcomes.servfail > 0 &&
      outcomes.servfail + outcomes.lost === outcomes.asked &&
      (denial === null || denial.fromMs >= ms),
  );
}
