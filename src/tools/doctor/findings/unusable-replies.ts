/**
 * Replies that arrive, and that their clients reject or get nothing from: cut without TC, with
 * another client's cookie, with records of another name, class or order, or without an end.
 */
import { addressTypes, typeName } from '../../../server/wire/iana.ts';
import { BoundedMap } from '../observe/bounded-map.ts';
import type { Claims } from '../observe/claims.ts';
import type { FaultyReplies } from '../observe/reply-faults.ts';
import type { ReplyFault } from '../observe/reply-shape.ts';
import type { Observations } from '../observe/observations.ts';
import { excluded, unknown, type FoundCause, type FindingKind } from './finding.ts';
import { fromTo, listed, sentence, share, shownBy } from '../texts.ts';
import { REJECTED_COOKIES, REJECTED_SHARE } from '../thresholds/errors.ts';
import { FELT_SHARE, MIN_CASES, MOST } from '../thresholds/evidence.ts';

interface Kind {
  readonly code: string;
  readonly title: string;
  readonly name: string;
  /** `came cut`: what follows "N of M replies from S". */
  readonly did: string;
  readonly why: string;
  fix(servers: string): readonly string[];
  prove(server: string, name: string): string;
  readonly disproved: string;
  /** Severity if programs do not fail; default `warning`. */
  readonly unfelt?: 'info';
  /** Confidence if programs fail; default 0.93. */
  readonly confidence?: number;
  /** True: programs fail (the default). False: a warning. Null: no finding. */
  isFelt?(replies: FaultyReplies, observed: Observations): boolean | null;
}

/** True if clients reject these: they retry with the same id. */
function isRejected({ count, again }: FaultyReplies): boolean {
  return again >= MIN_CASES && again >= REJECTED_SHARE * count;
}

/** True if no reply for most of these names has an address. */
function isWithoutAddress({ names }: FaultyReplies, observed: Observations): boolean {
  const list = [...new Set(names.list.map(({ name }) => name))];
  const failing = list.filter((name) => !hasAddress(name, observed));
  return failing.length > 0.5 * list.length;
}

/** True if one family of a name has an address at times, and none at others. */
function isAtTimes({ names }: FaultyReplies, observed: Observations): boolean {
  return names.list.some(({ name, type, count }) => {
    const view = observed.names.get(name, type);
    // A reply with a CNAME alone counts as found.
    const hasAddresses = view !== undefined && view.addresses.length > 0;
    return count >= MIN_CASES && hasAddresses && view.outcomes.found > count;
  });
}

function hasAddress(name: string, { names, replyFaults }: Observations): boolean {
  return addressTypes.some((type) => {
    const found = names.get(name, type)?.outcomes.found ?? 0;
    const faulty = [...replyFaults.kinds.values()].reduce(
      (sum, kind) => sum + (kind.names.get(`${type} ${name}`)?.count ?? 0),
      0,
    );
    return found > faulty;
  });
}

const cutReplies: Kind = {
  code: 'ND3030',
  title: 'Replies are cut off without the TC flag, so clients cannot parse them',
  name: 'replies that are cut off or damaged',
  did: 'end before the last record that their header counts, and TC is not set',
  why: 'Something between the server and the client cuts replies off at a certain size, usually 512 bytes, and does not correct the header. It may be an old load balancer or firewall, a tunnel, a proxy with a small buffer, or the server itself. Without TC, clients do not know that they have to retry over TCP. glibc, musl, Go and c-ares reject such messages.',
  fix: (servers) => [
    `Remove or update the device that cuts off replies from ${servers} (a firewall’s DNS inspection with "message-length maximum 512", a load balancer, a proxy).`,
    'Until then, keep answers small (fewer addresses per name), or use TCP (options use-vc in resolv.conf for glibc, forward . SERVER { force_tcp } in the Corefile).',
  ],
  prove: (server, name) =>
    `run ndots query ${name} @${server}, then the same with +tcp; only over TCP is the answer complete`,
  disproved:
    'a capture next to the server shows the same bytes (then the server itself is at fault)',
  isFelt: ({ count }, { total }) => count >= FELT_SHARE * total.asked,
};

