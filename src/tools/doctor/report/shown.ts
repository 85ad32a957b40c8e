/** The findings and clients of a report, for every face that prints or draws it. */
import { listClients, type ListedClients } from '../observe/client-list.ts';
import { isServer } from '../observe/roles.ts';
import type { Finding } from '../findings/finding.ts';
import type { Observations } from '../observe/observations.ts';
import type { Who } from './who.ts';

/** A finding without its packets. */
export interface ShownFinding extends Omit<Finding, 'exchanges' | 'counted'> {
  readonly who: Who;
  /** Numbers of the first packets that show it. */
  readonly frames: readonly number[];
  /** The number of exchanges that show it. */
  readonly count: number;
}

/** Lists at most `maxFrames` packets. */
export function shownFinding(finding: Finding, who: Who, maxFrames: number): ShownFinding {
  const { exchanges, counted: _, ...rest } = finding;
  const frames = exchanges.map(({ queryFrame }) => queryFrame).filter((frame) => frame > 0);
  return { ...rest, who, frames: frames.slice(0, maxFrames), count: exchanges.length };
}

/** The clients with the most queries. */
export function busiestClients(observed: Observations, most: number): ListedClients {
  const { clients } = observed;
  const counted = clients.list.map(({ address, outcomes, lookups, recognition }) => ({
    ...{ address, lookups, recognition },
    queries: outcomes.asked,
    lost: outcomes.lost,
  }));
  return listClients(counted, most, clients.leftOut, (address) => isServer(observed, address));
}
