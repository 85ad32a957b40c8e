/**
 * Whether a name that is denied by some, or at times, is new, and caches remember that it was
 * missing.
 */
import type { NameView, NegativeTtl } from './name-view.ts';
import type { Observations } from './observations.ts';
import { addressTypes } from '../../../server/wire/iana.ts';
import { MIN_EARLY_DENIALS, SAME_ANSWERS_CHANCE, TTL_ERROR_MS } from '../thresholds/search.ts';

/**
 * Whether caches remember that the name was missing: what they say counts down, nothing of it was
 * made once the name was there, and the name came, at one server or for all who ask. Who does not
 * know a name that others know denies it anew each time that it has forgotten.
 */
export function isRemembered(observed: Observations, view: NameView): boolean {
  const { outcomes, negativeTtls } = view;
  if (outcomes.nxdomain < 3 || outcomes.found + outcomes.nodata === 0) return false;
  if (isWithoutTtl(observed, view)) return cameForGood(view) && !isOfAutopath(observed, view.name);
  if (!countsDown(negativeTtls) || isDeniedAnew(view)) return false;
  return came(view) && !isOfAutopath(observed, view.name);
}

/** Whether the capture has denials of the name, and the TTL of none of them: it cuts them off. */
export function isWithoutTtl({ cut }: Observations, { negativeTtlCount }: NameView): boolean {
  return cut.messages > 0 && negativeTtlCount === 0;
}

/**
 * Whether all who asked were denied at first, and had it at last, for longer than answers come in a
 * row by chance: between, several caches forget at times of their own. Servers that disagree go on
 * doing so.
 */
function cameForGood({ outcomes, missingFirst, existingLast }: NameView): boolean {
  const { found, nodata, nxdomain } = outcomes;
  const yes = found + nodata;
  return (
    missingFirst >= MIN_EARLY_DENIALS &&
    isNoChance(nxdomain - missingFirst, yes, missingFirst) &&
    isNoChance(yes - existingLast, nxdomain, existingLast)
  );
}

/**
 * Whether it was denied, for once not from memory, after it had been there: no denial is remembered
 * for longer than the longest TTL.
 */
export function isDeniedAnew({ serverTimes, longestTtl }: NameView): boolean {
  const there = Math.min(...serverTimes.map(({ existsMs }) => existsMs));
  const until = Math.max(...serverTimes.map(({ untilMs }) => untilMs));
  return until - 1000 * longestTtl > there + TTL_ERROR_MS;
}

/**
 * Whether a server had it as soon as it had forgotten, or all who asked were denied for longer at
 * first, or had it for longer at last, than answers come in a row by chance.
 */
function came({ outcomes, serverTimes, missingFirst, existingLast }: NameView): boolean {
  const { found, nodata, nxdomain } = outcomes;
  const yes = found + nodata;
  return (
    serverTimes.some(
      ({ missingMs, untilMs, existsMs }) =>
        missingMs > -Infinity &&
        existsMs < Infinity &&
        existsMs > missingMs &&
        existsMs >= untilMs - TTL_ERROR_MS,
    ) ||
    isNoChance(nxdomain - missingFirst, yes, missingFirst) ||
    isNoChance(yes - existingLast, nxdomain, existingLast)
  );
}

/**
 * Whether answers of one kind are so many in a row that the same share of them at other times does
 * not make it.
 */
function isNoChance(others: number, opposite: number, inRow: number): boolean {
  return (others / (others + opposite)) ** inRow <= SAME_ANSWERS_CHANCE;
}

/**
 * Whether it is a step of a search path that autopath completes: without its last parts the name
 * exists, too.
 */
function isOfAutopath({ names }: Observations, name: string): boolean {
  const own = name.slice(0, Math.max(name.indexOf('.svc.'), 0));
  const stem = own.slice(0, own.lastIndexOf('.') + 1);
  return (
    stem.length > 1 && addressTypes.some((type) => (names.get(stem, type)?.outcomes.found ?? 0) > 0)
  );
}

/** Whether the TTLs of one server go down with time, as those of a cached answer do. */
export function countsDown(ttls: readonly NegativeTtl[]): boolean {
  return (
    ttls.filter((one, at) => ttls.some((before, first) => first < at && follows(before, one)))
      .length >= 2
  );
}

/** TTLs of one server that go down with time, the most that there are. */
export function countdown(ttls: readonly NegativeTtl[]): readonly NegativeTtl[] {
  let longest: readonly NegativeTtl[] = [];
  for (const [at, first] of ttls.entries()) {
    const found = [first];
    for (const next of ttls.slice(at + 1))
      if (follows(first, next) && next.ttl < found.at(-1)!.ttl) found.push(next);
    if (found.length > longest.length) longest = found;
  }
  return longest;
}

/** Whether both are of one answer, of which the second was given later. */
function follows(one: NegativeTtl, next: NegativeTtl): boolean {
  const fell = one.ttl - next.ttl;
  return (
    one.server === next.server &&
    fell > 0 &&
    Math.abs(1000 * fell - (next.ms - one.ms)) <= TTL_ERROR_MS
  );
}
