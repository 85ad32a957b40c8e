/** A server's slow upstream, the names that it is slow for, and the limit on waiting queries that it fills. */
import { keysOf, took } from '../texts.ts';
import { FELT_MS, MIN_CASES, MOST, SLOW_QUANTILE } from '../thresholds/evidence.ts';
import type { Observations } from './observations.ts';
import type { ServerView } from './server-view.ts';
import { commonZone } from '../../../server/wire/within-zone.ts';
import { type SeenExchange, latencyOf } from '../../capture/pair/seen-exchange.ts';
import { registeredDomainOf } from './domain-of-name.ts';

export function upstreamsOf(
  { servers, serverNames }: Observations,
  server: string,
): readonly ServerView[] {
  const host = serverNames.hostOf(server);
  return servers.list.filter(({ address, clients }) => address !== server && clients.has(host));
}

/** True if one in ten replies takes about as long as this, or longer. Milliseconds. */
export function isSlow(view: ServerView, leastMs: number): boolean {
  return view.quantile(SLOW_QUANTILE) >= leastMs;
}

/**
 * The slow upstream of this server. If it queries none itself, a pod behind its address may, so the
 * only other slow server counts. Null if there is none.
 */
export function slowUpstreamOf(observed: Observations, server: string): ServerView | null {
  const isFelt = (view: ServerView): boolean => isSlow(view, FELT_MS);
  const own = upstreamsOf(observed, server).find(isFelt);
  if (own !== undefined) return own;
  const others = observed.servers.list.filter((view) => view.address !== server && isFelt(view));
  return others.length === 1 ? others[0]! : null;
}

export function slowUpstreamText(upstream: ServerView | null): readonly string[] {
  if (upstream === null) return [];
  // A quantile is known within a factor of two.
  const least = took(upstream.quantile(SLOW_QUANTILE) / 2);
  return [
    `The upstream ${upstream.address} is slow: one in ten of its replies takes more than ${least}.`,
  ];
}

export function slowReplies({ affected }: Observations): readonly SeenExchange[] {
  return affected
    .flatMap(({ exchanges }) => exchanges)
    .filter((each) => (latencyOf(each) ?? 0) >= FELT_MS);
}

/** The names in these replies, or the zone that they have in common. */
export function slowNames(observed: Observations): readonly string[] {
  const slow = slowReplies(observed);
  if (slow.length < MIN_CASES) return [];
  const [top] = keysOf(slow, ({ name }) => registeredDomainOf(name));
  const ofTop = slow.filter(({ name }) => registeredDomainOf(name) === top);
  // A burst of lookups also slows down others.
  const names = keysOf(ofTop.length >= MOST * slow.length ? ofTop : slow, ({ name }) => name);
  const zone = names.reduce(commonZone);
  return names.length > 1 && zone.split('.').length > 2 ? [`names in ${zone}`] : names;
}

/** Texts of a finding. */
interface LimitTexts {
  readonly title: string;
  readonly why: string;
  readonly fix: readonly string[];
}

/**
 * @param server the server that refuses
 * @param upstream its slow upstream, or null if the capture does not show which one it is
 */
export function waitingLimitTexts(server: string, upstream: ServerView | null): LimitTexts {
  const slow = upstream === null ? 'the upstream' : `the upstream ${upstream.address}`;
  return {
    title: 'A limit on waiting queries is used up because an upstream is slow',
    why: `${server} forwards a limited number of queries at a time (max_concurrent in CoreDNS’s forward, dns-forward-max in dnsmasq) and refuses any more at once. Replies from ${slow} take long, so waiting queries fill the limit, which all clients share. Cluster names are not forwarded, so they are still answered.`,
    fix: [
      `Find out why ${slow} is slow by querying it from a DNS pod’s node. Use a faster upstream or several, and a cache.`,
      'Raise the limit (coredns_forward_max_concurrent_rejects_total counts refusals; dnsmasq logs “Maximum number of concurrent DNS queries reached”).',
    ],
  };
}
