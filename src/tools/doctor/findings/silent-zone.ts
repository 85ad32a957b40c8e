/** A zone whose servers have all stopped answering. */
import { sentSpan } from '../../capture/pair/seen-exchange.ts';
import { takeSilence } from '../observe/consequences.ts';
import type { ServerView } from '../observe/server-view.ts';
import { zonesOfServers } from '../observe/zone-servers.ts';
import { clock, listed, sentence, share } from '../texts.ts';
import { DEAF_SHARE, MIN_CASES } from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

export const silentZone: FindingKind = {
  code: 'ND3029',
  title: 'All servers of one zone stopped answering, while those of other zones answer',
  name: 'a zone whose servers are all silent',
  inCapture(observed, claims) {
    const zones = zonesOfServers(observed);
    if (zones.size === 0)
      return unknown('no server is queried for only one zone (capture at the resolver)');
    for (const [zone, of] of Map.groupBy(zones, ([, each]) => each)) {
      const views = of.flatMap(([address]) => observed.servers.get(address) ?? []);
      const silent = views.filter(isSilent);
      const losses = silent.flatMap(({ address }) => claims.openTo(address));
      if (views.length < 2 || silent.length < views.length || losses.length < MIN_CASES) continue;
      const { fromMs } = sentSpan(losses);
      const answering = observed.servers.list.filter(
        ({ address, lastReplyMs }) => !zones.get(address)?.endsWith(zone) && lastReplyMs > fromMs,
      );
      if (answering.length === 0) continue;
      takeSilence(observed, claims, losses);
      claims.names.add(zone);
      const addresses = listed(views.map(({ address }) => address));
      const before = views.filter(({ lastReplyMs }) => Number.isFinite(lastReplyMs));
      const clients = [...new Set(losses.map(({ client }) => client.address))];
      return {
        subject: zone,
        severity: 'critical',
        confidence: 0.92,
        seen: [
          `The ${views.length} servers of ${zone} seen here (${addresses}) ${before.length === 0 ? 'never answered' : `have not answered since ${clock(Math.max(...before.map(({ lastReplyMs }) => lastReplyMs)))}`}. ${share(losses.length, losses.length)} queries from ${listed(clients)} got no reply.`,
          `At the same time, ${listed(answering.map(({ address }) => address))} ${answering.length === 1 ? 'answers' : 'answer'} other names.`,
        ],
        why: sentence(
          `The servers of ${zone} are down, or they cannot be reached from this network because of a provider outage, a firewall or a missing route. The resolver tries each of them without success, then answers late or with SERVFAIL. No cluster setting can repair names in ${zone}`,
        ),
        fix: [
          `Contact the owner of ${zone} (or its DNS provider) about ${addresses}, and query them from another network.`,
          `If they answer there, look for a rule or a route between ${listed(clients)} and ${addresses}.`,
          'Until then, answer with expired records: serve_stale in cache (CoreDNS), serve-expired (Unbound).',
        ],
        prove: `run ndots query ${losses[0]!.name} @${views[0]!.address} and @${views[1]!.address}, from here and from another network`,
        disproved: `one of ${addresses} answers from here`,
        exchanges: losses,
      };
    }
    return excluded('each zone has a server that answers');
  },
};

/** True if the server never answers, or has stopped answering. */
function isSilent({ outcomes, sinceReply }: ServerView): boolean {
  return outcomes.lost >= DEAF_SHARE * outcomes.asked || sinceReply.length >= MIN_CASES;
}
