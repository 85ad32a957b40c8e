/** Servers that keep returning different addresses for one name. */
import { typeName } from '../../../server/wire/iana.ts';
import type { AnswerSet } from '../observe/answer-sets.ts';
import { isClusterName } from '../observe/domain-of-name.ts';
import type { NameView } from '../observe/name-view.ts';
import type { Observations } from '../observe/observations.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { fromTo, listed, took } from '../texts.ts';
import { serveTheSame } from '../observe/roles.ts';
import {
  MIN_RENEWALS,
  MIN_RETURNS,
  MIN_RETURNS_IN_PART,
  MIN_SAME_ANSWERS,
  STEADY_SERVER,
  TTL_ROUNDED_MS,
} from '../thresholds/answers.ts';

interface Disagreement {
  readonly view: NameView;
  /** Alternating address sets, the most frequent first. */
  readonly sets: readonly AnswerSet[];
  /** The time during which both were returned, in milliseconds. */
  readonly lastedMs: number;
  /** True if the servers behind the address are known. */
  readonly isByServer: boolean;
}

/** A DNS pod with stale data keeps returning a Service's old address. */
export const addressesDiffer: FindingKind = {
  code: 'ND8005',
  title: 'DNS pods keep returning different addresses for the same name',
  name: 'addresses that differ by server',
  inCapture(observed, claims) {
    const views = observed.names.list.filter(
      ({ sets, name }) => sets !== null && !claims.names.has(name),
    );
    const answersOf = ({ sets }: NameView): number =>
      sets!.list.reduce((sum, { count }) => sum + count, 0);
    if (!views.some((view) => answersOf(view) > MIN_SAME_ANSWERS))
      return unknown('no name was resolved often enough to compare its addresses');
    const all = views.flatMap((view) => disagreement(view, observed) ?? []);
    const own = all.filter(({ view }) => isOwnName(view, observed));
    const found = own.length > 0 ? own : all;
    const [first] = found.toSorted((one, other) => other.lastedMs - one.lastedMs);
    if (first === undefined)
      return excluded('every server returns the same addresses for each name');
    const isOwn = own.length > 0;
    const names = [...new Set(found.map(({ view }) => view.name))];
    for (const name of names) claims.names.add(name);
    const { sets, isByServer, lastedMs, view } = first;
    const odd = oddServers(found);
    const texts = sets.map((each) => textOf(each, isByServer));
    return {
      severity: isOwn ? 'critical' : 'warning',
      confidence: isByServer ? 0.93 : 0.82,
      seen: [
        `${view.name} ${typeName(view.type)}: ${listed(texts, 6)}`,
        `Both answers were returned for ${took(lastedMs)}, longer than their TTL of ${Math.max(...sets.map(({ ttl }) => ttl))} s allows a cache to keep them.`,
        odd.length > 0 &&
          `${listed(odd)} ${odd.length === 1 ? 'differs' : 'differ'} from the other servers, which agree with each other.`,
        !isByServer &&
          'The capture does not show which DNS pod gave which answer. Capture on the node or in each DNS pod to see it.',
        names.length > 1 && `The affected names are ${listed(names)}`,
      ],
      why: isOwn
        ? 'Each DNS pod has its own copy of the cluster’s Services and endpoints. One of them no longer receives changes, because its watch hangs or it lost the API server. Or it has another source for the name, such as a hosts entry, a rewrite or a zone file. Which pod a client reaches is chance, so it may connect to an address that no longer exists.'
        : 'The servers behind one address resolve the name from different sources, and each one gets the same addresses again when its cached answer expires. Possible causes are a secondary server with an old zone, separate internal and public views, or answers that depend on where the query comes from.',
      fix: isOwn
        ? [
            odd.length > 0
              ? `Delete the DNS pod at ${odd[0]!} (kubectl -n kube-system get pods -o wide shows its name), so that it is replaced.`
              : 'Restart the DNS pods with kubectl -n kube-system rollout restart deployment coredns.',
            'Compare the answers with the cluster’s objects (kubectl get service,endpointslices -A -o wide).',
            'Check the pod’s log for API connection errors (reflector, watch, i/o timeout), and check coredns_kubernetes_dns_programming_duration_seconds.',
          ]
        : [
            'Compare the serial numbers in the SOA records on the zone’s servers.',
            'Make all DNS pods forward the zone to servers with the same data.',
          ],
      prove: `run ndots query ${view.name} ${typeName(view.type)} @POD for each DNS pod${isByServer ? ` (${listed(sets.map(({ server }) => server))})` : ''}`,
      disproved:
        'all DNS pods return the same addresses a minute later (then the name had just changed)',
      exchanges: observed.affectedExchanges(({ name }) => names.includes(name)),
      affected: names,
    };
  },
};

