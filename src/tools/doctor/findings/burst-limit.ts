/** A forwarder that accepts the first queries of each burst and refuses the others. */
import { RCODE } from '../../../server/wire/iana.ts';
import { burstLimitAt } from '../observe/refused-bursts.ts';
import { isFailure } from '../observe/outcomes.ts';
import { upstreams } from '../observe/roles.ts';
import { keysOf, listed, percent, share, took } from '../texts.ts';
import { MOST } from '../thresholds/evidence.ts';
import { excluded, type FindingKind } from './finding.ts';

/** Queries are refused at once, but only while as many others wait as the server forwards at a time. */
export const burstLimit: FindingKind = {
  code: 'ND4010',
  title: 'A name server refuses to answer',
  name: 'servers that refuse',
  inCapture(observed, claims) {
    const refused = observed.failed.filter(
      ({ rcode, name }) => rcode === RCODE.REFUSED && !claims.names.has(name),
    );
    for (const [address, own] of Map.groupBy(refused, ({ server }) => server.address)) {
      const limit = claims.looping.has(address) ? null : burstLimitAt(observed, address);
      if (limit === null) continue;
      const names = keysOf(own, ({ name }) => name);
      for (const name of names) claims.names.add(name);
      const refusedNames = new Set(names);
      const { busiest, most, bursts } = limit;
      const isOne = busiest.share >= MOST;
      const areUpstreams = upstreams(observed);
      const behind = observed.servers.list.flatMap(({ address: server, clients }) => {
        const waiting = observed.lines.get(server)?.most ?? 0;
        return areUpstreams.has(server) && clients.has(address) && waiting > 1
          ? `${address} forwards to ${server}, where at most ${waiting} queries waited at a time.`
          : [];
      });
      return {
        title: `${isOne ? 'A client’s burst' : 'A burst'} of lookups exceeds the limit on concurrently forwarded queries`,
        subject: address,
        severity: 'critical',
        confidence: 0.9,
        seen: [
          `${isOne ? busiest.address : 'Clients'} sent ${bursts === 1 ? 'a burst' : `${bursts} bursts`} of about ${limit.size} queries (${limit.lookups} lookups) within ${took(limit.spanMs)} to ${address}. In each, about ${limit.letThrough} were answered and all others refused at once`,
          `${share(limit.inTime, limit.refused)} of the refused queries came while (nearly) ${most} others were waiting, and ${most} is the most that ever waited. ${limit.accepted} queries that came while fewer waited were accepted.`,
          isOne &&
            `${busiest.address} sent ${percent(busiest.queries, busiest.all)} of the refused queries.`,
          ...behind,
          `Refused names include ${listed(names)}`,
        ],
        why: `${address} forwards a limited number of queries at a time (max_concurrent in CoreDNS’s forward, dns-forward-max in dnsmasq) and refuses any more at once.${behind.length > 0 ? '' : ` The limit applies to each DNS pod, so ${most} may be the sum of several.`} It is not a missing zone or an access rule: names of the same kind are answered in the same moment.`,
        fix: [
          isOne
            ? `Make ${busiest.address} look up fewer names at once (a limit on parallel lookups), or give it its own resolver.`
            : 'Find the programs that look up many names at once, and limit their parallel lookups.',
          'Raise the limit (max_concurrent), which costs about 2 KiB of memory per waiting query. coredns_forward_max_concurrent_rejects_total counts refusals.',
          'Run more DNS pods, because each has its own limit.',
        ],
        prove: `run ndots query ${names[0]!} @${address} between the bursts; it is not refused`,
        disproved: `${address} refuses the same name while no query waits`,
        exchanges: observed.affectedExchanges(
          (each) => isFailure(each) && refusedNames.has(each.name),
        ),
      };
    }
    return excluded('refusals do not depend on bursts of queries');
  },
};
