/** Large replies that pass this point but are lost after it, so their questions are repeated. */
import { excluded, unknown, type FindingKind } from './finding.ts';
import { keysOf, listed, share, took } from '../texts.ts';
import type { RepeatedQuery } from '../observe/asked-again.ts';
import type { Observations } from '../observe/observations.ts';
import { isForwarder } from '../observe/roles.ts';
import { needsFragments } from '../../capture/pair/seen-exchange.ts';
import { MOST_TRIES, TIMEOUT_SPREAD_MS } from '../thresholds/transport.ts';
import { FELT_SHARE, MIN_CASES, SPARED_SHARE } from '../thresholds/evidence.ts';

/** Clients repeat questions with large replies but none with small ones. */
export const longAskedAgain: FindingKind = {
  code: 'ND3012',
  title: 'Large replies are lost in transit because of dropped fragments or a wrong MTU',
  name: 'lost fragments or a wrong MTU',
  inCapture(observed, claims) {
    const { askedAgain } = observed;
    const all = [...askedAgain.longRepeats, ...repeatsOfCaches(observed)];
    const onTimeout = repeatsOnTimeout(observed, all);
    const repeats = [...all, ...onTimeout].filter(({ first }) => !claims.isExplained(first));
    if (repeats.length < MIN_CASES)
      return excluded('questions with large replies are not repeated, or there are none');
    const clients = new Set(repeats.map(({ first }) => first.client.address));
    const small = askedAgain
      .unexplained(observed.losses)
      .filter(
        ({ first }) => clients.has(first.client.address) && !needsFragments(first.replyBytes),
      );
    if (small.length > SPARED_SHARE * repeats.length)
      return unknown('questions with small replies are repeated as well');
    const theirs = observed.clients.list.filter(({ address }) => clients.has(address));
    const asked = theirs.reduce((sum, { outcomes }) => sum + outcomes.asked, 0);
    // A program that always uses one id seems to repeat everything.
    if (asked - repeats.length < MIN_CASES) return unknown('only large replies were requested');
    const most = Math.max(...repeats.map(({ first }) => first.replyBytes));
    return {
      severity: repeats.length >= FELT_SHARE * asked ? 'critical' : 'warning',
      confidence: 0.85,
      seen: [
        `${listed([...clients])} repeated ${repeats.length} queries although replies of up to ${most} bytes had passed this point. They are for ${listed(keysOf(repeats, ({ first }) => first.name))}`,
        onTimeout.length === 0
          ? `Of the queries with smaller replies, ${share(small.length, asked)} were repeated.`
          : `Each repeat came ${took(onTimeout[0]!.again.sentMs - onTimeout[0]!.first.sentMs)} after its query, which is the program’s timeout.`,
      ],
      why: 'The server answers, but large packets are lost between this point and the clients, without an ICMP error. The MTU of a link or tunnel is smaller than the hosts assume (an overlay takes up 50 bytes or more). Small packets get through.',
      fix: [
        'On all nodes, set the pod network’s MTU to the link’s MTU minus the overlay’s header.',
        'Limit UDP answers to 1232 bytes and send the rest over TCP: set bufsize 1232 in the Corefile, and open TCP port 53 everywhere.',
        'Allow ICMP “fragmentation needed” on nodes and in security groups.',
      ],
      prove: `ping -M do -s 1400 from ${[...clients][0]} to the DNS pod gets no reply, but -s 1200 does`,
      disproved: 'the large replies arrive at the client’s interface',
      exchanges: repeats.flatMap(({ first, again }) => [first, again]),
    };
  },
};

/** Repeats with a different id from servers with a cache. Programs without a cache query again anyway. */
function repeatsOfCaches(observed: Observations): readonly RepeatedQuery[] {
  const { askedAgain } = observed;
  return askedAgain.longAnew.filter(
    ({ first: { client } }) =>
      isForwarder(observed, client.address) || askedAgain.isProbing(client.address),
  );
}

/**
 * Repeats with a different id from programs that repeat several names after the same time, which is their timeout. A
 * program that queries a name at regular times does so more often.
 */
function repeatsOnTimeout(
  { askedAgain }: Observations,
  known: readonly RepeatedQuery[],
): readonly RepeatedQuery[] {
  const others = askedAgain.allLongAnew.filter((repeat) => !known.includes(repeat));
  return [...Map.groupBy(others, ({ first }) => first.client.address).values()]
    .filter((repeats) => {
      const waits = repeats.map(({ first, again }) => again.sentMs - first.sentMs);
      const byName = Map.groupBy(repeats, ({ first }) => first.name);
      return (
        byName.size >= MIN_CASES &&
        Math.max(...waits) - Math.min(...waits) <= TIMEOUT_SPREAD_MS &&
        [...byName.values()].every((ofName) => ofName.length <= MOST_TRIES)
      );
    })
    .flat();
}
