/** Search domains whose server denies names late. */
import { RCODE } from '../../../server/wire/iana.ts';
import { latencyOf, type SeenExchange, type SeenLookup } from '../../capture/pair/seen-exchange.ts';
import type { Observations } from '../observe/observations.ts';
import { keysOf, listed, sentence, share, took } from '../texts.ts';
import { FELT_MS, LATE_MS, MIN_CASES, OUTAGE_SHARE } from '../thresholds/evidence.ts';
import { SLOW_ZONE } from '../thresholds/lateness.ts';
import { SLOW_SEARCH } from '../thresholds/search.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

export const slowSearchDomain: FindingKind = {
  code: 'ND2016',
  title: 'Lookups of external names wait for a slow search domain',
  name: 'a slow search domain',
  inCapture(observed, claims) {
    if (observed.domains.all.size === 0) return unknown('no search path was seen');
    const waiting = [...observed.affected, ...observed.late].filter(
      ({ startMs, endMs }) => endMs - startMs >= LATE_MS,
    );
    const slow = waiting.flatMap((lookup) => {
      const steps = slowSteps(lookup, observed);
      return steps.length === 0 ? [] : [{ lookup, steps }];
    });
    if (slow.length < MIN_CASES || slow.length < SLOW_SEARCH.share * waiting.length)
      return excluded('slow lookups do not wait for names that a search domain creates');
    const steps = slow.flatMap((each) => each.steps);
    const domains = keysOf(steps, ({ name }) => observed.domains.domainOf(name)!);
    const servers = keysOf(steps, ({ server }) => server.address);
    // The server in between is late because it waits for the domain's server.
    for (const { name } of steps) claims.names.add(name);
    for (const server of servers) claims.late.add(server);
    for (const { name, server } of waiting.flatMap(({ exchanges }) => exchanges))
      if (claims.names.has(name)) claims.late.add(server.address);
    const long = slow.filter(({ lookup: { startMs, endMs } }) => endMs - startMs > FELT_MS).length;
    const times = steps.map((each) => latencyOf(each)!).toSorted((one, other) => one - other);
    const middle = took(times[times.length >> 1]!);
    const examples = keysOf(slow, ({ lookup }) => lookup.candidates.at(-1) ?? '');
    return {
      severity:
        long >= SLOW_ZONE.felt * observed.lookups || slow.length >= OUTAGE_SHARE * observed.lookups
          ? 'critical'
          : 'warning',
      confidence: 0.9,
      seen: [
        sentence(
          `${share(slow.length, waiting.length)} slow lookups waited for names that the search ${domains.length === 1 ? 'domain' : 'domains'} ${listed(domains)} made and that do not exist; each NXDOMAIN took ${middle}, up to ${took(times.at(-1)!)}. Names: ${listed(keysOf(steps, ({ name }) => name))}`,
        ),
        sentence(`The intended names (${listed(examples)}) are answered sooner`),
      ],
      why: `The search path and ndots:5 append ${listed(domains)} to each external name before it is queried as written. The servers of these domains are slow or far away, so each lookup first waits for NXDOMAIN, once for each domain.`,
      fix: [
        `Remove ${listed(domains)} from the search path, which comes from the pod’s dnsConfig or the nodes’ resolv.conf (kubelet --resolv-conf).`,
        'Lower ndots (options ndots:2), or write external names with a trailing dot.',
        'Otherwise, use a faster server for these domains in forward, and a longer negative cache (cache { denial }).',
      ],
      prove: `run time ndots query ${steps[0]!.name} @${servers[0]}, then the same for ${examples[0] ?? 'the name as written'}`,
      disproved: 'the name as written takes just as long',
      exchanges: steps,
    };
  },
};

/** The late denials of a lookup that take most of its time; empty: it waited for something else. */
function slowSteps(
  { exchanges, startMs, endMs }: SeenLookup,
  { domains }: Observations,
): readonly SeenExchange[] {
  const late = exchanges.filter(
    (each) =>
      each.rcode === RCODE.NXDOMAIN &&
      (latencyOf(each) ?? 0) >= SLOW_SEARCH.ms &&
      domains.domainOf(each.name) !== null &&
      !domains.isOfCluster(each.name),
  );
  const byName = new Map<string, number>();
  for (const each of late)
    byName.set(each.name, Math.max(byName.get(each.name) ?? 0, latencyOf(each)!));
  const waited = [...byName.values()].reduce((sum, ms) => sum + ms, 0);
  return endMs - startMs >= LATE_MS && waited >= SLOW_SEARCH.ofLookup * (endMs - startMs)
    ? late
    : [];
}
