/** Clients that give up before the reply arrives. */
import { latencyOf, type SeenExchange } from '../../capture/pair/seen-exchange.ts';
import { waitedForLostTest } from '../observe/consequences.ts';
import type { Observations } from '../observe/observations.ts';
import { isFailure } from '../observe/outcomes.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { keysOf, listed, sentence, share, took, tookFrom } from '../texts.ts';
import { isServer } from '../observe/roles.ts';
import { MIN_CASES, RARE_SHARE } from '../thresholds/evidence.ts';

export const shortPatience: FindingKind = {
  code: 'ND2012',
  title: 'Clients give up before the reply arrives, so it reaches a closed port',
  name: 'clients that give up too soon',
  inCapture(observed, claims) {
    const isWaiting = waitedForLostTest(observed);
    const rejected = observed.givenUp.rejected.filter(
      ({ exchange }) =>
        !claims.isOfSilence(exchange) &&
        !claims.late.has(exchange.server.address) &&
        !claims.names.has(exchange.name) &&
        // Waiting longer for a failure does not help.
        !isFailure(exchange) &&
        // A forwarder queries several servers at once and drops late replies on purpose.
        !isServer(observed, exchange.client.address) &&
        !isWaiting(exchange) &&
        !hasOtherAnswer(exchange, observed),
    );
    if (observed.total.asked === 0) return unknown('no query was seen');
    const { slow } = observed;
    if (rejected.length < MIN_CASES) {
      if (slow.length === 0) return excluded('no reply is late');
      return unknown('no ICMP error shows that a late reply was rejected (capture ICMP too)');
    }
    const waits = rejected.map(({ waitedMs }) => waitedMs).filter(Number.isFinite);
    const latencies = rejected
      .map(({ exchange }) => latencyOf(exchange)!)
      .toSorted((one, other) => one - other);
    const middle = latencies[latencies.length >> 1]!;
    const least = latencies[0]!;
    const patience = waits.length === 0 ? null : Math.min(...waits);
    const names = keysOf(rejected, ({ exchange }) => exchange.name);
    const clients = keysOf(rejected, ({ exchange }) => exchange.client.address);
    const servers = keysOf(rejected, ({ exchange }) => exchange.server.address);
    for (const server of servers) claims.late.add(server);
    const seconds = Math.ceil(latencies.at(-1)! / 1000) + 1;
    return {
      severity: rejected.length >= RARE_SHARE * observed.lookups ? 'critical' : 'warning',
      confidence: 0.93,
      seen: [
        sentence(
          `${share(rejected.length, observed.total.asked)} replies reached a port that their client had closed (ICMP port unreachable). They are for ${listed(names)}`,
        ),
        `These replies took ${tookFrom(least, latencies.at(-1)!)}, half of them ${took(middle)} or more. They were sent by ${listed(servers)} to ${listed(clients)}.`,
        patience === null
          ? `The clients give up in less than ${took(least)}.`
          : `The clients repeat the query after ${took(patience)}.`,
      ],
      why: 'The server for these names takes longer than the client waits. Each reply comes after the client has closed its socket, so the lookup fails. resolv.conf sets how long glibc and musl wait (options timeout and attempts, by default 5 s and 2). c-ares and Go have their own settings, and programs often limit the time for a lookup.',
      fix: [
        `Make these clients wait longer, with options timeout:${Math.max(2, seconds)} attempts:2 in the pod’s dnsConfig or with the program’s own time limit.`,
        `Find out why the upstream takes ${took(middle)} for ${listed(names)} and make it faster. A cache (or prefetch) in front of it answers all but the first query at once.`,
      ],
      prove: `ndots query ${names[0]!} @${servers[0]!} takes about ${took(middle)}; compare with the options in the pod’s /etc/resolv.conf`,
      disproved:
        'the client’s time-out is longer than the server takes (then something else closed its port)',
      exchanges: rejected.map(({ exchange }) => exchange),
    };
  },
};

/** True if the client queries several servers and another one answers (musl queries all at once). */
function hasOtherAnswer(
  { client, server, name, type }: SeenExchange,
  { clients, names }: Observations,
): boolean {
  const asked = clients.get(client.address)?.servers;
  const answered = names.get(name, type)?.answeredMs;
  return [...(asked?.keys() ?? [])].some(
    (other) => other !== server.address && answered?.has(other) === true,
  );
}
