/** Failed queries, selected by name. */
import { RCODE } from '../../../server/wire/iana.ts';
import type { Observations } from './observations.ts';
import { isFailure } from './outcomes.ts';

/** Queries for these names that failed with an error other than REFUSED. */
export function failedExchanges(
  observed: Observations,
  wanted: (name: string) => boolean,
): Observations['losses'] {
  return observed.affectedExchanges(
    (each) => each.rcode !== RCODE.REFUSED && isFailure(each) && wanted(each.name),
  );
}
