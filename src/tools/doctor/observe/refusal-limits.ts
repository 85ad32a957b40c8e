/** Refusals that a limit, or one of several servers in turn, explains: they depend neither on name nor client. */
import { RCODE } from '../../../server/wire/iana.ts';
import { sentSpan } from '../../capture/pair/seen-exchange.ts';
import { fromTo, listed, share } from '../texts.ts';
import { FORWARD_LIMIT_LEAST, REFUSED_IN_TURN } from '../thresholds/errors.ts';
import { MIN_LASTING_MS, MOST } from '../thresholds/evidence.ts';
import { busiestOf } from './busiest-client.ts';
import type { ClientView } from './client-view.ts';
import { registeredDomainOf } from './domain-of-name.ts';
import { unevenness } from './evenness.ts';
import type { NameView } from './name-view.ts';
import type { Observations } from './observations.ts';
import { ACCEPT_PODS, type RefusalCause } from './refusal-causes.ts';
import {
  slowReplies,
  slowUpstreamOf,
  slowUpstreamText,
  waitingLimitTexts,
} from './slow-upstream.ts';

interface Refusals {
  readonly clients: readonly ClientView[];
  readonly server: string;
  readonly names: readonly NameView[];
  /** Zones whose replies take a second or more. */
  readonly late: readonly string[];
  /** The refusals for names that are answered at other times, as a text. */
  readonly part: string;
}

export function limitCause(observed: Observations, refusals: Refusals): RefusalCause {
  const { server, late, part } = refusals;
  const limited = `${part} of the refusals are for names that are answered at other times, so the name is not the reason.`;
  if (late.length === 0 && isSteady(observed))
    return {
      seen: [limited],
      why: 'The refusals are spread evenly over time, and no query waits. Queries go to several servers in turn, and one of them refuses. It is an upstream, perhaps of only one DNS pod, whose access list lacks the address of that pod or its node. A limit (max_concurrent) would refuse queries in bursts.',
      fix: [
        'Query each DNS pod at its own address, then each upstream from each DNS pod’s node, to find the one that answers REFUSED.',
        ACCEPT_PODS,
      ],
      disproved: 'every DNS pod and every upstream answers the same query',
    };
  const users = late.length === 0 ? null : limitUsers(observed, refusals);
  if (users !== null) {
    const upstream = slowUpstreamOf(observed, server);
    const texts = waitingLimitTexts(server, upstream);
    return {
      ...texts,
      seen: [limited, ...users.seen, ...slowUpstreamText(upstream)],
      fix: [users.fix, ...texts.fix],
      disproved:
        'the upstream answers at once, or the server refuses external names while no query waits',
      confidence: 0.88,
    };
  }
  const slow = late.length === 0 ? [] : [listed(late)];
  return {
    seen: [
      limited,
      ...periodText(observed),
      ...slow.map(
        (each) =>
          `During this time, replies for ${each} take a second or more. These queries use up the limit, and all others are refused.`,
      ),
    ],
    why: 'Names that are refused now but answered at other times point to a limit. Either the server has reached its limit on waiting queries (max_concurrent in CoreDNS’s forward, dns-forward-max in dnsmasq) and refuses any more, or one of several upstreams that it alternates between refuses.',
    fix: [
      ...slow.map(
        (each) =>
          `Add a server block for ${each} with its own forward and limit, so that its slow upstream does not delay other names.`,
      ),
      'Find the queries that use up the limit (run ndots doctor -i any on a node with a DNS pod): names of a zone that does not answer, or a client that looks up many names at once.',
      'Raise the limit (coredns_forward_max_concurrent_rejects_total counts refusals; dnsmasq logs “Maximum number of concurrent DNS queries reached”), and use a faster upstream and a cache, since it applies to waiting queries.',
      'If the limit is not the cause, query each of the server’s upstreams separately.',
    ],
    disproved: 'the server’s reject counter stays at zero, and all its upstreams answer',
    confidence: slow.length > 0 ? 0.88 : 0.8,
  };
}

/**
 * True if about the same share of external queries is refused all the time. A failed lookup is
 * refused several times (A, AAAA and retries), so single queries would look uneven.
 */
