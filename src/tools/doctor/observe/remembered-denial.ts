/**
 * Detects that a name which some servers deny, or all at times, is new, and that caches remember it
 * as missing.
 */
import type { NameView, NegativeTtl } from './name-view.ts';
import type { Observations } from './observations.ts';
import { isLinkLocal } from './roles.ts';
import { addressTypes } from '../../../server/wire/iana.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import {
  MIN_EARLY_DENIALS,
  NEW_NAME,
  ONE_ENTRY_TTL_S,
  SAME_ANSWERS_CHANCE,
  TTL_ERROR_MS,
} from '../thresholds/search.ts';

/**
 * True if caches remember that the name was missing: their TTLs count down, no denial is fresh once
 * the name exists, and the name came at one server or for all clients. A server that disagrees
 * denies it afresh each time that its cache entry expires.
 */
export function isRemembered(observed: Observations, view: NameView): boolean {
  const { outcomes, negativeTtls } = view;
  if (outcomes.nxdomain < MIN_CASES || outcomes.found + outcomes.nodata === 0) return false;
  if (isWithoutTtl(observed, view)) return cameForGood(view) && !isOfAutopath(observed, view.name);
  if (!countsDown(negativeTtls) || isDeniedAnew(view)) return false;
  return (
    (came(view) || isOfNodeCaches(view) || isOneEntry(view)) && !isOfAutopath(observed, view.name)
  );
}

/**
 * True if one address both has the name and denies it, and all denials expire at one time. They are one cache entry of
 * one of the servers behind that address. A server without the name would deny it afresh.
 */
export function isOneEntry({
  outcomes,
  serverTimes,
  negativeTtls,
  firstNegativeMs,
  lastNegativeMs,
  departures,
}: NameView): boolean {
  // A name that came or went has one change, or a few.
  if (departures < MIN_CASES) return false;
  const [only, ...others] = serverTimes;
  if (only === undefined || others.length > 0 || only.existsMs === Infinity) return false;
  if (outcomes.nxdomain < MIN_EARLY_DENIALS || negativeTtls.length < MIN_EARLY_DENIALS)
    return false;
  if (negativeTtls.every(({ ttl }) => ttl < ONE_ENTRY_TTL_S)) return false;
  const expiries = [...negativeTtls.map(({ ms, ttl }) => ms + 1000 * ttl), only.untilMs];
  return (
    lastNegativeMs - firstNegativeMs >= NEW_NAME.feltMs &&
    Math.max(...expiries) - Math.min(...expiries) <= TTL_ERROR_MS
  );
}

/** True if only caches of nodes deny it, which have no zone: the DNS pods said so before they had the name. */
function isOfNodeCaches({ serverTimes, negativeTtls }: NameView): boolean {
  const denying = serverTimes.filter(({ missingMs }) => missingMs > -Infinity);
  return denying.every(
    ({ server, existsMs }) =>
      isLinkLocal(server) &&
      existsMs === Infinity &&
      countsDown(negativeTtls.filter((each) => each.server === server)),
  );
}

/** True if the capture has denials of the name and cuts off all of their TTLs. */
export function isWithoutTtl({ cut }: Observations, { negativeTtls }: NameView): boolean {
  return cut.messages > 0 && negativeTtls.length === 0;
}

/**
 * True if all clients were denied at first and had the name at last, for longer than chance allows:
 * in between, several caches expire at different times. Servers that disagree keep doing so.
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
 * True if it was denied, and not from a cache, after it had existed: no denial is cached for longer
 * than the longest TTL.
 */
export function isDeniedAnew({ serverTimes, longestTtl }: NameView): boolean {
  const there = Math.min(...serverTimes.map(({ existsMs }) => existsMs));
  const until = Math.max(...serverTimes.map(({ untilMs }) => untilMs));
  return until - 1000 * longestTtl > there + TTL_ERROR_MS;
}

/**
 * True if each server that has it denied it only before, or one had it as soon as its cache entry expired. Also true if chance cannot explain
 * how long all clients were denied first, or had it last.
 */
function came({ outcomes, serverTimes, missingFirst, existingLast }: NameView): boolean {
  const { found, nodata, nxdomain } = outcomes;
  const yes = found + nodata;
  // The name came where it is served, and other servers remember that it was missing.
  const turned = serverTimes.filter(
    ({ missingMs, existsMs }) => missingMs > -Infinity && existsMs < Infinity,
  );
  return (
    (turned.length > 0 && turned.every(({ missingMs, existsMs }) => existsMs > missingMs)) ||
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

/** True if there are more equal answers in a row than their share at other times explains. */
function isNoChance(others: number, opposite: number, inRow: number): boolean {
  return (others / (others + opposite)) ** inRow <= SAME_ANSWERS_CHANCE;
}

/**
 * True for a step of a search path that autopath completes: without its last parts the name exists,
 * too.
 */
function isOfAutopath({ names }: Observations, name: string): boolean {
  const own = name.slice(0, Math.max(name.indexOf('.svc.'), 0));
  const stem = own.slice(0, own.lastIndexOf('.') + 1);
  return (
    stem.length > 1 && addressTypes.some((type) => (names.get(stem, type)?.outcomes.found ?? 0) > 0)
  );
}

/** True if the TTLs of one server count down with time, as those of a cached answer do. */
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

/** True if both belong to one answer, and the second was given later. */
function follows(one: NegativeTtl, next: NegativeTtl): boolean {
  const fell = one.ttl - next.ttl;
  return (
    one.server === next.server &&
    fell > 0 &&
    Math.abs(1000 * fell - (next.ms - one.ms)) <= TTL_ERROR_MS
  );
}
