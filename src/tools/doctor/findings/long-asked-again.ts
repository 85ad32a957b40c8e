/** Large replies that pass here, and whose questions are asked again: they get lost behind it. */
import { excluded, unknown, type FindingKind } from './finding.ts';
import { keysOf, listed, share } from '../texts.ts';
import type { RepeatedQuery } from '../observe/asked-again.ts';
import type { Observations } from '../observe/observations.ts';
import { isForwarder } from '../observe/roles.ts';
import { needsFragments } from '../../capture/pair/seen-exchange.ts';
import { FELT_SHARE, MIN_CASES, SPARED_SHARE } from '../thresholds/evidence.ts';

/** Clients repeat questions with large replies, and none with small ones. */
export const longAskedAgain: FindingKind = {
  code: 'ND3012',
  title: 'Large replies get lost on the way (fragments, MTU)',
  name: 'lost fragments or a wrong MTU',
  inCapture(observed) {
    const { askedAgain } = observed;
    const repeats = [...askedAgain.longRepeats, ...repeatsOfCaches(observed)];
    if (repeats.length < MIN_CASES)
      return excluded('questions with large replies are not asked again, or there are none');
    const clients = new Set(repeats.map(({ first }) => first.client.address));
    const small = askedAgain
      .unexplained(observed.losses)
      .filter(
        ({ first }) => clients.has(first.client.address) && !needsFragments(first.replyBytes),
      );
    if (small.length > SPARED_SHARE * repeats.length)
      return unknown('questions with small replies are asked again as well');
    const theirs = observed.clients.list.filter(({ address }) => clients.has(address));
    const asked = theirs.reduce((sum, { outcomes }) => sum + outcomes.asked, 0);
    // A program that uses one id asks for everything again.
    if (asked - repeats.length < MIN_CASES)
      return unknown('nothing but large replies was asked for');
    const most = Math.max(...repeats.map(({ first }) => first.replyBytes));
    return {
      code: this.code,
      title: this.title,
      severity: repeats.length >= FELT_SHARE * asked ? 'critical' : 'warning',
      confidence: 0.85,
      seen: [
        `${repeats.length} questions of ${listed([...clients])} with replies of up to ${most} bytes of DNS were asked again, although the reply had passed here: ${listed(keysOf(repeats, ({ first }) => first.name))}`,
        `Of questions with smaller replies ${share(small.length, asked)} were.`,
      ],
      why: 'The server answers, and large packets get lost between this point and the clients, without an ICMP error: a link or a tunnel whose MTU is smaller than the hosts think (an overlay takes 50 bytes or more away). Small packets pass.',
      fix: [
        'Set the MTU of the pods’ network to what the overlay leaves, on all nodes alike.',
        'Let servers answer with 1232 bytes at most and the rest by TCP: bufsize 1232 in the Corefile, and TCP port 53 open everywhere.',
        'Let ICMP “fragmentation needed” pass, on nodes and in security groups.',
      ],
      prove: `ping -M do -s 1400 from ${[...clients][0]} to the DNS pod gets no reply, and -s 1200 does`,
      disproved: 'the large replies arrive at the client’s interface',
      exchanges: repeats.flatMap(({ first, again }) => [first, again]),
    };
  },
};

/** Repeats with another id, of servers with a cache. Programs without a cache repeat such queries. */
function repeatsOfCaches(observed: Observations): readonly RepeatedQuery[] {
  const { askedAgain } = observed;
  return askedAgain.longAnew.filter(
    ({ first: { client } }) =>
      isForwarder(observed, client.address) || askedAgain.isProbing(client.address),
  );
}
