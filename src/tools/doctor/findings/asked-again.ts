/** Queries that are repeated although they were answered, because their replies do not arrive. */
import { finalServer } from '../../capture/pair/seen-exchange.ts';
import type { RepeatedQuery } from '../observe/asked-again.ts';
import { median } from '../observe/median.ts';
import type { Observations } from '../observe/observations.ts';
import { isServer } from '../observe/roles.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { keysOf, listed, share, tally, took } from '../texts.ts';
import { type Claims } from '../observe/claims.ts';
import { FELT_SHARE, MIN_CASES, MIN_QUERIES, NEARLY_ALL } from '../thresholds/evidence.ts';

export const askedAgain: FindingKind = {
  code: 'ND3021',
  title: 'Replies pass this point but do not reach the client, which repeats its queries',
  name: 'replies that are lost between this point and the client',
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
    const servers = tally(repeats, ({ first }) => finalServer(first).address);
    const names = keysOf(repeats, ({ first }) => first.name);
    const waits = repeats.map(({ first, again }) => again.sentMs - first.sentMs);
    const [client, byClient] = clients[0]!;
    const [server, byServer] = servers[0]!;
    const ofOne = byClient >= NEARLY_ALL * repeats.length && observed.clients.size > 1;
    const ofServer = byServer >= NEARLY_ALL * repeats.length && hasOtherServers(observed);
    return {
      severity: repeats.length >= FELT_SHARE * asked ? 'critical' : 'warning',
      confidence: repeats.length >= 2 * MIN_CASES ? 0.88 : 0.75,
      seen: [
        `${lost === 0 ? 'Every query that passed here was answered' : `${share(answered, asked)} queries that passed here were answered`}, but ${repeats.length} were repeated, typically ${took(median(waits))} later, as if no reply had come.`,
        `The most frequent repeated names are ${listed(names)}`,
        ofOne && `All but ${repeats.length - byClient} came from ${client}.`,
        ofServer && `All but ${repeats.length - byServer} of the replies came from ${server}.`,
      ],
      why: 'The server answers, and its replies pass this point. The fault is between here and the clients. A rule, a full table or a link drops the replies, connection tracking has no entry for them, or the client’s kernel rejects their checksum. If the capture was taken at the client, the reply reaches the pod but not the program. A local firewall drops it, its checksum is wrong, or the resolver rejects it.',
      fix: [
        `Capture here and at the client (in its pod’s network) at the same time. ndots capture join CLIENT.pcap HERE.pcap then shows where replies are lost.`,
        'On the client’s node, check nstat -az UdpInCsumErrors UdpRcvbufErrors, conntrack -S (drop, insert_failed), interface drops (ip -s link), and the rules for traffic from port 53.',
      ],
      prove: `run ndots query ${names[0]} at ${client}, with tcpdump in its network; no reply arrives, or one arrives but is ignored`,
      disproved: 'a capture at the client shows no repeated query',
      exchanges: repeats.flatMap(({ first, again }) => [first, again]),
    };
  },
};

/** Repeats that no other finding explains. A query that is seen at several hops counts once. */
function repeatsOf(observed: Observations, claims: Claims): readonly RepeatedQuery[] {
  const ignored = new Set(observed.questionCase.ignored.map(({ exchange }) => exchange.name));
  const repeats = observed.askedAgain
    .unexplained(observed.losses)
    .filter(
      ({ first }) =>
        !claims.names.has(first.name) && !ignored.has(first.name) && !claims.isExplained(first),
    );
  // A server that receives a repeated query repeats its own query to the upstream.
  const own = repeats.filter(({ first }) => !isServer(observed, first.client.address));
  return own.length > 0 ? own : repeats;
}

function hasOtherServers({ servers, backends }: Observations): boolean {
  const list = backends.size > 1 ? backends.list : servers.list;
  return list.filter(({ outcomes }) => outcomes.asked >= MIN_QUERIES).length > 1;
}
