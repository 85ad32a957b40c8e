/** Clients that a server refuses for every query. */
import type { ClientView } from './client-view.ts';
import type { Observations } from './observations.ts';
import { programs } from './roles.ts';
import type { StatedReason } from './reply-faults.ts';
import { MIN_CASES, NEARLY_ALL } from '../thresholds/evidence.ts';

/** True if the client is refused for every name. Unanswered queries do not count. */
export function isBarred({ outcomes: { refused: count, asked, lost } }: ClientView): boolean {
  return asked > lost && count >= NEARLY_ALL * (asked - lost);
}

/** True if every reply with this reason (EDE) went to clients that are refused for every name. */
export function isOfBarred({ clients, names }: StatedReason, observed: Observations): boolean {
  const views = clients.list.flatMap(({ key }) => observed.clients.get(key) ?? []);
  const known = new Set(programs(observed));
  const theirs = views.filter((view) => known.has(view));
  const asked = new Set(names.list.map(({ name }) => name));
  return asked.size >= MIN_CASES && theirs.length > 0 && theirs.every(isBarred);
}
