/** Clients that a server refuses whatever they ask. */
import type { ClientView, Observations } from './observations.ts';
import { programs } from './roles.ts';
import type { StatedReason } from './reply-faults.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';

/** Whether the client is refused whatever it asks; a query without a reply says nothing of it. */
export function isBarred({ outcomes: { refused: count, asked, lost } }: ClientView): boolean {
  return asked > lost && count >= 0.9 * (asked - lost);
}

/** Whether every reply with this reason (EDE) went to clients that are refused whatever they ask. */
export function isOfBarred({ clients, names }: StatedReason, observed: Observations): boolean {
  const views = clients.list.flatMap(({ key }) => observed.clients.get(key) ?? []);
  const askers = new Set(programs(observed));
  const theirs = views.filter((view) => askers.has(view));
  const asked = new Set(names.list.map(({ name }) => name));
  return asked.size >= MIN_CASES && theirs.length > 0 && theirs.every(isBarred);
}