const wrongChecksums: Kind = {
  code: 'ND3040',
  title: 'Replies have a wrong UDP checksum, and the kernel drops them',
  name: 'replies with a wrong checksum',
  did: 'have a UDP checksum that does not match their bytes',
  why: 'Something changed these packets after their checksum was computed and did not correct it. It may be broken checksum offload in a network card, driver or virtual switch (often with VXLAN), a rule that rewrites payload or addresses, or a damaged link. The client’s kernel silently drops such packets, and the program waits until it times out. (Checksums that a sender leaves to its network card are not counted.)',
  fix: (servers) => [
    `Find where between ${servers} and the clients the checksum becomes wrong. Capture on both sides of each node (tcpdump -vv prints "bad udp cksum").`,
    'Turn the offload off with ethtool -K IFACE tx-checksum-ip-generic off, also on the overlay interface (flannel.1, vxlan.calico). If that helps, update the kernel or driver.',
  ],
  prove: () => 'nstat -az UdpInCsumErrors Udp6InCsumErrors rises in the pod’s network namespace',
  disproved: 'the counter stays at zero (then the packets were changed by or after the capture)',
  isFelt: (replies) => (isRejected(replies) ? true : null),
};

const otherCookies: Kind = {
  code: 'ND3031',
  title: 'Replies carry another client’s cookie and are discarded',
  name: 'replies with another client’s cookie',
  did: 'carry a client cookie (RFC 7873) that is not the one in the query',
  why: 'A cookie protects one client and one server from forged replies. A cache or proxy in between stored the whole reply, including the first client’s cookie, or passed a cookie on between hops. c-ares (Node.js, curl), BIND and dig discard such replies and wait until they time out.',
  fix: (servers) => [
    `Update ${servers}, or the proxy in front of it. The COOKIE option is hop by hop and must not be cached or forwarded.`,
    'Until then, disable cookies (answer-cookie no and send-cookie no in BIND), or EDNS in the client.',
  ],
  prove: (server, name) =>
    `run ndots query ${name} @${server} +cookie twice; the first 8 bytes of the reply’s cookie have to match the query`,
  disproved: 'the server returns the client’s own cookie when it is queried directly',
  isFelt: isRejected,
};

const badCookies: Kind = {
  code: 'ND4049',
  title: 'A server rejects its clients’ cookies (BADCOOKIE), so they have to retry',
  name: 'BADCOOKIE',
  did: 'are BADCOOKIE (error 23), which rejects the query’s DNS cookie',
  confidence: 0.97,
  why: 'A server that requires DNS cookies (RFC 7873) rejects a query once and sends the cookie to use. Repeated rejections mean that several servers behind one address (anycast, a load balancer) have different cookie secrets, so one server’s cookie is wrong for the others. The resolver then retries over TCP or fails with SERVFAIL. If TCP port 53 is also blocked, names in these zones are slow or fail.',
  fix: (servers) => [
    `Ask the operator of ${servers} to give all servers behind the address the same secret (BIND: cookie-secret, with cookie-algorithm siphash24 on all; Knot: mod-cookies secret; Unbound: cookie-secret), as RFC 9018 requires, or to stop requiring cookies.`,
    `Until then, stop sending cookies to ${servers} (in BIND, server ADDRESS { send-cookie no; }).`,
    'Allow TCP port 53 from the resolver to these servers.',
  ],
  prove: (server, name) =>
    `for i in 1 2 3 4 5 6; do dig +norecurse +cookie=COOKIE-FROM-A-REPLY ${name} @${server}; done shows BADCOOKIE in some replies`,
  disproved: 'only each client’s first query gets BADCOOKIE, and the next one is answered',
  isFelt: ({ count }, { total, replyFaults }) =>
    count < REJECTED_COOKIES * replyFaults.read
      ? null
      : total.servfail + total.lost > 0 || count >= MOST * replyFaults.read,
};

