/** Zones that are empty all at once. */
import { isBelow } from '../../../server/wire/within-zone.ts';
import { commonService } from '../observe/common-service.ts';
import { median } from '../observe/median.ts';
import type { NameView } from '../observe/name-view.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { clock, listed, sentence } from '../texts.ts';
import {
  ALTERNATING_NAMES,
  BACK_SHARE,
  GONE_TOGETHER_MS,
  GONE_TOGETHER_SHARE,
  MIN_GONE_DIFFERENT,
  MIN_GONE_MS,
  MIN_GONE_NAMES,
  MIN_SERVER_ANSWERS,
} from '../thresholds/errors.ts';

export const suddenNegatives: FindingKind = {
  code: 'ND4006',
  title: 'Many names disappear at once because their zone is empty or broken upstream',
  name: 'a zone that was emptied',
  inCapture(observed, claims) {
    const flooded = claims.flood?.domain ?? null;
    // A name that a program invents need not exist twice.
    const known = observed.names.list.filter(
      ({ name, outcomes }) => outcomes.found >= 1 && (flooded === null || !isBelow(name, flooded)),
    );
    if (known.length < MIN_GONE_NAMES) return unknown('too few names were found at first');
    const gone = known.flatMap((view) => {
      const { absence, outcomes } = view;
      if (absence === null || absence.count < 2) return [];
      // Where servers differ, or caches have it by turns, there is one short time after the other.
      const negative = outcomes.nxdomain + outcomes.nodata;
      return absence.count >= GONE_TOGETHER_SHARE * negative ? [{ ...absence, view }] : [];
    });
    if (gone.length < MIN_GONE_NAMES)
      return excluded(
        `${gone.length} of ${known.length} names and types that were found are missing later`,
      );
    const middle = median(gone.map(({ fromMs }) => fromMs));
    const together = gone.filter(({ fromMs }) => Math.abs(fromMs - middle) < GONE_TOGETHER_MS);
    if (
      together.length < MIN_GONE_NAMES ||
      new Set(together.map(({ view }) => view.name)).size < MIN_GONE_DIFFERENT
    )
      return excluded('names do not disappear at the same time');
    const back = together.filter(({ view, toMs }) => view.lastFoundMs > toMs);
    const isBack = back.length >= BACK_SHARE * together.length;
    if (isBack && median(together.map(({ fromMs, toMs }) => toMs - fromMs)) < MIN_GONE_MS)
      return excluded('names that were found are also found later');
    const fromMs = together.reduce((least, each) => Math.min(least, each.fromMs), Infinity);
    const toMs = together.reduce((most, each) => Math.max(most, each.toMs), 0);
    const views = new Set(together.map(({ view }) => view));
    const otherwise = known.filter(
      (view) => !views.has(view) && goesByItself(view, fromMs, isBack ? toMs : Infinity),
    );
    if (otherwise.length > ALTERNATING_NAMES * views.size)
      return excluded('each name comes and goes several times, independently');
    if (isOfServers(views))
      return excluded(
        'the missing names depend on the server, since some servers always have them',
      );
    const names = [...new Set(together.map(({ view }) => view.name))];
    if (observed.domains.isOfCluster(names[0]!) && commonService(names) !== null)
      return excluded('the missing names belong to one Service');
    for (const name of names) claims.names.add(name);
    const keys = new Set(names);
    return {
      severity: 'critical',
      confidence: 0.9,
      seen: [
        sentence(
          isBack
            ? `${names.length} names were answered until about ${clock(fromMs)}, then did not exist until about ${clock(toMs)}, when they came back. They include ${listed(names)}`
            : `${names.length} names were answered until about ${clock(fromMs)} but have not existed since then. They include ${listed(names)}`,
        ),
      ],
      why: 'The answers are quick and look valid, but they are wrong. The owner of these names published an empty or broken zone (failed automation, a changed split view). Servers and clients trust and cache it.',
      fix: [
        'Tell the zone’s owner to restore its last good version.',
        'Until then, use hosts or a template with the last known addresses for urgent names.',
      ],
      prove: `run ndots query ${names[0]} at a public resolver and at the zone’s own servers`,
      disproved: 'the names were removed on purpose',
      exchanges: observed.affectedExchanges(({ name }) => keys.has(name)),
    };
  },
};

/** True if a name disappears or returns at other times than between these. */
function goesByItself(view: NameView, fromMs: number, toMs: number): boolean {
  const { absence, departures, outcomes, lastFoundMs } = view;
  if (absence === null) return false;
  if (departures > 1 || outcomes.nxdomain + outcomes.nodata > absence.count) return true;
  return (
    absence.toMs < fromMs ||
    absence.fromMs > toMs ||
    (toMs === Infinity && lastFoundMs > absence.toMs)
  );
}

/**
 * True if servers that have these names never deny one, and servers that deny them never have one:
 * a zone that was emptied had them before.
 */
function isOfServers(views: ReadonlySet<NameView>): boolean {
  const servers = new Map<string, { found: number; denied: number }>();
  for (const view of views)
    for (const [server, { found, nodata, nxdomain }] of view.servers) {
      const counts = servers.get(server) ?? { found: 0, denied: 0 };
      servers.set(server, counts);
      counts.found += found;
      counts.denied += nodata + nxdomain;
    }
  const all = [...servers.values()];
  return (
    all.some(({ found, denied }) => found >= MIN_SERVER_ANSWERS && denied === 0) &&
    all.some(({ found, denied }) => denied >= MIN_SERVER_ANSWERS && found === 0)
  );
}
