/** Upstreams that leave some of the DNS pods' queries unanswered, whatever the name, and answer the others at once. */
import { deadNames } from '../observe/dead-names.ts';
import { losesWholeSeconds, lossByLoad } from '../observe/loss-by-load.ts';
import { onlyAaaa } from '../observe/losses.ts';
import { isForForwarders, upstreams } from '../observe/roles.ts';
import { mostlyUncached } from '../observe/uncached-names.ts';
import { keysOf, listed, percent, share, took } from '../texts.ts';
import { FELT_SHARE, LATE_MS, OUTAGE_SHARE } from '../thresholds/evidence.ts';
import { UNLIKELY_DEAD } from '../thresholds/silence.ts';
import { LOSSY_UPSTREAM } from '../thresholds/transport.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

export const lossyUpstream: FindingKind = {
  code: 'ND3061',
  title: 'An upstream leaves some of the DNS pods’ queries unanswered, whatever their names',
  name: 'an upstream that loses queries',
  inCapture(observed, claims) {
    const behind = upstreams(observed);
    const servers = observed.servers.list.filter(
      ({ address, outcomes }) =>
        outcomes.asked >= LOSSY_UPSTREAM.asked &&
        (behind.has(address) || isForForwarders(observed, address)),
    );
    if (servers.length === 0) return unknown('the capture does not show enough queries upstream');
    for (const server of servers) {
      const { address, outcomes } = server;
      const losses = claims.openTo(address);
      const part = losses.length / outcomes.asked;
      if (losses.length < LOSSY_UPSTREAM.lost || part < LOSSY_UPSTREAM.least) continue;
      if (part > LOSSY_UPSTREAM.most || server.quantile(0.5) >= LATE_MS) continue;
      const isOfNames =
        onlyAaaa(losses) ||
        deadNames(observed, losses).some(({ chance }) => chance < UNLIKELY_DEAD);
      if (isOfNames || losesWholeSeconds(server)) continue;
      const pods = keysOf(losses, ({ client }) => client.address);
      const load = lossByLoad(server.history);
      const uncached = mostlyUncached(observed, server);
      claims.take(losses);
      claims.late.add(address);
      for (const pod of pods) claims.late.add(pod);
      return {
        title:
          uncached === null
            ? this.title
            : 'An upstream leaves queries unanswered, most of them for a name with TTL 0',
        severity:
          observed.slowLookups >= FELT_SHARE * observed.lookups || part >= OUTAGE_SHARE
            ? 'critical'
            : 'warning',
        confidence: load === null ? 0.75 : 0.85,
        seen: [
          `${share(losses.length, outcomes.asked)} queries from ${listed(pods)} to ${address} got no reply. It answered half of the others within ${took(server.quantile(0.5))}, and lost and answered queries alternate.`,
          load !== null &&
            `The loss grows with the load: it was ${percent(load.calm.share, 1)} at up to ${load.calm.rate} queries a second, and ${percent(load.busy.share, 1)} at ${load.busy.rate} or more.`,
          uncached !== null &&
            `${share(uncached.asked, outcomes.asked)} queries are for ${uncached.name} Its answers have TTL 0, so no cache keeps them, and each lookup goes upstream.`,
          `${share(observed.slowLookups, observed.lookups)} lookups took a second or more.`,
        ],
        why: `${address} is up and quick. Either something drops queries above a certain rate, or packets are lost on the path. Resolvers limit the rate for each client, and clouds limit the packets of each network interface (1024 a second at AWS). CoreDNS waits 2 s for a lost query before it tries again, so its clients get late replies or SERVFAIL.`,
        fix: [
          'Send fewer queries upstream. Use a cache on each node, and find the names that are queried most: search-path names of external names, names with a TTL of 0, and names that are not cached.',
          `Find the limit: the rate limit of ${address} (ratelimit, rate-limit, responses-per-second), and on the nodes ethtool -S eth0 | grep allowance_exceeded. Spread the DNS pods over more nodes, or forward to several servers.`,
          `If no limit is reached, look for losses on the path to ${address}: ip -s link and conntrack -S on the nodes, and a capture on both sides (ndots capture join).`,
        ],
        prove: `at a quiet time, send ${address} more queries than this from the same node (ndots bench, dnsperf); a limit drops only those above its rate`,
        disproved: 'the lost queries turn out to share a name, a node or a moment',
        exchanges: losses,
      };
    }
    return excluded(
      'upstreams answer (nearly) all queries, or their losses depend on names or time',
    );
  },
};