const badVersions: Kind = {
  code: 'ND4050',
  title: 'A server does not support the EDNS version that its clients use (BADVERS)',
  name: 'BADVERS',
  did: 'are BADVERS (error 16), which rejects the query’s EDNS version',
  confidence: 0.97,
  why: 'Version 0 is the only version of EDNS. A server that answers it with BADVERS is broken, or a device in between changed the OPT record in the query or the reply. Resolvers retry without EDNS, or fail.',
  fix: (servers) => [
    `Update ${servers}, or the device in between that changes EDNS.`,
    'Until then, query it without EDNS (in BIND, server ADDRESS { edns no; }), or use another upstream in the Corefile.',
  ],
  prove: (server, name) => `run ndots query ${name} @${server}, then again with +noedns`,
  disproved: 'the queries have an EDNS version other than 0 (then the client is at fault)',
};

const foreignRecords: Kind = {
  code: 'ND3032',
  title: 'Replies contain records for a name or type that was not queried',
  name: 'records of another name',
  did: 'contain neither a record of the queried name and type nor a CNAME to one',
  why: 'A rewrite changed the question on its way to the server but did not change the answer back, a proxy mixes up replies, or an attacker forges them. Resolvers ignore records for names that they did not query, so the program gets no address although the reply is NOERROR.',
  fix: (servers) => [
    `If ${servers} is CoreDNS, use rewrite stop { name … answer auto } or rewrite … answer name …, which changes the names in answers back.`,
    'Otherwise, look for a proxy or load balancer that changes names, and compare the replies on both sides of it.',
  ],
  prove: (server, name) =>
    `run ndots query ${name} @${server}; the owner of each answer has to be the queried name or the target of an earlier CNAME`,
  disproved: 'the answer section begins with the queried name',
};

const wrongOrder: Kind = {
  code: 'ND3033',
  title: 'A CNAME record follows its target’s records, so glibc finds no address',
  name: 'aliases in the wrong order',
  did: 'have a CNAME record after its target’s address records',
  why: 'glibc reads the answer section once, from the beginning, and ignores a name’s addresses until it knows that the queried name leads there. Go, musl and c-ares do not. A server or cache that shuffles all records in an answer, rather than only the addresses, occasionally breaks such names.',
  fix: (servers) => [
    `Make ${servers} keep the order of aliases. Turn off its shuffling, or update it.`,
    'In CoreDNS, check other plugins, since loadbalance keeps aliases first.',
  ],
  prove: (server, name) =>
    `run ndots query ${name} @${server} several times; the CNAME records have to come first`,
  disproved: 'the CNAME records come first in every reply from the server',
  isFelt: ({ count }, { total }) => count >= FELT_SHARE * total.asked,
};

const otherClass: Kind = {
  code: 'ND3034',
  title: 'Replies contain records of a class that was not queried',
  name: 'answers of another class',
  did: 'contain records whose class differs from the question’s',
  why: 'A broken or custom DNS server writes a class other than IN into its records. Resolvers ignore such records.',
  fix: (servers) => [`Update or replace ${servers}. An answer must have the question’s class.`],
  prove: (server, name) =>
    `run ndots query ${name} @${server}; the class of each record has to be IN`,
  disproved: 'all records are of class IN',
};

const endlessAliases: Kind = {
  code: 'ND3035',
  title: 'Answers end in a CNAME, with neither an address nor a SOA record',
  name: 'aliases that lead nowhere',
  did: 'end in a CNAME whose target has no record in the reply, without an SOA record that denies it',
  why: 'A stub resolver does not follow aliases itself, so the server has to add the target’s records. This server does not know the target’s zone and does not query it, or it omits the SOA record that means "no such record" (RFC 2308), so no cache stores the answer. If neither family has an address, programs report that the name does not resolve. c-ares and systemd-resolved may fail even if the other family has one.',
  fix: (servers) => [
    `Make ${servers} resolve the targets of aliases, with an upstream for them (in CoreDNS, forward beside file, auto, etcd or template) or with recursion.`,
    'If the target has no address of this family, the reply has to contain the SOA record of the target’s zone (RFC 2308, section 2.2).',
  ],
  prove: (server, name) =>
    `run ndots query ${name} @${server}; the last CNAME has to be followed by an address, or the authority section by an SOA record`,
  disproved: 'the same query at another resolver also ends in an alias (then the zone is at fault)',
  isFelt: (replies, observed) =>
    isWithoutAddress(replies, observed) || isAtTimes(replies, observed),
  // Most programs use the other family.
  unfelt: 'info',
};