function isSteady({ failed, ways, firstMs, lastMs }: Observations): boolean {
  const slotMs = (lastMs - firstMs) / REFUSED_IN_TURN.slots;
  const times = failed.flatMap(({ rcode, sentMs }) => (rcode === RCODE.REFUSED ? sentMs : []));
  const [refusals, tries]: [number[], number[]] = [[], []];
  for (let slot = 0; slot < REFUSED_IN_TURN.slots; slot++) {
    const fromMs = firstMs + slot * slotMs;
    // The slot includes its last millisecond.
    const { asked } = ways.between(fromMs, fromMs + slotMs - 1000).outside;
    const seconds = [Math.floor(fromMs / 1000), Math.floor((fromMs + slotMs - 1000) / 1000)];
    const count = times.filter((ms) => {
      const second = Math.floor(ms / 1000);
      return second >= seconds[0]! && second <= seconds[1]!;
    }).length;
    // A limit does not refuse queries at quiet times.
    if (asked < REFUSED_IN_TURN.asked || count === 0) return false;
    refusals.push(count / REFUSED_IN_TURN.perLookup);
    tries.push(asked / REFUSED_IN_TURN.perLookup);
  }
  return unevenness(refusals, tries) <= REFUSED_IN_TURN.uneven;
}

/** Reports that all refusals came in one period within the capture. Empty if they did not. */
function periodText({ failed, firstMs, lastMs }: Observations): readonly string[] {
  const all = failed.filter(({ rcode }) => rcode === RCODE.REFUSED);
  if (all.length === 0) return [];
  const { fromMs, toMs } = sentSpan(all);
  return fromMs - firstMs < MIN_LASTING_MS || lastMs - toMs < MIN_LASTING_MS
    ? []
    : [`All refusals came ${fromTo(fromMs, toMs)}, and none before or afterwards.`];
}

/**
 * Describes the clients that use up a limit on waiting queries. Null if only some names are slow, and others are
 * refused because of them.
 */
function limitUsers(
  observed: Observations,
  { clients, server, names: refused }: Refusals,
): { readonly seen: readonly string[]; readonly fix: string } | null {
  const { names, domains, lines } = observed;
  const slow = new Set(slowReplies(observed).map(({ name }) => name));
  const zones = new Set([...slow].map(registeredDomainOf));
  const ofSlow = refused.filter(({ name }) => zones.has(registeredDomainOf(name)));
  const refusals = (list: readonly NameView[]): number =>
    list.reduce((sum, { outcomes }) => sum + outcomes.refused, 0);
  const atOnce = names.list.filter(
    ({ name, outcomes: { found, nodata } }) =>
      !domains.isOfCluster(name) && found + nodata > 0 && !slow.has(name),
  );
  // If other names are answered at once, the slow ones have an upstream of their own.
  const others = atOnce.filter(({ name }) => !zones.has(registeredDomainOf(name)));
  if (refusals(ofSlow) < MOST * refusals(refused) || others.length > 0) return null;
  const top = busiestOf(clients.map(({ address, outcomes }) => [address, outcomes.asked]));
  if (top === null) return null;
  const most = lines.get(server)?.most ?? 0;
  const isSingle = clients.length === 1;
  const isOfOthers = isSingle && most < FORWARD_LIMIT_LEAST;
  const whose = isSingle
    ? ` They are all from ${top.address}, which looks up many names at once.`
    : top.share >= MOST
      ? ` ${top.address} sends ${share(top.queries, top.all)} of the queries of these clients, and uses up the limit that all clients share.`
      : '';
  return {
    seen: [
      'The refused names are themselves slow at other times: replies for them take a second or more. No other external name is answered faster.',
      isOfOthers
        ? `At most ${most} queries of ${top.address} waited at a time, which fills no limit. Other clients, which this capture does not show, use it up.`
        : `Up to ${most} queries waited at a time.${whose}`,
    ],
    fix: isOfOthers
      ? 'Find the client that sends most external queries (capture at a DNS pod), and make it look up fewer names at once.'
      : `Make ${top.address} look up fewer names at once, or give it its own resolver.`,
  };
}
