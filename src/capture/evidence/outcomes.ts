/** Counts of what became of exchanges. */
import { FLAG, RCODE } from '../../wire/iana.ts';
import { isLost, type SeenExchange } from '../exchanges/seen-exchange.ts';

/** Exchanges of one kind: how many, and what became of them. */
export interface Outcomes {
  asked: number;
  lost: number;
  /** NOERROR with an answer. */
  found: number;
  nodata: number;
  nxdomain: number;
  servfail: number;
  refused: number;
}

/** None yet. */
export function noOutcomes(): Outcomes {
  return { asked: 0, lost: 0, found: 0, nodata: 0, nxdomain: 0, servfail: 0, refused: 0 };
}

/** Counts one. */
export function countOutcome(into: Outcomes, exchange: SeenExchange): void {
  into.asked++;
  if (isLost(exchange)) into.lost++;
  else if (exchange.rcode === RCODE.NXDOMAIN) into.nxdomain++;
  else if (exchange.rcode === RCODE.SERVFAIL) into.servfail++;
  else if (exchange.rcode === RCODE.REFUSED) into.refused++;
  else if (exchange.rcode === RCODE.NOERROR) {
    // What is truncated is there, and does not fit.
    if (exchange.answers > 0 || (exchange.replyFlags & FLAG.TC) !== 0) into.found++;
    else into.nodata++;
  }
}

/** The share of lost ones, 0 to 1. */
export function lossRate({ asked, lost }: Pick<Outcomes, 'asked' | 'lost'>): number {
  return asked === 0 ? 0 : lost / asked;
}

/** Those that were answered at all. */
export function answered({ asked, lost }: Outcomes): number {
  return asked - lost;
}