const aliasLoops: Kind = {
  code: 'ND3041',
  title: 'CNAME records form a loop, so a name never has an address',
  name: 'loops of aliases',
  did: 'contain aliases that lead back to an earlier name',
  why: 'Two or more CNAME records point at each other, or one points at itself. No server can resolve such a name: it returns the aliases without an address, or SERVFAIL. The zone is at fault rather than the servers that return it. Often, one of two names was meant to have an address, or a rewrite turns the target back into the name.',
  fix: () => [
    'Correct the zone. One of the names in the loop needs an address, or a CNAME to a name outside the loop.',
    'If the loop is not in the zone, look for a rewrite, template or hosts entry in the Corefile that creates it.',
  ],
  prove: (server, name) =>
    `run ndots query ${name} CNAME @${server}, then the same for each target`,
  disproved: 'the zone’s servers return an address for one of the names',
};

const referrals: Kind = {
  code: 'ND3036',
  title: 'A name server sends referrals to its clients instead of resolving names itself',
  name: 'referrals instead of answers',
  did: 'contain no answer but a list of a zone’s servers',
  why: 'Stub resolvers and forwarders do not follow referrals. The server that they query is authoritative only, has recursion turned off, or delegates the zone to servers that it does not query. The reply is NOERROR, so programs and caches read it as "this name has no address".',
  fix: (servers) => [
    `Query a resolver instead of ${servers}, or turn on its recursion for the DNS pods and nodes.`,
    'If it delegates one of your zones, forward that zone to its own servers in the Corefile.',
  ],
  prove: (server, name) =>
    `run ndots query ${name} @${server}; the reply has neither the ra flag nor an answer`,
  disproved: 'the server answers when it is queried with recursion desired',
  isFelt: isWithoutAddress,
};

const bareReplies: Kind = {
  code: 'ND3037',
  title: 'Names get an empty answer for every address family, without a SOA record',
  name: 'empty answers without a SOA record',
  did: 'are NOERROR without any record',
  why: 'According to the server, the name exists without an IPv4 or IPv6 address, but it does not name the zone. Typical causes are a filter that sends empty answers for blocked names, a broken template or rewrite, or a server that lost its zone. No cache may store such an answer (RFC 2308), so each lookup is repeated upstream.',
  fix: (servers) => [
    `Determine what answers these names at ${servers}. It may be a template without an answer, a filter list, or a zone that was loaded empty.`,
    'Make the server add its zone’s SOA record if the record does not exist, and answer NXDOMAIN if the name does not exist.',
  ],
  prove: (server, name) => `run ndots query ${name} @${server}, then the same at its upstream`,
  disproved: 'the upstream gives the same empty answer',
  isFelt: ({ names }, observed) => {
    const list = [...new Set(names.list.map(({ name }) => name))];
    const failing = list.filter(
      (name) =>
        !hasAddress(name, observed) &&
        addressTypes.every((type) => (names.get(`${type} ${name}`)?.count ?? 0) >= MIN_CASES),
    );
    return failing.length > 0 ? false : null;
  },
};

const oversized: Kind = {
  code: 'ND3038',
  title: 'Replies are larger than clients accept, so clients retry',
  name: 'replies beyond the client’s size',
  did: 'are larger than their query allows (512 bytes without EDNS)',
  why: 'A server has to truncate a reply to the size that the query allows and set TC, so that the client retries over TCP. This one sends the whole reply. Clients with a buffer of that size lose the end of the message or drop it.',
  fix: (servers) => [
    `Update ${servers}. If it is CoreDNS, set bufsize, which limits the size in forwarded queries.`,
  ],
  prove: (server, name) =>
    `run ndots query ${name} @${server} +noedns; the reply has to be at most 512 bytes or have TC set`,
  disproved: 'the client uses the reply',
  isFelt: (replies) => (isRejected(replies) ? true : null),
};

