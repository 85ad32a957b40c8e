/** Secondary servers that cannot refresh a zone and no longer have answers for it. */
import { isWithin } from '../../../server/wire/within-zone.ts';
import { takeSilence } from '../observe/consequences.ts';
import { expiredZones } from '../observe/failing-zones.ts';
import { isFailure } from '../observe/outcomes.ts';
import { serversOfNames } from '../observe/servers-of-names.ts';
import { clock, keysOf, listed } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { excluded, type FindingKind } from './finding.ts';

export const expiredZone: FindingKind = {
  code: 'ND4057',
  title: 'A secondary name server has no valid copy of a zone and answers SERVFAIL',
  name: 'secondary servers without a valid zone',
  inCapture(observed, claims) {
    for (const expired of expiredZones(observed)) {
      const { zone, server, primary, queries, sinceMs, isKnown } = expired;
      const views = observed.names.list.filter(({ name }) => isWithin(name, zone));
      const failing = views.filter(({ servers }) => (servers.get(server)?.servfail ?? 0) > 0);
      const count = failing.reduce((sum, each) => sum + each.servers.get(server)!.servfail, 0);
      if (count < MIN_CASES) continue;
      // A secondary server answers from its copy until the zone expires, and not afterwards.
      const answers = views.filter(({ servers }) => (servers.get(server)?.found ?? 0) > 0);
      const lastMs = Math.max(
        ...answers.map(({ answeredMs }) => answeredMs.get(server) ?? -Infinity),
      );
      const firstMs = Math.min(
        ...observed.failed.flatMap(({ name, sentMs, server: { address } }) =>
          address === server && isWithin(name, zone) ? sentMs : [],
        ),
      );
      if (answers.length > 0 && (lastMs >= firstMs || firstMs < sinceMs)) continue;
      const otherZones = keysOf(
        observed.names.list.filter(
          ({ name, servers }) => !isWithin(name, zone) && (servers.get(server)?.found ?? 0) > 0,
        ),
        ({ name }) => name,
      );
      const others = [...serversOfNames(failing, ({ found }) => found > 0)].filter(
        (address) => address !== server && address !== primary,
      );
      const losses = claims
        .openTo(primary)
        .filter(({ client, name }) => client.address === server && name === zone);
      takeSilence(observed, claims, losses);
      for (const { name } of views) claims.names.add(name);
      return {
        title: `${server} cannot refresh the zone ${zone} and answers SERVFAIL for it`,
        subject: server,
        severity: 'critical',
        confidence: 0.95,
        seen: [
          `${server} answered ${count} queries for ${listed(failing.map(({ name }) => name))} with SERVFAIL${answers.length === 0 ? ' and never answered a query for this zone' : `, but had answered them until ${clock(lastMs)}`}`,
          `${isKnown ? `${primary} replied to ${server} until ${clock(sinceMs)}. After that, ` : ''}${server} asked ${primary} ${queries} times for the zone (SOA or a transfer) and got no reply, so its copy has most likely expired.`,
          otherZones.length > 0 &&
            `${server} still answers names of other zones: ${listed(otherZones)}`,
          others.length > 0 &&
            `${listed(others)} ${others.length === 1 ? 'answers' : 'answer'} the same names, so lookups fail only when they reach ${server}.`,
        ],
        why: 'A secondary server copies the zone from its primary server. If it cannot refresh the copy for the time that the SOA record allows (expire), it discards the zone and answers SERVFAIL. Clients that reach it fail, while those that reach another server of the zone do not.',
        fix: [
          `Make the primary server ${primary} reply to ${server} again (check whether it runs, its address, and firewalls for UDP and TCP port 53).`,
          `Then make ${server} refresh the zone (BIND: rndc refresh ${zone}). Until then, take it out of the address or list that clients use.`,
        ],
        prove: `ndots query ${zone} SOA @${primary} from ${server}, and ndots query ${zone} SOA @${server} +norecurse`,
        disproved: `${server} answers ${zone} SOA with the AA bit`,
        exchanges: [
          ...losses,
          ...observed.affectedExchanges((each) => isFailure(each) && isWithin(each.name, zone)),
        ],
      };
    }
    return excluded('no server that fails for a zone asks another server for it without a reply');
  },
};
