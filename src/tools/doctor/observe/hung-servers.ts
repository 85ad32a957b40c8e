/** Servers whose kernel accepts connections while their process answers nothing. */
import { answered } from './outcomes.ts';
import type { Observations } from './observations.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';

/** A sentence with the evidence that this server’s process hangs; null if there is none. */
export function hungText(
  { connections, servers, backends, lastMs }: Observations,
  address: string,
): string | null {
  const view = backends.get(address) ?? servers.get(address);
  if (view === undefined || answered(view.outcomes) > 0 || view.tcp.lost === 0) return null;
  const accepted = connections
    .at(lastMs)
    .reduce((sum, pair) => (pair.server === address ? sum + pair.accepted : sum), 0);
  if (accepted + view.tcp.lost < MIN_CASES || accepted === 0) return null;
  return `${accepted} TCP connections to port 53 of ${address} were accepted, and ${view.tcp.lost} queries over them got no reply either, so its kernel works and is reachable, but its process does not read queries.`;
}
