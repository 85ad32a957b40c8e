/** External names whose TTL is so low that caches do not help, and whose answers take long. */
import { FAST_BESIDE, UNCACHED } from '../thresholds/answers.ts';
import { MOST, NEARLY_ALL } from '../thresholds/evidence.ts';
import type { Claims } from './claims.ts';
import { lateFrom, lateReplies } from './late-replies.ts';
import type { NameView } from './name-view.ts';
import type { Observations } from './observations.ts';
import type { ServerView } from './server-view.ts';

export interface Uncached {
  readonly view: NameView;
  readonly count: number;
  readonly meanMs: number;
  /** The highest TTL, seconds. */
  readonly ttl: number;
}

export interface UncachedNames {
  /** Sorted by the total time of their answers, the longest first. */
  readonly found: readonly Uncached[];
  /** Their answers, and those for other names, which caches keep. */
  readonly asked: number;
  readonly fine: number;
  readonly fineMs: number;
  /** True if caches answer the queries for other names, so nearly all queries here are for these. */
  readonly isMost: boolean;
}

/** Null if there are none, or if other names take as long. */
export function uncachedNames(observed: Observations, claims: Claims): UncachedNames | null {
  const views = observed.names.list.filter(({ sets }) => sets !== null);
  const found = views
    .filter(({ name }) => !claims.names.has(name) && !observed.domains.isOfCluster(name))
    .flatMap((view) => uncached(view) ?? [])
    .toSorted((one, other) => other.count * other.meanMs - one.count * one.meanMs);
  const [first] = found;
  if (first === undefined) return null;
  const others = views.filter(({ name }) => !found.some(({ view }) => view.name === name));
  const cached = others.flatMap(({ sets }) => sets!.list.filter(({ ttl }) => ttl > 0));
  const fine = cached.reduce((sum, { count }) => sum + count, 0);
  const fineMs = cached.reduce((sum, { tookMs }) => sum + tookMs, 0) / Math.max(fine, 1);
  // An upstream gets hardly any queries for cached names.
  const asked = found.reduce((sum, { count }) => sum + count, 0);
  const isMost = asked >= UNCACHED.share * (asked + fine) && asked >= UNCACHED.alone;
  if (!isMost && (fine < UNCACHED.others || fineMs > FAST_BESIDE * first.meanMs)) return null;
  return { found, asked, fine, fineMs, isMost };
}

/** True if (nearly) all late replies in slow lookups are for these names. @param server whose replies are examined; all servers without it */
export function explainLateness(
  { found, fine }: UncachedNames,
  observed: Observations,
  server?: string,
): boolean {
  // Without other names, the upstream may be slow for every name.
  if (fine < UNCACHED.others) return false;
  const names = new Set(found.map(({ view }) => view.name));
  const late = server === undefined ? lateReplies(observed) : lateFrom(server, observed);
  const theirs = late.filter(({ name }) => names.has(name));
  return theirs.length > 0 && theirs.length >= NEARLY_ALL * late.length;
}

/** A name’s slow answers with a TTL of 0 or hardly more. Null if they are few or quick, or have a higher TTL. */
function uncached(view: NameView): Uncached | null {
  const { list, ttl, count } = view.sets!;
  if (ttl > UNCACHED.ttl) return null;
  const meanMs = list.reduce((sum, { tookMs }) => sum + tookMs, 0) / Math.max(count, 1);
  if (count < UNCACHED.answers || meanMs < UNCACHED.meanMs) return null;
  return { view, count, meanMs, ttl };
}

/** The name that most queries to the server are for, if its answers have TTL 0. Otherwise null. */
export function mostlyUncached(
  { names }: Observations,
  { address, outcomes }: ServerView,
): { readonly name: string; readonly asked: number } | null {
  for (const { name, servers, sets } of names.list) {
    const asked = servers.get(address)?.asked ?? 0;
    if (asked < MOST * outcomes.asked || sets === null) continue;
    if (sets.list.length > 0 && sets.ttl === 0) return { name, asked };
  }
  return null;
}
