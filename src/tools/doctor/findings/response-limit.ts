/** A server with response rate limiting, which drops some queries and answers others with only TC. */
import { commonZone } from '../../../server/wire/within-zone.ts';
import { finalServer, sentSpan, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { floodAmong, floodFix, floodText } from '../observe/name-flood.ts';
import { explainLate, explainWaiting, silencesOf } from '../observe/consequences.ts';
import type { Crowding } from '../observe/crowding.ts';
import type { Observations } from '../observe/observations.ts';
import type { ServerView } from '../observe/server-view.ts';
import { fromTo, keysOf, listed, sentence, share } from '../texts.ts';
import { FELT_SHARE, MIN_CASES } from '../thresholds/evidence.ts';
import { RESPONSE_LIMIT } from '../thresholds/lateness.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** Empty truncated replies to small questions coincide with losses, and only at high rates. */
export const responseLimit: FindingKind = {
  code: 'ND4045',
  title: 'A server limits its reply rate and drops or truncates further replies (RRL)',
  name: 'response rate limiting',
  inCapture(observed, claims) {
    const slips = slipsOf(observed);
    if (slips.size === 0) return excluded('no server sent empty truncated replies');
    for (const [address, theirs] of slips) {
      const losses = claims.openOrFlooded(address).filter(({ protocol }) => protocol === 'udp');
      const view = observed.servers.get(address) ?? observed.backends.get(address);
      if (view === undefined || theirs.length < MIN_CASES || losses.length < MIN_CASES) continue;
      const whole = wholeOf(observed, address, theirs);
      if (whole < MIN_CASES) continue;
      const rates =
        ratesText(view, theirs) ?? crowdingText(observed, address) ?? equalText(observed, address);
      if (rates === null) continue;
      claims.take(losses);
      const flood = floodAmong(claims, losses);
      explainWaiting(observed, claims, silencesOf(losses));
      explainLate(observed, claims, losses);
      const { asked } = view.outcomes;
      const names = keysOf([...losses, ...theirs], ({ name }) => name);
      const zone = names.reduce(commonZone);
      const clients = keysOf(losses, (each) => (each.hops.at(-1) ?? each).client.address);
      const { fromMs, toMs } = sentSpan(losses);
      return {
        severity: losses.length >= FELT_SHARE * asked ? 'critical' : 'warning',
        confidence: 0.9,
        seen: [
          `${address} left ${share(losses.length, asked)} queries unanswered, and answered ${theirs.length} with an empty truncated reply (TC=1), ${fromTo(fromMs, toMs, 'fine')}. The same questions got ${whole} complete replies that fit into UDP, so their size is not the reason.`,
          `Losses depend on the rate. ${rates}`,
          ...floodText(flood),
          sentence(
            `The queries came from ${listed(clients)}, for ${zone.length > 1 && names.length > 1 ? `names under ${zone}` : listed(names)}`,
          ),
        ],
        why: `This is response rate limiting (RRL), which authoritative servers use against attacks with forged sources. Above a number of replies a second to one client network, ${address} drops most queries and sends an empty reply with TC=1 for some (the “slip”), so that real clients retry over TCP. No link loses packets. All pods whose queries leave from one address share one limit.`,
        fix: [
          ...floodFix(flood),
          `Ask the operator of ${address} to exempt your addresses or raise the limit (BIND: rate-limit { responses-per-second; exempt-clients }; Knot: mod-rrl; NSD: rrl-ratelimit).`,
          'Send fewer queries. Cache longer in the Corefile (cache, with serve_stale), run fewer lookups at once, and keep search-path queries away from this server.',
          'Make the resolver use TCP, which is not limited. In forward, prefer_udp retries over TCP after TC=1, and force_tcp always uses it.',
        ],
        prove: `run for i in $(seq 100); do dig +ignore @${address} ${names[0]!} & done; some queries time out or show the tc flag, but one query a second is always answered`,
        disproved: `a burst of queries over TCP to ${address} loses as many`,
        exchanges: [...losses, ...theirs],
      };
    }
    return unknown('there are few empty truncated replies, or they do not depend on the rate');
  },
};

/** Empty truncated replies over UDP, by server. */
function slipsOf({ truncated }: Observations): ReadonlyMap<string, readonly SeenExchange[]> {
  const all = truncated.filter(({ answers }) => answers === 0);
  return Map.groupBy(all, (each) => finalServer(each).address);
}

/** The number of complete replies to the same questions that came over UDP or are small enough for it. */
function wholeOf({ names }: Observations, address: string, slips: readonly SeenExchange[]): number {
  const views = new Set(slips.map(({ name, type }) => names.get(name, type)));
  return [...views].reduce((sum, view) => sum + (view?.wholeBy(address) ?? 0), 0);
}

/** Queries a second with and without losses or slips, or null if they differ too little. */
function ratesText(view: ServerView, slips: readonly SeenExchange[]): string | null {
  const slipping = new Set(slips.map(({ sentMs }) => Math.floor(sentMs / 1000)));
  const hit = view.history.filter(([second, { lost }]) => lost > 0 || slipping.has(second));
  const calm = view.history.filter(
    ([second, { lost, asked }]) => asked > 0 && lost === 0 && !slipping.has(second),
  );
  const mean = (list: typeof hit): number =>
    list.reduce((sum, [, { asked }]) => sum + asked, 0) / Math.max(1, list.length);
  const [lossy, quiet] = [mean(hit), mean(calm)];
  if (calm.length < MIN_CASES || lossy < RESPONSE_LIMIT.factor * quiet) return null;
  const most = Math.max(...hit.map(([, { asked }]) => asked));
  return `In seconds with such losses, ${view.address} received ${lossy.toFixed(0)} queries on average (${most} at most), compared with ${quiet.toFixed(1)} in seconds without losses.`;
}

/** The same where nearly all seconds have losses: the last queries of each burst are lost. */
function crowdingText({ replays }: Observations, address: string): string | null {
  const crowding = replays.get(address)?.crowding ?? null;
  if (!isCrowded(crowding)) return null;
  return `In the ${RESPONSE_LIMIT.windowMs} ms before a lost query, ${address} received ${crowding.lost.toFixed(1)} queries on average, compared with ${crowding.fine.toFixed(1)} before the others.`;
}

/** The same if equal replies are limited, separately for each question. */
function equalText({ equalQuestions }: Observations, address: string): string | null {
  const crowding = equalQuestions.get(address)?.crowding ?? null;
  if (!isCrowded(crowding)) return null;
  return `In the ${RESPONSE_LIMIT.windowMs} ms before a query without a complete reply, ${address} received the same question ${crowding.lost.toFixed(1)} times on average, compared with ${crowding.fine.toFixed(1)} times before the others.`;
}

function isCrowded(crowding: Crowding | null): crowding is Crowding {
  if (crowding === null) return false;
  const { lost, fine, deviations } = crowding;
  return lost >= RESPONSE_LIMIT.before * fine && deviations >= RESPONSE_LIMIT.deviations;
}
