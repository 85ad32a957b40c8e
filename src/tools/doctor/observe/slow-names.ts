/** Names whose replies take long. */
import { commonZone } from '../../../server/wire/within-zone.ts';
import { latencyOf, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { keysOf } from '../texts.ts';
import { FELT_MS, MIN_CASES, MOST } from '../thresholds/evidence.ts';
import { registeredDomainOf } from './domain-of-name.ts';
import type { Observations } from './observations.ts';

export function slowReplies({ affected }: Observations): readonly SeenExchange[] {
  return affected
    .flatMap(({ exchanges }) => exchanges)
    .filter((each) => (latencyOf(each) ?? 0) >= FELT_MS);
}

/** The names in these replies, or the zone that they have in common. */
export function slowNames(observed: Observations): readonly string[] {
  const slow = slowReplies(observed);
  if (slow.length < MIN_CASES) return [];
  const [top] = keysOf(slow, ({ name }) => registeredDomainOf(name));
  const ofTop = slow.filter(({ name }) => registeredDomainOf(name) === top);
  // A burst of lookups also slows down others.
  const names = keysOf(ofTop.length >= MOST * slow.length ? ofTop : slow, ({ name }) => name);
  const zone = names.reduce(commonZone);
  return names.length > 1 && zone.split('.').length > 2 ? [`names in ${zone}`] : names;
}
