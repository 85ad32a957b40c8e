/** One client that sends more queries than all others together while queries are lost. */
import { sentSpan, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import type { Observations } from './observations.ts';
import { answered } from './outcomes.ts';
import { FLOOD } from '../thresholds/lateness.ts';

/** A client, and its queries in that time. */
export interface Flooder {
  readonly address: string;
  readonly asked: number;
  readonly all: number;
  readonly perSecond: number;
}

/** The client whose flood of nonexistent names makes the others lose queries; null if there is none. */
export function flooderOf(observed: Observations, losses: readonly SeenExchange[]): Flooder | null {
  const { clients } = observed;
  const { fromMs, toMs } = sentSpan(losses);
  const [fromS, toS] = [Math.floor(fromMs / 1000), Math.floor(toMs / 1000)];
  const servers = new Set(losses.map(({ server }) => server.address));
  const counted = clients.list.map((client) => ({ client, asked: 0 }));
  for (const each of counted)
    for (const [server, { rates }] of each.client.servers)
      if (servers.has(server))
        for (const [second, { asked }] of rates?.history ?? [])
          if (second >= fromS && second <= toS) each.asked += asked;
  const all = counted.reduce((sum, { asked }) => sum + asked, 0);
  const [most] = counted.toSorted((one, other) => other.asked - one.asked);
  if (most === undefined) return null;
  const { outcomes, address } = most.client;
  const perSecond = most.asked / (toS - fromS + 1);
  const isFlood =
    counted.filter(({ asked }) => asked > 0).length > 1 &&
    most.asked > FLOOD.share * all &&
    perSecond >= FLOOD.perSecond &&
    outcomes.nxdomain >= FLOOD.absent * answered(outcomes);
  return isFlood ? { address, asked: most.asked, all, perSecond } : null;
}
