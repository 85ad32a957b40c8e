/** A forwarder that refuses queries while a fixed number of others wait for its upstream. */
import { RCODE } from '../../../server/wire/iana.ts';
import { sentSpan, latencyOf } from '../../capture/pair/seen-exchange.ts';
import type { Failure, Observations } from '../observe/observations.ts';
import { isFailure } from '../observe/outcomes.ts';
import { busiestOf } from '../observe/busiest-client.ts';
import { programs } from '../observe/roles.ts';
import {
  slowNames,
  slowUpstreamOf,
  slowUpstreamText,
  waitingLimitTexts,
} from '../observe/slow-upstream.ts';
import { WaitingAtServer } from '../observe/waiting-at-server.ts';
import { fromTo, keysOf, listed, percent, sentence, share, tally } from '../texts.ts';
import { FORWARD_LIMIT_LEAST, WAITING_LIMIT } from '../thresholds/errors.ts';
import { MIN_CASES, MIN_QUERIES, MOST, SPARED_SHARE } from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

export const waitingLimit: FindingKind = {
  code: 'ND4010',
  title: 'A name server refuses to answer',
  name: 'servers that refuse',
  inCapture(observed, claims) {
    const quick = observed.failed.filter(
      (each) =>
        (each.rcode === RCODE.REFUSED || each.rcode === RCODE.SERVFAIL) &&
        (latencyOf(each) ?? Infinity) < WAITING_LIMIT.atOnceMs,
    );
    if (quick.length < MIN_QUERIES) return unknown('too few queries fail at once');
    for (const [server, refused] of Map.groupBy(quick, (each) => each.server.address)) {
      const full = fullAt(server, refused, observed);
      if (full === null) continue;
      const names = keysOf(refused, ({ name }) => name);
      const own = new Set(names);
      for (const { name, servers } of observed.names.list)
        if (own.has(name) || (servers.get(server)?.refused ?? 0) > 0) claims.names.add(name);
      const whose = new Set(programs(observed).map(({ address }) => address));
      const busiest = busiestOf(
        tally(
          [...refused, ...full.late].filter(({ client }) => whose.has(client.address)),
          ({ client }) => client.address,
        ),
      );
      const top = busiest !== null && busiest.share >= MOST ? busiest : null;
      const upstream = slowUpstreamOf(observed, server);
      const texts = waitingLimitTexts(server, upstream);
      const slow = slowNames(observed);
      const { fromMs, toMs } = sentSpan(refused);
      claims.late.add(server);
      // A loop fills any limit.
      if (claims.looping.has(server))
        return excluded('the queries that wait are those of a forwarding loop');
      return {
        title: texts.title,
        subject: server,
        severity: 'critical',
        confidence: 0.94,
        seen: [
          sentence(
            `${server} failed ${refused.length} queries at once (REFUSED or SERVFAIL), ${fromTo(fromMs, toMs)}. They are for ${listed(names)}`,
          ),
          `${share(full.refusals, refused.length)} of them came while ${full.least} to ${full.most} other queries were waiting there, and ${full.most} is the most that ever waited. ${full.calm}`,
          slow.length > 0 && sentence(`Replies for ${listed(slow)} take a second or more`),
          ...slowUpstreamText(upstream),
          top !== null &&
            `${top.address} sends ${percent(top.queries, top.all)} of the waiting and refused queries, and uses up the limit that all clients share.`,
        ],
        why: `${texts.why} It is not an access rule or a rate limit: the same names and clients are answered when fewer queries wait.`,
        fix: [
          top === null
            ? 'Find the clients that look up many names at once, and slow them down.'
            : `Make ${top.address} look up fewer names at once, or give it its own resolver.`,
          ...texts.fix,
        ],
        prove: `run ndots query ${names[0]!} @${server} while few queries wait; it is answered`,
        disproved: `${server} refuses the same name while no query waits`,
        exchanges: observed.affectedExchanges((each) => isFailure(each) && own.has(each.name)),
      };
    }
    return excluded('failures do not depend on the number of waiting queries');
  },
};

/** The times at which the limit was used up. */
interface FullLimit {
  /** Refusals at these times. */
  readonly refusals: number;
  readonly late: Observations['slow'];
  /** From this number of waiting queries on, the limit counts as used up. */
  readonly least: number;
  readonly most: number;
  /** Says that queries were not refused while fewer waited. */
  readonly calm: string;
}

function fullAt(
  server: string,
  refused: readonly Failure[],
  observed: Observations,
): FullLimit | null {
  if (refused.length < MIN_QUERIES) return null;
  const late = observed.slow.filter((each) => each.server === server);
  const waiting = new WaitingAtServer(late);
  const { most } = waiting;
  const least = Math.ceil(WAITING_LIMIT.full * most);
  if (most < WAITING_LIMIT.least) return null;
  const refusals = refused.filter(({ sentMs }) => waiting.at(sentMs) >= least).length;
  if (refusals < WAITING_LIMIT.refused * refused.length) return null;
  const failing = new Set(refused.map(({ sentMs }) => Math.floor(sentMs / 1000)));
  const view = observed.servers.get(server) ?? observed.backends.get(server);
  const calm = (view?.history ?? []).filter(
    ([second, { asked }]) =>
      asked > 0 && !failing.has(second) && waiting.at(second * 1000 + 500) < least,
  );
  const asked = calm.reduce((sum, [, each]) => sum + each.asked, 0);
  const full = { refusals, late, least, most };
  if (calm.length >= MIN_CASES && asked >= MIN_QUERIES)
    return {
      ...full,
      calm: `In ${calm.length} seconds with fewer waiting queries, none failed.`,
    };
  // A flood that lasts as long as the capture leaves no such second, but its first queries fill the limit.
  const accepted = late.filter(({ sentMs }) => waiting.at(sentMs) < least).length;
  const isRefused = refused.filter(({ rcode }) => rcode === RCODE.REFUSED).length;
  const byChance = (accepted * refusals) / Math.max(1, late.length - accepted);
  if (
    most < FORWARD_LIMIT_LEAST ||
    accepted < MIN_QUERIES ||
    isRefused < MOST * refused.length ||
    byChance < MIN_CASES ||
    refused.length - refusals > SPARED_SHARE * byChance
  )
    return null;
  return {
    ...full,
    calm: `${accepted} queries that came while fewer waited were accepted, and ${refused.length - refusals} ${refused.length - refusals === 1 ? 'was' : 'were'} refused.`,
  };
}