function ruleOf(fault: ReplyFault, kind: Kind): FindingKind {
  const { code, title, name, isFelt: judge = (): boolean => true } = kind;
  return {
    ...{ code, title, name },
    inCapture(observed, claims) {
      const { replyFaults } = observed;
      if (replyFaults.read === 0) return unknown('the capture has no whole reply');
      const all = replyFaults.kinds.get(fault);
      const replies = fault === 'endless' ? withoutClaimed(all, claims) : all;
      const isFelt =
        replies === undefined || replies.count < MIN_CASES ? null : judge(replies, observed);
      if (replies === undefined || isFelt === null)
        return excluded(shownBy(replies?.count ?? 0, replyFaults.read));
      // The header contains only part of this error code, which looks like another error.
      if (isFelt || fault === 'bad-cookie')
        for (const each of replies.names.list) claims.names.add(each.name);
      const isLoop = fault === 'endless' && formLoop(replies.names.list);
      return told(isLoop ? aliasLoops : kind, replies, isFelt, replyFaults.read);
    },
  };
}

/** The replies for names that no other finding explains. */
function withoutClaimed(
  replies: FaultyReplies | undefined,
  claims: Claims,
): FaultyReplies | undefined {
  const open = replies?.names.list.filter(({ name }) => !claims.names.has(name)) ?? [];
  if (replies === undefined || open.length === replies.names.list.length) return replies;
  const names: FaultyReplies['names'] = new BoundedMap(open.length);
  for (const each of open) names.at(each.key, () => each);
  return {
    ...replies,
    names,
    count: open.reduce((sum, { count }) => sum + count, 0),
    samples: replies.samples.filter(({ name }) => !claims.names.has(name)),
  };
}

/** True if the aliases of separate replies form a loop, starting from each of the names. */
function formLoop(names: FaultyReplies['names']['list']): boolean {
  const targets = new Map(names.map(({ name, target }) => [name, target]));
  return names.every(({ name }) => {
    const passed = new Set<string>();
    for (let at: string | undefined = name; at !== undefined; at = targets.get(at)) {
      if (passed.has(at)) return true;
      passed.add(at);
    }
    return false;
  });
}

function told(kind: Kind, replies: FaultyReplies, isFelt: boolean, read: number): FoundCause {
  const { count, again, firstMs, lastMs } = replies;
  const servers = byCount(replies.servers.list).map(({ key }) => key);
  const clients = byCount(replies.clients.list).map(({ key }) => key);
  const names = byCount(replies.names.list);
  const { target } = names.find((each) => each.target !== '') ?? names[0]!;
  const [first] = names;
  return {
    code: kind.code,
    title: kind.title,
    severity: isFelt ? 'critical' : (kind.unfelt ?? 'warning'),
    confidence: isFelt ? (kind.confidence ?? 0.93) : 0.8,
    seen: [
      `${share(count, read)} replies ${kind.did}. They were sent by ${listed(servers)} to ${listed(clients)}, ${fromTo(firstMs, lastMs)}.`,
      sentence(
        `The affected names are ${listed(names.map(({ name, type, count: times }) => `${name} ${typeName(type)} (${times})`))}`,
      ),
      target !== '' &&
        sentence(`The last alias points ${kind === aliasLoops ? 'back ' : ''}to ${target}`),
      again > 0 && `Clients repeated ${again} of these queries after the reply had arrived.`,
    ],
    why: kind.why,
    fix: kind.fix(listed(servers)),
    prove: kind.prove(servers[0]!, first!.name),
    disproved: kind.disproved,
    // The list is cleared before parts of the capture are read again.
    exchanges: [...replies.samples],
  };
}

/** The most frequent first. */
function byCount<T extends { readonly count: number }>(list: readonly T[]): readonly T[] {
  return list.toSorted((one, other) => other.count - one.count);
}

/** In the order in which they are tried. */
export const unusableReplies: readonly FindingKind[] = [
  ruleOf('checksum', wrongChecksums),
  ruleOf('cut', cutReplies),
  ruleOf('cookie', otherCookies),
  ruleOf('bad-cookie', badCookies),
  ruleOf('bad-version', badVersions),
  ruleOf('foreign', foreignRecords),
  ruleOf('order', wrongOrder),
  ruleOf('class', otherClass),
  ruleOf('loop', aliasLoops),
  ruleOf('endless', endlessAliases),
  ruleOf('referral', referrals),
  ruleOf('bare', bareReplies),
  ruleOf('oversized', oversized),
];
