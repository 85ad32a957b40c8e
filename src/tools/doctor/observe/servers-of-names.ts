/** Servers that were queried for names. */
import type { NameView } from './name-view.ts';
import type { Outcomes } from './outcomes.ts';

/** The servers of these names, behind a Service if they are visible. @param isWanted tests the outcomes of one name */
export function serversOfNames(
  names: readonly NameView[],
  isWanted: (outcomes: Outcomes) => boolean = () => true,
): ReadonlySet<string> {
  const found = new Set<string>();
  for (const { servers } of names)
    for (const [server, outcomes] of servers) if (isWanted(outcomes)) found.add(server);
  return found;
}
