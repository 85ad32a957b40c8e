/** Queries that are asked again although they were answered: their replies do not arrive. */
import type { RepeatedQuery } from '../observe/asked-again.ts';
import type { Observations } from '../observe/observations.ts';
import { isServer } from '../observe/roles.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { listed, share, tally, took } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import { FELT_SHARE, MIN_CASES, MIN_QUERIES, NEARLY_ALL } from '../thresholds/evidence.ts';

/** Replies pass here, and the client sends the same question again after its time-out. */
export const askedAgain: FindingKind = {
  code: 'ND3021',
  title: 'Replies pass here and do not reach the client: it asks again',
  name: 'replies that get lost behind this point',
  inCapture(observed, claims) {
    const { asked, lost } = observed.total;
    if (asked - lost === 0) return unknown('no reply was seen');
    const repeats = repeatsOf(observed, claims);
    const answered = asked - lost;
    if (repeats.length < MIN_CASES)
      return excluded(
        `${repeats.length} of ${answered} queries were repeated after their reply had passed`,
      );
    const clients = tally(repeats, ({ first }) => first.client.address);
    const servers = tally(
      repeats,
      ({ first }) => (first.hops.at(-1)?.server ?? first.server).address,
    );
    const names = tally(repeats, ({ first }) => first.name);
    const waits = repeats
      .map(({ first, again }) => again.sentMs - first.sentMs)
      .toSorted((one, other) => one - other);
    const ofOne = clients[0]![1] >= NEARLY_ALL * repeats.length && observed.clients.size > 1;
    const ofServer = servers[0]![1] >= NEARLY_ALL * repeats.length && hasOtherServers(observed);
    const client = clients[0]![0];
    return {
      code: this.code,
      title: this.title,
      severity: repeats.length >= FELT_SHARE * asked ? 'critical' : 'warning',
      confidence: repeats.length >= 2 * MIN_CASES ? 0.88 : 0.75,
      seen: [
        `${lost === 0 ? 'Every query that passed here was answered' : `${share(answered, asked)} queries that passed here were answered`}; ${repeats.length} were repeated, mostly ${took(waits[waits.length >> 1]!)} after the first time, as if no reply had come.`,
        `Most of them are for ${listed(names.map(([name]) => name))}`,
        ...(ofOne ? [`All but ${repeats.length - clients[0]![1]} came from ${client}.`] : []),
        ...(ofServer
          ? [
              `All but ${repeats.length - servers[0]![1]} of the replies came from ${servers[0]![0]}.`,
            ]
          : []),
      ],
      why: 'The server answers, and its replies pass this point. The fault is between here and the clients: a rule, a full table or a link that drops replies, connection tracking without an entry for them, or a checksum that the client’s kernel rejects. In a capture taken at the client, the reply reaches the pod but not the program: a local firewall, a wrong checksum, or a resolver that rejects the reply.',
      fix: [
        `Capture at the client (its pod’s network) and here at the same time: ndots capture join CLIENT.pcap HERE.pcap shows on which side of which hop replies are lost.`,
        'Compare on the client’s node: nstat -az UdpInCsumErrors UdpRcvbufErrors, conntrack -S (drop, insert_failed), interface drops (ip -s link), and rules for traffic from port 53.',
      ],
      prove: `ndots query ${names[0]![0]} from ${client}, with tcpdump in its network: no reply arrives, or one arrives but is not used`,
      disproved: 'a capture at the client shows no repeated query',
      exchanges: repeats.flatMap(({ first, again }) => [first, again]),
    };
  },
};

/** Those that no other finding explains, each once where several hops of it are seen. */
function repeatsOf(observed: Observations, claims: Claims): readonly RepeatedQuery[] {
  const ignored = new Set(observed.questionCase.ignored.map(({ exchange }) => exchange.name));
  const repeats = observed.askedAgain
    .unexplained(observed.losses)
    .filter(({ first }) => !claims.names.has(first.name) && !ignored.has(first.name));
  // A server that gets a query again queries its upstream again.
  const own = repeats.filter(({ first }) => !isServer(observed, first.client.address));
  return own.length > 0 ? own : repeats;
}

function hasOtherServers({ servers, backends }: Observations): boolean {
  const list = backends.size > 1 ? backends.list : servers.list;
  return list.filter(({ outcomes }) => outcomes.asked >= MIN_QUERIES).length > 1;
}
