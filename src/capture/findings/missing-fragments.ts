import { excluded, share, unknown, type Rule } from './finding.ts';

/** Large replies do not arrive: fragments are dropped, or packets are too big for a link on the way. */
export const missingFragments: Rule = {
  code: 'ND3012',
  title: 'Large replies get lost on the way (fragments, MTU)',
  name: 'lost fragments or a wrong MTU',
  check(observed, claims) {
    const { missingFragments: missing, tooBig } = observed;
    if (missing + tooBig === 0) {
      const large = observed.losses.some(({ udpSize }) => udpSize > 1232);
      return large
        ? excluded('no fragment is missing, and no packet was too big')
        : unknown('no large reply was asked for');
    }
    // Who lost fragments offered to take more than fits into a packet.
    const losses = claims.open.filter(({ udpSize }) => udpSize > 1232 || udpSize === 0);
    const large = losses.filter(({ udpSize }) => udpSize > 1232);
    // Of a packet that was too big the error says whose it was.
    const outgrown = claims.open.filter(
      ({ client }) => observed.outgrown.get(`${client.address} ${client.port}`) === true,
    );
    const guessed = large.length > 0 ? large : losses;
    const theirs = [...new Set([...outgrown, ...(missing > 0 ? guessed : [])])];
    claims.take(theirs);
    return {
      code: this.code,
      title: this.title,
      severity: theirs.length > 0 ? 'critical' : 'warning',
      confidence: theirs.length > 0 ? 0.9 : 0.7,
      seen: [
        ...(missing > 0 ? [`Of ${missing} replies only some fragments arrived.`] : []),
        ...(tooBig > 0 ? [`${tooBig} packets were too big for a link on the way (ICMP).`] : []),
        ...(theirs.length > 0
          ? [
              `${share(theirs.length, observed.total.asked)} queries got no whole reply${outgrown.length > 0 ? `; of ${outgrown.length} it was too big for a link` : ''}.`,
            ]
          : []),
      ],
      why: 'The client allows replies that are larger than a packet may be on some link (an overlay takes 50 bytes or more away), so that they are cut into fragments; a firewall or the overlay drops fragments. The client waits for its time-out, although the server answered.',
      fix: [
        'Let servers answer with 1232 bytes at most and the rest by TCP: bufsize 1232 in the Corefile (CoreDNS’s and the node-local cache’s), and TCP port 53 open everywhere.',
        'Set the MTU of the pods’ network to what the overlay leaves.',
      ],
      prove:
        'ndots query NAME TXT +bufsize=4096, then +bufsize=1232: the first gets nothing, the second comes by TCP; ping -M do -s 1400 between pods of two nodes',
      disproved: 'replies of 4096 bytes arrive between the same two hosts',
      exchanges: theirs,
    };
  },
};
