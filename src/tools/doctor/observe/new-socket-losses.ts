/**
 * Detects that new sockets lose their queries while known ones are answered, as with a full
 * connection tracking table.
 */
import { sentSpan, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { share } from '../texts.ts';
import type { Flows } from './flows.ts';
import type { Observations } from './observations.ts';
import { lossRate } from './outcomes.ts';
import { isSilent, turnsOf, whileSilent } from './sockets.ts';
import { SAME_MOMENT_MS } from '../thresholds/evidence.ts';
import {
  ALL_NEW_LOST,
  ANSWERED_LATER,
  EXPECTED_THROUGHOUT,
  FAIL_ALIKE,
  LOST_IN_SILENCE,
  MAX_KNOWN_LOST,
  MIN_EXPECTED,
  MIN_KNOWN_QUERIES,
  MIN_NEW_QUERIES,
  MIN_OTHER_SOCKETS,
  NEW_SILENT,
  OPENED_TOGETHER_MS,
  OTHER_SOCKETS_LOST,
  SILENT_IN_CROWDS,
  SPARED_MOMENTS,
  SURE_EXPECTED,
  WHOLE_PAIRS,
} from '../thresholds/transport.ts';

/**
 * A full table and a dead pod behind the Service both hit sockets from their first packet on. The
 * table does so while it is full, for all protocols, and hits packets, not sockets: a retry
 * succeeds when there is room.
 */
export function howNewOnesSuffer(observed: Observations): string | null {
  if (goesByClient(observed)) return null;
  const amid = howAmidOthers(observed) ?? howWithOthers(observed);
  if (amid !== null) return amid;
  if (!askTheSame(observed)) return null;
  const all = observed.newSockets.throughout;
  if (
    all.fresh.asked >= MIN_NEW_QUERIES &&
    lossRate(all.fresh) >= NEW_SILENT &&
    all.known.asked >= MIN_KNOWN_QUERIES &&
    lossRate(all.known) <= MAX_KNOWN_LOST
  )
    return `Between the first and the last of these moments, ${share(all.fresh.lost, all.fresh.asked)} queries from new sockets were lost, compared with ${share(all.known.lost, all.known.asked)} from known ones. A dead server behind the address would lose only some of the new ones.`;
  const { others, flows, pairs, newSockets } = observed;
  const { fresh } = newSockets.meanwhile;
  const otherRate = others.opened === 0 ? 0 : others.repeated / others.opened;
  const { oneLost, bothLost } = pairs.one;
  if (!sparesKnown(observed)) return null;
  if (
    others.opened >= FAIL_ALIKE.opened &&
    others.repeated >= FAIL_ALIKE.repeated &&
    otherRate >= FAIL_ALIKE.ofRate * lossRate(fresh)
  )
    return `${share(others.repeated, others.opened)} other TCP connections also had to repeat their first packet.`;
  const { list } = flows;
  const late = list.filter(
    ({ lost, firstReplyMs, firstMs }) =>
      lost > 0 && firstReplyMs < Infinity && firstMs < firstReplyMs,
  );
  const silent = list.filter(isSilent);
  const meanwhile = whileSilent(list);
  const inCrowds =
    silent.length >= NEW_SILENT * meanwhile.length ||
    turnsOf(meanwhile).deviation < SILENT_IN_CROWDS.deviations;
  if (silent.length >= SILENT_IN_CROWDS.sockets && inCrowds)
    return `${silent.length} sockets without any reply were opened at the same moments, while those opened earlier kept getting replies.`;
  const entered = list.filter(({ lost, asked }) => lost > 0 && lost < asked);
  if (silent.length >= 2 && entered.length >= 2 && bothLost >= 2 && lossRate(fresh) >= 0.5)
    return `Of the new sockets, ${silent.length} got no reply at all, and ${entered.length} got a reply to one of their queries. A dead server would lose all of a socket’s queries or none.`;
  if (
    late.length >= ANSWERED_LATER.sockets &&
    bothLost >= ANSWERED_LATER.pairs &&
    oneLost <= ANSWERED_LATER.halves * bothLost
  )
    return `${late.length} sockets were answered when they retried. Of the pairs sent together, ${bothLost} lost both queries and ${oneLost} lost one.`;
  return null;
}

/** True if known sockets lose nothing while new ones do, and not by chance. */
export function sparesKnown(observed: Observations): boolean {
  return sparesAny(observed) && askTheSame(observed);
}

/**
 * True if one client alone loses the queries of its new sockets, and new sockets of others are
 * answered at the same time.
 */
export function oneLosesAlone({ losses, flows }: Observations): boolean {
  const { fresh, fromMs, toMs } = freshLosses(losses, flows);
  const clients = new Set(fresh.map(({ client }) => client.address));
  const servers = new Set(fresh.map(({ server }) => server.address));
  const spared = [...servers].flatMap((server) =>
    flows
      .to(server)
      .filter(
        ({ client, firstMs, lost }) =>
          !clients.has(client) && firstMs >= fromMs && firstMs <= toMs && lost === 0,
      ),
  );
  return clients.size === 1 && spared.length >= MIN_OTHER_SOCKETS;
}

/**
 * True if the clients whose new sockets lose everything have no other working socket, while new
 * sockets of others are answered: then it depends on the client.
 */
function goesByClient({ losses, flows }: Observations): boolean {
  const { fresh, fromMs, toMs } = freshLosses(losses, flows);
  const clients = new Set(fresh.map(({ client }) => client.address));
  const servers = new Set(fresh.map(({ server }) => server.address));
  let [hit, goOn, spared, lost] = [0, 0, 0, 0];
  for (const server of servers)
    for (const { client, firstMs, firstReplyMs, lastAnsweredMs, lost: missing } of flows.to(
      server,
    )) {
      const isNew = firstMs >= fromMs && firstMs <= toMs;
      if (!clients.has(client)) {
        if (isNew) spared++;
        if (isNew && missing > 0) lost++;
      } else if (isNew && missing > 0) hit++;
      else if (isNew || (firstReplyMs < fromMs && lastAnsweredMs > fromMs + SAME_MOMENT_MS)) goOn++;
    }
  return spared >= MIN_OTHER_SOCKETS && lost === 0 && goOn <= OTHER_SOCKETS_LOST * hit;
}

/**
 * For clients that use no socket again: true if new sockets of all protocols fail whole, and some
 * succeed among them.
 */
function howAmidOthers(observed: Observations): string | null {
  const { others, pairs, newSockets, total } = observed;
  const { fresh, known } = newSockets.meanwhile;
  const { oneLost, bothLost } = pairs.one;
  if (bothLost < WHOLE_PAIRS.pairs || oneLost > WHOLE_PAIRS.halves * bothLost) return null;
  if (known.asked >= MIN_NEW_QUERIES && lossRate(known) > WHOLE_PAIRS.halves * lossRate(fresh))
    return null;
  if (
    others.repeated <
    Math.max(WHOLE_PAIRS.others, FAIL_ALIKE.ofRate * lossRate(total) * others.opened)
  )
    return null;
  const amid = enteredAmid(observed);
  return amid < WHOLE_PAIRS.amid
    ? null
    : `${share(others.repeated, others.opened)} other TCP connections also had to repeat their first packet. ${amid} new sockets got all their queries through while others did not. Of the pairs sent together, ${bothLost} lost both queries and ${oneLost} lost one. A faulty link would drop single packets, or all of them.`;
}

/**
 * For clients that hardly use a socket again: true if at times nothing new gets through, DNS or
 * not, while known sockets are answered.
 */
function howWithOthers({ newSockets, others }: Observations): string | null {
  const { fresh, known } = newSockets.amid;
  if (fresh.lost < ALL_NEW_LOST.lost || known.asked === 0 || known.lost > 0) return null;
  if (others.repeated < ALL_NEW_LOST.others) return null;
  return `At times, no new socket gets through at all. ${fresh.lost} queries from new sockets are lost with none answered in between, and ${share(others.repeated, others.opened)} other TCP connections also had to repeat their first packet. Sockets that had been answered before were still answered during this time (${known.asked} ${known.asked === 1 ? 'query' : 'queries'}).`;
}

/**
 * Sockets that were answered from their first query on, and opened just after one that was not and
 * just before another one.
 */
function enteredAmid({ flows }: Observations): number {
  const opened = flows.list.toSorted((one, other) => one.firstMs - other.firstMs);
  let [entered, pending, silentMs] = [0, 0, -Infinity];
  for (const { firstMs, lost } of opened) {
    if (lost === 0) {
      if (firstMs - silentMs <= OPENED_TOGETHER_MS) pending++;
    } else {
      if (firstMs - silentMs <= OPENED_TOGETHER_MS) entered += pending;
      [pending, silentMs] = [0, firstMs];
    }
  }
  return entered;
}

/**
 * True if the sockets that are answered at the time query the servers that new ones do not reach:
 * otherwise they show nothing.
 */
function askTheSame({ losses, flows }: Observations): boolean {
  const { fresh, fromMs, toMs } = freshLosses(losses, flows);
  const servers = new Set(fresh.map(({ server }) => server.address));
  for (const server of servers)
    if (
      !flows
        .to(server)
        .some(
          ({ firstReplyMs, lastAnsweredMs }) =>
            firstReplyMs < Math.min(toMs, lastAnsweredMs) && lastAnsweredMs > fromMs,
        )
    )
      servers.delete(server);
  const comparable = fresh.filter(({ server }) => servers.has(server.address));
  return comparable.length >= 0.5 * fresh.length;
}

/** Lost queries of sockets without a reply, and the time of the first and last of them. */
function freshLosses(
  losses: readonly SeenExchange[],
  flows: Flows,
): { readonly fresh: readonly SeenExchange[]; readonly fromMs: number; readonly toMs: number } {
  const fresh = losses.filter((loss) => loss.sentMs <= (flows.get(loss)?.firstReplyMs ?? Infinity));
  return { fresh, ...sentSpan(fresh) };
}

function sparesAny({ newSockets }: Observations): boolean {
  const { throughout, amid } = newSockets;
  // If nothing new is answered for a time, known sockets have to be answered within that time.
  if (amid.fresh.lost >= LOST_IN_SILENCE.share * newSockets.meanwhile.fresh.lost)
    return (
      amid.known.asked >= LOST_IN_SILENCE.known &&
      amid.known.lost <= OTHER_SOCKETS_LOST * amid.known.asked
    );
  if (
    lossRate(throughout.fresh) * throughout.known.asked >= EXPECTED_THROUGHOUT &&
    throughout.known.lost <=
      OTHER_SOCKETS_LOST * lossRate(throughout.fresh) * throughout.known.asked
  )
    return true;
  const { fresh, known, spared } = newSockets.meanwhile;
  const expected = lossRate(fresh) * known.asked;
  const moments = expected >= SURE_EXPECTED ? SPARED_MOMENTS.ifSure : SPARED_MOMENTS.least;
  return (
    spared >= moments && expected >= MIN_EXPECTED && known.lost <= OTHER_SOCKETS_LOST * expected
  );
}
