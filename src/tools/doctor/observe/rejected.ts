/** Lost queries that drew an ICMP port unreachable error, by destination host. */
import { finalServer, sentSpan, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import type { Claims } from './claims.ts';
import type { Rejection } from './icmp-errors.ts';
import type { Observations } from './observations.ts';
import type { QueryCounts } from './server-view.ts';
import { runsOf } from './sorted-times.ts';
import { MIN_CASES, SAME_MOMENT_MS } from '../thresholds/evidence.ts';
import { REJECTED_APART_MS, REJECTED_WITHIN_MS, RUNS_AGAIN } from '../thresholds/silence.ts';

/** A time in which a host rejected queries, milliseconds since 1970. */
export interface RejectedTime {
  readonly fromMs: number;
  readonly toMs: number;
}

/** A host whose port was closed for a time, or several times. */
export interface RejectingHost {
  /** The server's name, which has its port if several servers share an address (`ServerNames`). */
  readonly address: string;
  /** The address alone. */
  readonly host: string;
  /** It is behind the address of a service. */
  readonly isBehind: boolean;
  /**
   * The senders of the ICMP errors: the host alone, or only others. A node that has no endpoint for an address rejects
   * queries to it with its own address.
   */
  readonly senders: ReadonlySet<string>;
  /** Queries that came back. */
  readonly returned: readonly SeenExchange[];
  /** These, and those to it that got nothing at the same times: kernels limit their ICMP errors. */
  readonly losses: readonly SeenExchange[];
  readonly times: readonly RejectedTime[];
  /** It answers after the last of these times. */
  readonly runsAgain: boolean;
  /** Others were answered at the address while queries came back. */
  readonly partly: boolean;
}

interface Rejected {
  readonly loss: SeenExchange;
  readonly error: Rejection;
}

/** The hosts that rejected at least a few lost queries that no finding has explained. */
export function rejectingHosts(observed: Observations, claims: Claims): readonly RejectingHost[] {
  if (observed.rejections.length < MIN_CASES) return [];
  const errors = Map.groupBy(observed.rejections, ({ client, port }) => `${client} ${port}`);
  const rejected = claims.open.flatMap((loss) => {
    const { client, hops, sentMs } = loss;
    // A translation may change the client's end as well.
    const ends = [client, ...hops.map((hop) => hop.client)];
    const error = ends
      .flatMap(({ address, port }) => errors.get(`${address} ${port}`) ?? [])
      .find(({ timeMs }) => timeMs >= sentMs && timeMs < sentMs + REJECTED_WITHIN_MS);
    return error === undefined ? [] : { loss, error };
  });
  const byHost = Map.groupBy(rejected, ({ loss }) => finalServer(loss).address);
  return [...byHost].flatMap(([address, theirs]) => {
    const host = observed.serverNames.hostOf(address);
    const lots = Map.groupBy(theirs, ({ error }) => senderOf(error, host) === host);
    return [...lots.values()].flatMap((lot) =>
      lot.length < MIN_CASES ? [] : hostOf(address, lot, observed, claims),
    );
  });
}

/** A node's capture has an error before and after its translation. */
function senderOf({ sender, target }: Rejection, host: string): string {
  return sender === target ? host : sender;
}

function hostOf(
  address: string,
  theirs: readonly Rejected[],
  observed: Observations,
  claims: Claims,
): RejectingHost {
  const { servers, backends } = observed;
  const host = observed.serverNames.hostOf(address);
  const view = backends.get(address) ?? servers.get(address);
  const returned = theirs.map(({ loss }) => loss);
  // A server that queries others itself, or is behind a Service, is one process.
  const isOne = backends.get(address) !== undefined || observed.clients.get(host) !== undefined;
  const ranBetween = (fromMs: number, toMs: number): boolean =>
    isOne &&
    view?.history.some(
      ([second, { replied }]) =>
        second * 1000 > fromMs && (second + 1) * 1000 < toMs && replied >= MIN_CASES,
    ) === true;
  const times = timesOf(returned, ranBetween);
  const isIn = ({ sentMs }: SeenExchange): boolean =>
    times.some(
      ({ fromMs, toMs }) => sentMs >= fromMs - SAME_MOMENT_MS && sentMs <= toMs + REJECTED_APART_MS,
    );
  const replied = (fromMs: number, toMs: number): Pick<QueryCounts, 'asked' | 'lost'> =>
    view?.within(fromMs, toMs) ?? { asked: 0, lost: 0 };
  const last = times.at(-1)!;
  const later = replied(last.toMs, Infinity);
  const partly = times.some(({ fromMs, toMs }) => {
    const { asked, lost } = replied(fromMs, toMs);
    return asked - lost >= MIN_CASES;
  });
  return {
    address,
    host,
    isBehind: backends.get(address) !== undefined,
    senders: new Set(theirs.map(({ error }) => senderOf(error, host))),
    returned,
    losses: claims.openTo(address).filter(isIn),
    times,
    runsAgain:
      later.asked - later.lost >= RUNS_AGAIN.replies && later.lost <= RUNS_AGAIN.lost * later.asked,
    partly,
  };
}

/** Splits them where none came back for longer than clients wait, and where the host answered in between. */
function timesOf(
  returned: readonly SeenExchange[],
  ranBetween: (fromMs: number, toMs: number) => boolean,
): readonly RejectedTime[] {
  const runs = runsOf(
    returned,
    (before, each) =>
      each.sentMs - before.sentMs <= REJECTED_APART_MS && !ranBetween(before.sentMs, each.sentMs),
  );
  return runs.map(sentSpan);
}