/** `10.244.0.4 returned 10.96.1.99 (12 times, from 22:40:01 to 22:40:39)`. */
function textOf(
  { server, addresses, size, count, firstMs, lastMs }: AnswerSet,
  isByServer: boolean,
): string {
  const what = `${addresses.join(' ')}${size > addresses.length ? ` and ${size - addresses.length} more` : ''}`;
  const when = `${count} times, ${fromTo(firstMs, lastMs)}`;
  return isByServer ? `${server} returned ${what} (${when})` : `${what} (${when})`;
}

function disagreement(view: NameView, observed: Observations): Disagreement | null {
  const { list, leftOut } = view.sets!;
  if (list.length < 2 || leftOut > 0) return null;
  const isOwn = isOwnName(view, observed);
  const steady = [...Map.groupBy(list, ({ server }) => server).values()].flatMap(steadyOf);
  const byServer = steady.filter((one) =>
    steady.some((other) => isBeside(one, other, isOwn, observed)),
  );
  if (byServer.length >= 2) {
    const lastedMs = Math.max(
      ...byServer.flatMap((one) =>
        byServer.map((other) => (one.hash === other.hash ? 0 : overlapOf(one, other))),
      ),
    );
    return { view, sets: sorted(byServer), lastedMs, isByServer: true };
  }
  // Several servers are behind the one address that is queried, and the capture does not show them.
  const all = list.filter(({ count }) => count >= MIN_SAME_ANSWERS);
  if (!isOwn || new Set(list.map(({ server }) => server)).size > 1 || all.length < 2) return null;
  const sets = sorted(all);
  const [one, other] = sets as [AnswerSet, AnswerSet];
  const least = isDisjoint(one, other) ? MIN_RETURNS : MIN_RETURNS_IN_PART;
  if (Math.min(one.returned, other.returned) < least || !outlastsTtl(one, other)) return null;
  return { view, sets, lastedMs: overlapOf(one, other), isByServer: false };
}

/** The set that a server nearly always returns. Empty if its answers vary. */
function steadyOf(sets: readonly AnswerSet[]): readonly AnswerSet[] {
  const all = sets.reduce((sum, { count }) => sum + count, 0);
  return sets.filter(({ count }) => count >= MIN_SAME_ANSWERS && count >= STEADY_SERVER * all);
}

/** True if two servers returned different sets at the same time, for longer than a cache may. */
function isBeside(
  one: AnswerSet,
  other: AnswerSet,
  isOwn: boolean,
  observed: Observations,
): boolean {
  if (one.hash === other.hash) return false;
  if (one.asked !== other.asked && !serveTheSame(observed, one.server, other.server)) return false;
  if (!outlastsTtl(one, other)) return false;
  return isOwn || (Math.min(one.renewed, other.renewed) >= MIN_RENEWALS && isDisjoint(one, other));
}

function overlapOf(one: AnswerSet, other: AnswerSet): number {
  return Math.min(one.lastMs, other.lastMs) - Math.max(one.firstMs, other.firstMs);
}

/** True if both were returned for longer than a cache may keep one. */
function outlastsTtl(one: AnswerSet, other: AnswerSet): boolean {
  return overlapOf(one, other) > 1000 * Math.max(one.ttl, other.ttl) + TTL_ROUNDED_MS;
}

/** True if the two have no known address in common. */
function isDisjoint(one: AnswerSet, other: AnswerSet): boolean {
  return !one.addresses.some((address) => other.addresses.includes(address));
}

function sorted(sets: readonly AnswerSet[]): readonly AnswerSet[] {
  return sets.toSorted((one, other) => other.count - one.count);
}

/** Servers whose answers for a name differ from those that several other servers agree on. */
function oddServers(found: readonly Disagreement[]): readonly string[] {
  const odd = new Set<string>();
  for (const { sets, isByServer } of found) {
    if (!isByServer) continue;
    const byHash = [...Map.groupBy(sets, ({ hash }) => hash).values()];
    const most = Math.max(...byHash.map(({ length }) => length));
    if (most > 1) for (const group of byHash) if (group.length === 1) odd.add(group[0]!.server);
  }
  return [...odd];
}

/**
 * True if the DNS pods themselves have the name's addresses, so it is not an alias of an external
 * name.
 */
function isOwnName({ name, sets }: NameView, observed: Observations): boolean {
  return isClusterName(observed, name) && !sets!.list.some(({ isAlias }) => isAlias);
}
