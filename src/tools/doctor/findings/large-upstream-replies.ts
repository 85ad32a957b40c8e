/** Names with large answers that fail between the clients' server and its upstream. */
import { RCODE } from '../../../server/wire/iana.ts';
import { latencyOf } from '../../capture/pair/seen-exchange.ts';
import { keysOf, listed } from '../texts.ts';
import { LONG_WAIT_MS, MIN_CASES, UNFRAGMENTED_BYTES } from '../thresholds/evidence.ts';
import { excluded, type FindingKind } from './finding.ts';

/** SERVFAIL after a wait with a large EDNS size, truncated and then whole over TCP with a small one. */
export const largeUpstreamReplies: FindingKind = {
  code: 'ND3012',
  title: 'Large replies are lost in transit because of dropped fragments or a wrong MTU',
  name: 'lost fragments or a wrong MTU',
  inCapture(observed, claims) {
    const small = new Set(
      observed.truncated.flatMap(({ udpSize, name, type }) =>
        udpSize <= UNFRAGMENTED_BYTES ? `${type} ${name}` : [],
      ),
    );
    const failed = observed.affectedExchanges(
      (each) =>
        each.rcode === RCODE.SERVFAIL &&
        each.udpSize > UNFRAGMENTED_BYTES &&
        (latencyOf(each) ?? 0) >= LONG_WAIT_MS &&
        !claims.names.has(each.name) &&
        small.has(`${each.type} ${each.name}`) &&
        (observed.names.get(each.name, each.type)?.longest ?? 0) > UNFRAGMENTED_BYTES,
    );
    if (failed.length < MIN_CASES)
      return excluded(
        'no answer fails when large that arrives when it is truncated and repeated over TCP',
      );
    const names = keysOf(failed, ({ name }) => name);
    const server = keysOf(failed, (each) => each.server.address)[0]!;
    const size = Math.max(...failed.map(({ udpSize }) => udpSize));
    for (const name of names) claims.names.add(name);
    return {
      severity: 'critical',
      confidence: 0.85,
      seen: [
        `${failed.length} queries for ${listed(names)} with an EDNS size of up to ${size} bytes got SERVFAIL from ${server} after a second or more. With ${UNFRAGMENTED_BYTES} bytes or fewer, the answer is truncated and then arrives whole over TCP.`,
      ],
      why: `${server} passes the client’s EDNS size on to its upstream. The upstream’s large UDP replies are fragmented, and the fragments are lost between the two, so ${server} times out and answers SERVFAIL.`,
      fix: [
        'Set bufsize 1232 in the Corefile, so that the upstream truncates and the server fetches the rest over TCP.',
        'Allow fragments between the DNS pods and the upstream, or set max-udp-size 1232 on the upstream.',
      ],
      prove: `run ndots query ${names[0]!} @${server} +bufsize=4096, then the same with +bufsize=1232; the first fails, and the second gets its answer over TCP`,
      disproved:
        'a capture at the DNS pod shows that the upstream’s large replies arrive there whole',
      exchanges: failed,
    };
  },
};
