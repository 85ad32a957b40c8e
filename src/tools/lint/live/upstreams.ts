/** Upstream servers, queried to find whether they answer, support TCP and EDNS, and agree if they are used in turn. */
import {
  askOne,
  isMissing,
  isThere,
  question,
  serverText,
  type AskingContext,
} from '../../probe/probe-queries.ts';
import type { ProbeResult, ProbeServer } from '../../probe/network.ts';
import { TYPE } from '../../../server/wire/iana.ts';

export interface UpstreamReplies {
  readonly server: ProbeServer;
  /** Over UDP, with EDNS and 1232 bytes. */
  readonly udp: ProbeResult;
  /** Over UDP without EDNS. Only sent if there was no reply with it. */
  readonly plain: ProbeResult | null;
  readonly tcp: ProbeResult;
}

/** The largest requested datagram. */
const EDNS_SIZE = 1232;

/** Queries the SOA of the forwarded zone, because every server replies to that, if only with REFUSED. */
export async function askUpstream(
  asking: AskingContext,
  server: ProbeServer,
  zone: string,
): Promise<UpstreamReplies> {
  const asked = question(zone, TYPE.SOA, EDNS_SIZE);
  const [udp, tcp] = await Promise.all([
    askOne(asking, server, asked),
    askOne(asking, server, asked, { protocol: 'tcp' }),
  ]);
  const plain = udp.reply === null ? await askOne(asking, server, { ...asked, edns: null }) : null;
  return { server, udp, plain, tcp };
}

/** A missing ability of an upstream. */
export type Shortcoming = 'silent' | 'no-edns' | 'no-tcp';

/** An upstream's fault, or null if there is none. */
export function shortcomingOf({ udp, plain, tcp }: UpstreamReplies): Shortcoming | null {
  if (udp.reply === null) return (plain?.reply ?? null) !== null ? 'no-edns' : 'silent';
  return tcp.reply === null ? 'no-tcp' : null;
}

/** A name that exists on some servers but not on others. */
export interface ViewDifference {
  readonly name: string;
  readonly having: readonly string[];
  readonly lacking: readonly string[];
}

/** Names on which servers disagree even though they are used in turn. */
export async function differingViews(
  asking: AskingContext,
  servers: readonly ProbeServer[],
  names: readonly string[],
): Promise<readonly ViewDifference[]> {
  const differences = await Promise.all(
    names.map(async (name) => {
      const replies = await Promise.all(
        servers.map(async (server) => ({
          server: serverText(server),
          reply: await askOne(asking, server, question(name, TYPE.A, EDNS_SIZE)),
        })),
      );
      const having = replies.filter(({ reply }) => isThere(reply)).map(({ server }) => server);
      const lacking = replies.filter(({ reply }) => isMissing(reply)).map(({ server }) => server);
      return { name, having, lacking };
    }),
  );
  return differences.filter(({ having, lacking }) => having.length > 0 && lacking.length > 0);
}
