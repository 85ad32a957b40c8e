/** A forwarder that refuses queries while many others wait for a zone whose servers do not answer. */
import { sentSpan } from '../../capture/pair/seen-exchange.ts';
import { busiestOf } from '../observe/busiest-client.ts';
import { takeSilence } from '../observe/consequences.ts';
import { filledLimit as found } from '../observe/used-up-limit.ts';
import { isFailure } from '../observe/outcomes.ts';
import { programs } from '../observe/roles.ts';
import { isBelow } from '../../../server/wire/within-zone.ts';
import { fromTo, keysOf, listed, percent, share, tally } from '../texts.ts';
import { MOST } from '../thresholds/evidence.ts';
import { excluded, type FindingKind } from './finding.ts';

export const filledLimit: FindingKind = {
  code: 'ND4010',
  title: 'A name server refuses to answer',
  name: 'servers that refuse',
  inCapture(observed, claims) {
    const limit = found(observed, claims);
    if (limit === null)
      return excluded('no server refuses queries while many others for one zone get no reply');
    const { server, zone, refused, inTime, most, losses } = limit;
    if (claims.looping.has(server))
      return excluded('the queries that wait are those of a forwarding loop');
    const { fromMs, toMs } = sentSpan(refused);
    const names = keysOf(refused, ({ name }) => name);
    const others = names.filter((name) => !isBelow(name, `${zone}.`));
    const programAddresses = new Set(programs(observed).map(({ address }) => address));
    const theirs = losses.filter(({ client }) => programAddresses.has(client.address));
    const busiest = busiestOf(tally(theirs, ({ client }) => client.address));
    const top = busiest !== null && busiest.share >= MOST ? busiest : null;
    takeSilence(observed, claims, losses);
    for (const name of names) claims.names.add(name);
    for (const { name } of observed.names.list)
      if (isBelow(name, `${zone}.`)) claims.names.add(name);
    claims.late.add(server);
    const own = new Set(names);
    return {
      title: 'A limit on waiting queries is used up because the servers of a zone do not answer',
      subject: server,
      severity: 'critical',
      confidence: 0.94,
      seen: [
        `${server} refused ${refused.length} queries at once, ${fromTo(fromMs, toMs)}. They are for ${listed(names)}`,
        `${share(inTime, refused.length)} of them came while up to ${most} different queries for names in ${zone} waited there without ever getting a reply.`,
        others.length > 0 &&
          `Other names are also refused, although they are answered before or afterwards: ${listed(others)}`,
        top !== null &&
          `${top.address} sends ${percent(top.queries, top.all)} of the queries for ${zone}, and uses up the limit that all clients share.`,
      ],
      why: `${server} forwards a limited number of queries at a time (dns-forward-max in dnsmasq, 150 by default, or max_concurrent in CoreDNS’s forward) and refuses any more at once. The servers of ${zone} do not answer, so each query for it occupies a place until it times out. Cached and cluster names are not forwarded, so they are still answered.`,
      fix: [
        top === null
          ? `Find the clients that look up names in ${zone}, and slow them down.`
          : `Make ${top.address} look up fewer names at once, or give it its own resolver.`,
        `Answer ${zone} without forwarding it, or forward it in a separate server block with its own limit (in dnsmasq, address=/${zone}/).`,
        'Raise the limit (coredns_forward_max_concurrent_rejects_total counts refusals; dnsmasq logs “Maximum number of concurrent DNS queries reached”).',
      ],
      prove: `run ndots query ${(others.length > 0 ? others : names)[0]!} @${server} while no query for ${zone} waits; it is answered`,
      disproved: `${server} refuses the same name while no query waits`,
      exchanges: [
        ...observed.affectedExchanges((each) => isFailure(each) && own.has(each.name)),
        ...losses,
      ],
    };
  },
};
