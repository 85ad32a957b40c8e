/** Names that disappear and come back at all servers at once. */
import { FEW_DEPARTURES } from '../thresholds/errors.ts';
import type { NameView } from './name-view.ts';

/**
 * True if long runs of found and missing alternate. Servers that disagree are chosen for each
 * socket, so their answers alternate far more often.
 */
export function comesAndGoes({ outcomes, departures, sockets }: NameView): boolean {
  const { found, nodata, nxdomain } = outcomes;
  const missing = nodata + nxdomain;
  const replies = found + missing;
  // Departures of a name that chance draws for each socket, and their variance.
  const draws = Math.min(replies, sockets);
  const both = (found / replies) * (missing / replies);
  const expected = draws * both;
  const deviation = Math.sqrt(expected * (1 - 3 * both));
  return (
    departures > 0 &&
    expected >= FEW_DEPARTURES.expected &&
    departures <= expected - FEW_DEPARTURES.deviations * deviation
  );
}
