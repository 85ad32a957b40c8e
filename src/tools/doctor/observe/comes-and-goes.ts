/** Names that disappear and come back at all servers at once. */
import { FEW_DEPARTURES } from '../thresholds/errors.ts';
import type { NameView } from './name-view.ts';

/**
 * True if long runs of found and missing alternate. Servers that disagree are chosen for each
 * socket, so their answers alternate far more often.
 */
export function comesAndGoes(view: NameView): boolean {
  const { outcomes, departures, sockets } = view;
  if (isByServer(view)) return false;
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

/**
 * True if one server always has the name and another one never, during the same time. Where each
 * query passes several servers, their equal answers look like runs.
 */
function isByServer({ servers, serverTimes }: NameView): boolean {
  const ofServers = new Map(serverTimes.map((each) => [each.server, each]));
  const having: number[] = [];
  const lacking: number[] = [];
  for (const [server, { found, nodata, nxdomain }] of servers) {
    const { existsMs = Infinity, missingMs = -Infinity } = ofServers.get(server) ?? {};
    if (found >= FEW_DEPARTURES.expected && nodata + nxdomain === 0) having.push(existsMs);
    if (nxdomain >= FEW_DEPARTURES.expected && found + nodata === 0) lacking.push(missingMs);
  }
  return having.some((sinceMs) => lacking.some((untilMs) => sinceMs < untilMs));
}
