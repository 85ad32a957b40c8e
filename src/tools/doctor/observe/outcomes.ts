/** Counts of the results of exchanges. */
import { FLAG, RCODE } from '../../../server/wire/iana.ts';
import { isLost, type SeenExchange } from '../../capture/pair/seen-exchange.ts';

/** Exchanges of one kind, counted by result. */
export interface Outcomes {
  asked: number;
  lost: number;
  /** NOERROR with an answer. */
  found: number;
  nodata: number;
  nxdomain: number;
  servfail: number;
  refused: number;
  /** Another error, such as FORMERR or NOTIMP. */
  error: number;
}

export function noOutcomes(): Outcomes {
  return { asked: 0, lost: 0, found: 0, nodata: 0, nxdomain: 0, servfail: 0, refused: 0, error: 0 };
}

/** The counts of `Outcomes` in order. A result is an index into it. */
export const outcomeOrder: readonly (keyof Outcomes)[] = [
  'asked',
  'lost',
  'found',
  'nodata',
  'nxdomain',
  'servfail',
  'refused',
  'error',
];

/** The place in `outcomeOrder`. */
export function outcomeOf(exchange: SeenExchange): number {
  if (isLost(exchange)) return 1;
  switch (exchange.rcode) {
    case RCODE.NOERROR:
      // A truncated reply exists but does not fit.
      return exchange.answers > 0 || (exchange.replyFlags & FLAG.TC) !== 0 ? 2 : 3;
    case RCODE.NXDOMAIN:
      return 4;
    case RCODE.SERVFAIL:
      return 5;
    case RCODE.REFUSED:
      return 6;
    default:
      return 7;
  }
}

export function countOutcome(into: Outcomes, exchange: SeenExchange): void {
  countIn(into, outcomeOf(exchange));
}

/** Counts one exchange with a known result. @param outcome its index in `outcomeOrder` */
export function countIn(into: Outcomes, outcome: number): void {
  into.asked++;
  into[outcomeOrder[outcome]!]++;
}

export function addOutcomes(into: Outcomes, more: Outcomes): void {
  for (const key of outcomeOrder) into[key] += more[key];
}

/** Queries that got no reply or a failure. */
export function wrong({ lost, servfail, refused, error }: Outcomes): number {
  return lost + servfail + refused + error;
}

/** True for an error that shows nothing about the name: SERVFAIL, REFUSED, FORMERR and others. */
export function isFailure({ rcode }: SeenExchange): boolean {
  return rcode > 0 && rcode !== RCODE.NXDOMAIN;
}

/** The share of lost ones, 0 to 1. */
export function lossRate({ asked, lost }: Pick<Outcomes, 'asked' | 'lost'>): number {
  return asked === 0 ? 0 : lost / asked;
}

export function answered({ asked, lost }: Pick<Outcomes, 'asked' | 'lost'>): number {
  return asked - lost;
}
