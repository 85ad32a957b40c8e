/** Clients that get truncated replies and never retry over TCP. */
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { SURE_RESOLVER } from '../thresholds/evidence.ts';
import { TCP_PER_TRUNCATED } from '../thresholds/transport.ts';
import type { ClientView } from './client-view.ts';
import type { Observations } from './observations.ts';

export interface UdpOnlyClient {
  readonly client: ClientView;
  readonly own: readonly SeenExchange[];
}

export function udpOnlyClients({
  truncated,
  clients,
  connections,
}: Observations): readonly UdpOnlyClient[] {
  const byClient = Map.groupBy(truncated, ({ client }) => client.address);
  return clients.list.flatMap((client) => {
    const own = byClient.get(client.address) ?? [];
    const asked = connections.of(client.address) + client.byTcp;
    return own.length > 0 && asked < TCP_PER_TRUNCATED * own.length ? [{ client, own }] : [];
  });
}

/** True if the client uses the records that arrived, and there were always some. */
export function usesPartialAnswers({ client, own }: UdpOnlyClient): boolean {
  return kindOf(client) === 'musl' && own.every(({ answers }) => answers > 0);
}

/**
 * True if lookups of this client fail. Old musl uses the records that arrived.
 * @param hasTcp whether the capture contains DNS over TCP
 */
export function failsWithoutTcp({ client, own }: UdpOnlyClient, hasTcp: boolean): boolean {
  return (
    kindOf(client) === 'evdns' ||
    (own.length > 1 &&
      own.every(({ answers }) => answers === 0) &&
      (hasTcp || kindOf(client) === 'musl'))
  );
}

/**
 * True if the capture shows that this client does not use TCP: its resolver is known for that, or its
 * queries are seen both before and after the address translation, so its connections would be, too.
 */
export function isSeenWithoutTcp({ client, own }: UdpOnlyClient): boolean {
  const isKnown = ['evdns', 'musl'].includes(kindOf(client));
  return isKnown || (!alwaysRetries({ client }) && own.some(({ hops }) => hops.length > 0));
}

/** True for glibc, Go and c-ares, which retry truncated answers over TCP. */
export function alwaysRetries({ client }: Pick<UdpOnlyClient, 'client'>): boolean {
  return ['glibc', 'go', 'c-ares'].includes(kindOf(client));
}

/** The client's resolver; empty if it is uncertain. */
function kindOf({ recognition }: ClientView): string {
  const best = recognition.best;
  return best !== null && best.either >= SURE_RESOLVER ? best.kind : '';
}
