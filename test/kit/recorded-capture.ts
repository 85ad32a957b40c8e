/**
 * Converts recorded runs of real resolvers to packets, so that capture readers can be tested with real clients'
 * queries.
 */
import {
  dnsMessage,
  addressRecord,
  back,
  framed,
  tcpPacket,
  TCP,
  udpPacket,
  type Captured,
  type Ends,
} from './packets.ts';
import type { MeasuredQuery } from './measured.ts';

/** In milliseconds. Replies arrive after this delay, as in the recorded runs, unless the scenario specifies another. */
const REPLY_MS = 20;

/**
 * A run's queries and replies from `startMs` on, for a client at that address.
 * @param firstPort the base for the ports, which the run only numbers
 */
export function recordedPackets(
  queries: readonly MeasuredQuery[],
  address: string,
  startMs: number,
  firstPort = 20_000,
): Captured[] {
  const sent = new Map<string, number>();
  const wrap = (ends: Ends, message: Uint8Array, protocol: string): Uint8Array => {
    if (protocol !== 'tcp') return udpPacket(ends, message);
    const segment = framed(message);
    const key = `${ends.from} ${ends.fromPort} ${ends.to} ${ends.toPort}`;
    const before = sent.get(key) ?? 0;
    sent.set(key, before + segment.length);
    return tcpPacket(ends, 1 + before, TCP.PSH | TCP.ACK, segment);
  };
  return queries
    .flatMap(([ms, protocol, server, port, id, name, type, edns, , answer]): Captured[] => {
      const ends: Ends = { from: address, fromPort: firstPort + port, to: server, toPort: 53 };
      const cookie = { code: 10, data: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8) };
      const [, size] = /edns (\d+)/.exec(edns) ?? [];
      const query = dnsMessage(name, type, {
        id,
        edns:
          size === undefined
            ? null
            : {
                udpSize: Number(size),
                version: 0,
                dnssecOk: false,
                options: edns.includes('opt10') ? [cookie] : [],
              },
      });
      const asked: Captured = { timeMs: startMs + ms, bytes: wrap(ends, query, protocol) };
      const reply = replyTo(name, type, id, answer);
      if (reply === null) return [asked];
      return [asked, { timeMs: startMs + ms + REPLY_MS, bytes: wrap(back(ends), reply, protocol) }];
    })
    .toSorted((one, other) => one.timeMs - other.timeMs);
}

function replyTo(name: string, type: string, id: number, answer: string): Uint8Array | null {
  if (answer === 'DROP' || answer === 'RACE' || answer === 'CLOSED' || answer === '') return null;
  const rcodes: Readonly<Record<string, number>> = {
    FORMERR: 1,
    SERVFAIL: 2,
    NXDOMAIN: 3,
    NOTIMP: 4,
    REFUSED: 5,
  };
  const count = Number(/^(\d+) rr/.exec(answer)?.[1] ?? 0);
  const known = type === 'A' || type === 'AAAA';
  return dnsMessage(name, type, {
    id,
    reply: true,
    rcode: rcodes[answer.split(/[ (]/)[0]!] ?? 0,
    ...(answer.startsWith('TC') ? { flags: 0x8380 } : {}),
    answer: Array.from({ length: known ? count : 0 }, (_, n) =>
      addressRecord(name, type === 'A' ? `192.0.2.${n}` : `2001:db8::${n}`),
    ),
  });
}
