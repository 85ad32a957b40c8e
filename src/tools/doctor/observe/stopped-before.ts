/** Losses on the node of a capture, before queries are taken to a DNS pod. */
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import type { Observations } from './observations.ts';
import { MIN_CASES, NEARLY_ALL } from '../thresholds/evidence.ts';
import { LOSS_LATER_HALF } from '../thresholds/transport.ts';

/**
 * Lost queries that the capture shows before the translation of addresses only, where it shows
 * nearly all answered ones on both sides; null: it does not.
 */
export function stoppedBefore(
  { clients, backends }: Observations,
  losses: readonly SeenExchange[],
): { readonly lost: readonly SeenExchange[]; readonly passed: number } | null {
  const before = losses.filter(
    ({ hops, server }) => hops.length === 0 && backends.get(server.address) === undefined,
  );
  const asked = new Set(before.map(({ server }) => server.address));
  // Clients on other nodes are seen on one side only.
  const theirs = new Set(before.map(({ client }) => client.address));
  let [replied, passed] = [0, 0];
  for (const address of theirs) {
    const view = clients.get(address);
    passed += view?.translated ?? 0;
    for (const [server, of] of view?.servers ?? [])
      if (asked.has(server)) replied += of.asked - of.lost;
  }
  if (before.length < LOSS_LATER_HALF * losses.length || before.length < MIN_CASES) return null;
  return replied > 0 && passed >= NEARLY_ALL * replied ? { lost: before, passed } : null;
}
