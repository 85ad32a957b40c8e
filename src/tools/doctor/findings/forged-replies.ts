/** Two replies with different addresses to one query, because a device on the path forges answers. */
import type { ReplyContent } from '../observe/second-replies.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';
import { keysOf, listed, share, took } from '../texts.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';

/** The first reply wins, because a resolver ignores the second one. */
export const forgedReplies: FindingKind = {
  code: 'ND4040',
  title: 'Queries get two conflicting replies because a device on the path forges answers',
  name: 'forged replies',
  inCapture({ secondReplies: { list }, total }, claims) {
    if (total.asked === 0) return unknown('no query was seen');
    if (list.length < MIN_CASES)
      return excluded('no query got two replies with different addresses');
    const names = keysOf(list, ({ exchange }) => exchange.name);
    const servers = keysOf(list, ({ exchange }) => exchange.server.address);
    for (const name of names) claims.names.add(name);
    const { exchange, first, second } = list[0]!;
    return {
      severity: 'critical',
      confidence: 0.96,
      seen: [
        `${share(list.length, total.asked)} queries to ${listed(servers)} got two replies with different addresses. They are for ${listed(names)}`,
        `For example, ${exchange.name} got ${textOf(first)} first, then ${textOf(second)}.`,
      ],
      why: 'Both replies have the server’s address and the query’s port and id, but only one can be genuine. A device that sees the queries (a firewall, a provider, an attacker) sends a false reply ahead of the true one. The resolver accepts and caches the first one. A false reply often arrives sooner than the server could answer, and has an unusual TTL or AA bit.',
      fix: [
        `Reach ${listed(servers)} over TLS (forward . tls://…), so that no device on the path can answer, or use an upstream inside your own network.`,
        'Ask the network’s owner which device changes DNS, and flush the caches afterwards.',
      ],
      prove: `tcpdump -n -i any host ${servers[0]!} and port 53, and ndots query ${names[0]!} @${servers[0]!}: two replies with the same id arrive`,
      disproved: 'the replies come from two servers behind one address that each got the query',
      exchanges: list.map((each) => each.exchange),
    };
  },
};

function textOf({ addresses, ttl, isAuthoritative, tookMs }: ReplyContent): string {
  return `${addresses.join(' ')} after ${took(tookMs)} (TTL ${ttl} s${isAuthoritative ? ', AA' : ''})`;
}
