/** Source ports that queries to a server have after their translation (masquerading). */
import type { FlowView } from './flow-view.ts';
import type { Observations } from './observations.ts';
import { NEARLY_ALL } from '../thresholds/evidence.ts';
import { FEW_PORTS } from '../thresholds/transport.ts';

/** The few ports of one address that stands for others towards a server. */
export interface PortRange {
  readonly server: string;
  readonly address: string;
  readonly least: number;
  readonly most: number;
  readonly ports: number;
  readonly queries: number;
}

/**
 * Addresses that query a server from few ports, again and again or side by side. They do so as often
 * as clients that lose queries are answered: these are queries of others, translated.
 */
export function narrowTranslations({ flows, servers }: Observations): readonly PortRange[] {
  return servers.list.flatMap(({ address: server }) => {
    const byClient = Map.groupBy(flows.to(server), ({ client }) => client);
    if (byClient.size < 2) return [];
    const replies = [...byClient].map(([client, theirs]) => [client, sumOf(theirs)] as const);
    const all = replies.reduce((sum, [, { answered }]) => sum + answered, 0);
    const allOfLosing = replies.reduce((sum, [, each]) => sum + answeredIfLosing(each), 0);
    return replies.flatMap(([address, own]) => {
      const { asked, answered } = own;
      const ports = byClient.get(address)!.map(({ port }) => port);
      const [least, most] = [Math.min(...ports), Math.max(...ports)];
      const others = all - answered;
      const isNarrow =
        ports.length > 1 &&
        ports.length <= FEW_PORTS.most &&
        (asked >= FEW_PORTS.timesEach * ports.length || ports.length >= FEW_PORTS.notChance) &&
        ports.length >= FEW_PORTS.dense * (most - least + 1);
      // Clients that lose nothing may be of other nodes.
      const ofLosing = allOfLosing - answeredIfLosing(own);
      const isCopy = others >= NEARLY_ALL * answered && answered >= NEARLY_ALL * ofLosing;
      return isNarrow && isCopy
        ? { server, address, least, most, ports: ports.length, queries: asked }
        : [];
    });
  });
}

interface Replies {
  readonly asked: number;
  readonly answered: number;
}

/** The replies to a client that loses queries, or 0 if it loses none. */
function answeredIfLosing({ asked, answered }: Replies): number {
  return asked === answered ? 0 : answered;
}

function sumOf(flows: readonly FlowView[]): Replies {
  const asked = flows.reduce((sum, flow) => sum + flow.asked, 0);
  return { asked, answered: asked - flows.reduce((sum, flow) => sum + flow.lost, 0) };
}
