/** Forwarders that repeat the health checks which an upstream has answered: no reply reaches them. */
import type { RepeatedCheck, RepeatedQuery } from '../observe/asked-again.ts';
import type { Observations } from '../observe/observations.ts';
import { UDP_BYTES } from '../../capture/pair/seen-exchange.ts';
import { refusedStrays } from '../observe/losses.ts';
import { isPrivate } from '../observe/private-address.ts';
import { isServer } from '../observe/roles.ts';
import { keysOf, listed, share } from '../texts.ts';
import {
  FELT_MS,
  FORWARDER_WAITS_MS,
  MIN_CASES,
  MOST,
  NEARLY_ALL,
} from '../thresholds/evidence.ts';
import { SMALL_ANEW } from '../thresholds/transport.ts';
import { excluded, type FoundCause, type FindingKind } from './finding.ts';

export const unheardUpstream: FindingKind = {
  code: 'ND3021',
  title: 'Replies pass this point but do not reach the client, which repeats its queries',
  name: 'replies that are lost between this point and the client',
  inCapture(observed) {
    const { askedAgain } = observed;
    const strays = Map.groupBy(refusedStrays(observed), ({ server }) => server.address);
    const byServer = Map.groupBy(askedAgain.checks, ({ first }) => first.server.address);
    for (const [server, checks] of byServer) {
      const view = observed.servers.get(server);
      // Replies from another address arrive but are rejected.
      if ((strays.get(server)?.length ?? 0) >= MIN_CASES) continue;
      if (view === undefined || checks.length < MIN_CASES) continue;
      // Where queries get lost before the server, checks come again for that reason.
      if (view.outcomes.lost > (1 - NEARLY_ALL) * view.outcomes.asked) continue;
      const clients = keysOf(checks, ({ first }) => first.client.address);
      const anew = clients.reduce((sum, client) => sum + askedAgain.smallAnewOf(client), 0);
      if (anew < MIN_CASES) {
        const large = askedAgain.middleAnew.filter(({ first }) => first.server.address === server);
        // Other replies arrive, so only some get lost.
        if (large.length < MIN_CASES || anew > SMALL_ANEW * large.length) continue;
        return largeOnesLost(server, large, checks);
      }
      if (checks.filter((check) => isOfOne(check, observed)).length >= MOST * checks.length)
        continue;
      // In a capture in a DNS pod the replies have come as far as that pod.
      const isThere = clients.length === 1 && isServer(observed, clients[0]!);
      const pods = clients.filter(
        (client) => !isThere && isPrivate(client) && networkOf(client) !== networkOf(server),
      );
      return {
        title:
          pods.length > 0
            ? `Replies from ${server} do not reach the DNS servers that forward to it, because the return path is missing`
            : this.title,
        severity: 'critical',
        confidence: 0.88,
        seen: [
          `${server} answered ${share(view.outcomes.asked - view.outcomes.lost, view.outcomes.asked)} queries here. ${listed(clients)} repeated ${checks.length} answered health checks (NS for the root, within a second or two) and ${anew} other answered questions. A forwarder stops these checks after one reply.`,
          pods.length > 0 &&
            `The queries come from ${listed(pods)}, which look like pod addresses because they are not in the same network as ${server}.`,
        ],
        why:
          pods.length > 0
            ? `${server} answers, but its replies are lost on the way back. If ${listed(pods)} are pod addresses, the nodes no longer masquerade them. The network of ${server} has no route to pods and drops the replies or sends them elsewhere. External names then fail for all clients, while cluster names do not.`
            : `${server} answers, but its replies are lost on the way back, because of a firewall or a missing route between here and ${listed(clients)}.`,
        fix: [
          pods.length > 0 &&
            'Restore source NAT on the nodes, so that DNS queries arrive here with a node’s address. Check iptables-save -t nat | grep -e MASQUERADE -e ip-masq, the ip-masq-agent (nonMasqueradeCIDRs) and the CNI’s masquerade setting.',
          pods.length > 0 && `Or give the network of ${server} a route to the pod network.`,
          `Capture on the node with ${clients[0]} at the same time to see how far the replies get.`,
        ],
        prove: `run ip route get ${clients[0]} on ${server} and its router; tcpdump -ni any src ${server} and port 53 on the node with ${clients[0]} shows no reply`,
        disproved: `the replies arrive at ${clients[0]}`,
        exchanges: checks.flatMap(({ first, again }) => [first, again]),
      };
    }
    return excluded(
      'no forwarder repeats health checks that were answered, or single failures explain them',
    );
  },
};

/**
 * True if one failed query explains the check: its reply needs fragments, or came late. Other replies
 * then arrive, and end the checks.
 */
function isOfOne({ first, again, isAfterLong }: RepeatedCheck, { slow }: Observations): boolean {
  return (
    isAfterLong ||
    slow.some(
      ({ client, server, sentMs, repliedMs }) =>
        client.address === first.client.address &&
        server === first.server.address &&
        repliedMs - sentMs >= FELT_MS &&
        sentMs < again.sentMs &&
        again.sentMs - sentMs <= FORWARDER_WAITS_MS,
    )
  );
}

/** Only replies that need EDNS are asked again; the checks come again because each of these fails. */
function largeOnesLost(
  server: string,
  large: readonly RepeatedQuery[],
  checks: readonly RepeatedQuery[],
): FoundCause {
  const clients = keysOf(large, ({ first }) => first.client.address);
  const least = Math.min(...large.map(({ first }) => first.replyBytes));
  const names = keysOf(large, ({ first }) => first.name);
  return {
    code: 'ND3012',
    title: 'Large replies are lost in transit because of dropped fragments or a wrong MTU',
    severity: 'critical',
    confidence: 0.85,
    seen: [
      `${listed(clients)} repeated ${large.length} queries that ${server} had answered here over UDP. The replies have ${least} bytes or more and are for ${listed(names)}`,
      `Hardly any query with a reply of up to ${UDP_BYTES} bytes was repeated. The client checked ${server} again ${checks.length} times (NS for the root), as forwarders do after a failure, and these short replies ended the checks.`,
    ],
    why: `Between this point and the client, something drops UDP replies of more than ${UDP_BYTES} bytes, as firewalls without EDNS support (RFC 6891) do. Small answers and answers over TCP get through.`,
    fix: [
      `Find the firewall that limits the length of DNS replies (“message-length maximum ${UDP_BYTES}”), and make it allow 1232 bytes.`,
      `Until then, set bufsize ${UDP_BYTES} in the Corefile, so that longer answers come over TCP.`,
    ],
    prove: `from ${clients[0]}, run ndots query ${names[0]} @${server} +bufsize=1232, then with +bufsize=${UDP_BYTES}; only the second gets an answer, over TCP`,
    disproved: `the replies of ${least} bytes or more arrive at ${clients[0]}`,
    exchanges: large.flatMap(({ first, again }) => [first, again]),
  };
}

/** The first two numbers of an IPv4 address, the first two groups of an IPv6 address. */
function networkOf(address: string): string {
  return address.split(/[.:]/, 2).join('.');
}
