/**
 * Replies that arrive, and that their clients reject or get nothing from: cut without TC, with
 * another client's cookie, with records of another name, class or order, or without an end.
 */
import { addressTypes, typeName } from '../../../server/wire/iana.ts';
import type { FaultyReplies } from '../observe/reply-faults.ts';
import type { ReplyFault } from '../observe/reply-shape.ts';
import type { Observations } from '../observe/observations.ts';
import { excluded, unknown, type Finding, type FindingKind } from './finding.ts';
import { clock, listed, sentence, share, shownBy } from '../texts.ts';
import { REJECTED_COOKIES, REJECTED_SHARE } from '../thresholds/errors.ts';
import { FELT_SHARE, MIN_CASES } from '../thresholds/evidence.ts';

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
  /** If programs fail; omitted: 0.93. */
  readonly confidence?: number;
  /** True: programs fail. False: a warning. Null: no finding. */
  isFelt(replies: FaultyReplies, observed: Observations): boolean | null;
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
    const found = observed.names.get(name, type)?.outcomes.found ?? 0;
    return count >= MIN_CASES && found > count;
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
  title: 'Replies are cut without the TC flag, and clients cannot read them',
  name: 'replies that are cut or damaged',
  did: 'end before the last record that their header counts, and TC is not set',
  why: 'Something between the server and the client cuts replies to a size, mostly 512 bytes, and does not correct the header: an old load balancer or firewall, a tunnel, a proxy with a small buffer, or the server itself. Without TC, clients do not know that they have to retry over TCP. glibc, musl, Go and c-ares reject such a message.',
  fix: (servers) => [
    `Remove or update the device that cuts the replies of ${servers}: DNS inspection of a firewall ("message-length maximum 512"), a load balancer, a proxy.`,
    'Until then, keep answers small (fewer addresses per name), or use TCP: options use-vc in resolv.conf (glibc), forward . SERVER { force_tcp } in the Corefile.',
  ],
  prove: (server, name) =>
    `ndots query ${name} @${server}, and again with +tcp: over TCP the answer is whole`,
  disproved: 'a capture beside the server shows the same bytes: then the server itself is at fault',
  isFelt: ({ count }, { total }) => count >= FELT_SHARE * total.asked,
};

const wrongChecksums: Kind = {
  code: 'ND3040',
  title: 'Replies have a wrong UDP checksum, and the kernel drops them',
  name: 'replies with a wrong checksum',
  did: 'have a UDP checksum that does not fit their bytes',
  why: 'Something changed these packets after their checksum was made and did not correct it: a network card, driver or virtual switch with a broken checksum offload (often with VXLAN), a rule that rewrites payload or addresses, or a damaged link. The client’s kernel drops such a packet silently, and the program waits until its time-out. (What a sender leaves to its own network card is not counted.)',
  fix: (servers) => [
    `Find where between ${servers} and the clients the checksum becomes wrong: capture on both sides of each node (tcpdump -vv says "bad udp cksum").`,
    'Turn the offload off and see: ethtool -K IFACE tx-checksum-ip-generic off, also for the overlay interface (flannel.1, vxlan.calico); then update kernel or driver.',
  ],
  prove: () =>
    'nstat -az UdpInCsumErrors Udp6InCsumErrors in the pod’s network namespace: it rises',
  disproved:
    'the counter stays at zero: then the packets were changed after the capture, or for it',
  isFelt: (replies) => (isRejected(replies) ? true : null),
};

const otherCookies: Kind = {
  code: 'ND3031',
  title: 'Replies carry the cookie of another client, and are discarded',
  name: 'replies with another client’s cookie',
  did: 'carry a client cookie (RFC 7873) that is not the one in the query',
  why: 'A cookie protects one client and one server from forged replies. A cache or a proxy in between stored the whole reply, with the cookie of the client that asked first, or passed a cookie on between hops. c-ares (Node.js, curl), BIND and dig discard such a reply and wait until their time-out.',
  fix: (servers) => [
    `Update ${servers}, or what is in front of it: the COOKIE option is hop by hop and must not be cached or forwarded.`,
    'Until then, leave cookies out: answer-cookie no and send-cookie no in BIND; edns off in the client.',
  ],
  prove: (server, name) =>
    `ndots query ${name} @${server} +cookie, twice: the first 8 bytes of the reply’s cookie have to be those of the query`,
  disproved: 'the server returns the client’s own cookie when it is asked directly',
  isFelt: isRejected,
};

const badCookies: Kind = {
  code: 'ND4049',
  title: 'A server rejects the cookies of its clients (BADCOOKIE), and they have to ask again',
  name: 'BADCOOKIE',
  did: 'are BADCOOKIE (error 23), which rejects the DNS cookie of the query',
  confidence: 0.97,
  why: 'A server that requires DNS cookies (RFC 7873) rejects a query once, and sends the cookie to use. It rejects them again and again if several servers behind one address (anycast, a load balancer) have different cookie secrets: the cookie of one is wrong for the other. The resolver then asks over TCP, or fails with SERVFAIL; if TCP port 53 is blocked as well, names of these zones are slow or fail.',
  fix: (servers) => [
    `Ask the operator of ${servers} to give all servers behind the address the same secret (BIND: cookie-secret, with cookie-algorithm siphash24 in all; Knot: mod-cookies secret; Unbound: cookie-secret), as RFC 9018 requires, or not to require cookies.`,
    `Until then, have the resolver send no cookie to ${servers}: server ADDRESS { send-cookie no; } in BIND.`,
    'Allow TCP port 53 from the resolver to these servers.',
  ],
  prove: (server, name) =>
    `for i in 1 2 3 4 5 6; do dig +norecurse +cookie=COOKIE-OF-A-REPLY ${name} @${server}; done: some replies are BADCOOKIE`,
  disproved: 'only the first query of each client is BADCOOKIE, and the next one is answered',
  isFelt: ({ count }, { total, replyFaults }) =>
    count < REJECTED_COOKIES * replyFaults.read ? null : total.servfail + total.lost > 0,
};

const badVersions: Kind = {
  code: 'ND4050',
  title: 'A server does not know the version of EDNS that its clients use (BADVERS)',
  name: 'BADVERS',
  did: 'are BADVERS (error 16), which rejects the EDNS version of the query',
  confidence: 0.97,
  why: 'There is only version 0 of EDNS. A server that answers it with BADVERS is broken, or a device in between changed the OPT record of the query or of the reply. Resolvers ask again without EDNS, or fail.',
  fix: (servers) => [
    `Update ${servers}, or the device that changes EDNS on the way to it.`,
    'Until then, ask it without EDNS: server ADDRESS { edns no; } in BIND; another upstream in the Corefile.',
  ],
  prove: (server, name) => `ndots query ${name} @${server}, and again with +noedns`,
  disproved: 'the queries have another EDNS version than 0: then the client is at fault',
  isFelt: () => true,
};

const foreignRecords: Kind = {
  code: 'ND3032',
  title: 'Replies hold records of another name or type than was asked for',
  name: 'records of another name',
  did: 'have no record of the name and type that was asked for, nor a CNAME to one',
  why: 'A rewrite changed the question on its way to the server and did not change the answer back, a proxy mixes up replies, or an attacker forges them. Resolvers ignore records of a name that they did not ask for: the program gets no address, although the reply says NOERROR.',
  fix: (servers) => [
    `If ${servers} is CoreDNS: rewrite stop { name … answer auto } or rewrite … answer name … changes the names of answers back.`,
    'Otherwise look for a proxy or a load balancer that changes names, and compare the reply on both of its sides.',
  ],
  prove: (server, name) =>
    `ndots query ${name} @${server}: the owner of each answer has to be the name, or the target of a CNAME before it`,
  disproved: 'the answer section begins with the name that was asked for',
  isFelt: () => true,
};

const wrongOrder: Kind = {
  code: 'ND3033',
  title: 'A CNAME record follows the records of its target, and glibc finds no address',
  name: 'aliases in the wrong order',
  did: 'have a CNAME record behind the address records of its target',
  why: 'glibc reads the answer section once, from its beginning, and ignores the addresses of a name before it knows that the question’s name leads there. Go, musl and c-ares differ. A server or a cache that shuffles all records of an answer, and not only addresses among themselves, breaks such names now and then.',
  fix: (servers) => [
    `Have ${servers} keep the order of aliases: turn off its shuffling, or update it.`,
    'loadbalance of CoreDNS keeps aliases in front; a plugin behind it may not.',
  ],
  prove: (server, name) =>
    `ndots query ${name} @${server}, several times: each CNAME has to come first`,
  disproved: 'the CNAME records come first in every reply of the server',
  isFelt: ({ count }, { total }) => count >= FELT_SHARE * total.asked,
};

const otherClass: Kind = {
  code: 'ND3034',
  title: 'Replies hold records of another class than was asked for',
  name: 'answers of another class',
  did: 'hold records whose class is not the question’s',
  why: 'A damaged or hand-made DNS server writes another class than IN into its records. Resolvers ignore such records.',
  fix: (servers) => [
    `Update or replace ${servers}: the class of an answer is that of the question.`,
  ],
  prove: (server, name) => `ndots query ${name} @${server}: the class of each record is IN`,
  disproved: 'all records are of class IN',
  isFelt: () => true,
};

const endlessAliases: Kind = {
  code: 'ND3035',
  title: 'Answers end in a CNAME, with neither an address nor a SOA record',
  name: 'aliases that lead nowhere',
  did: 'end in a CNAME whose target has no record in the reply, and no SOA says that there is none',
  why: 'A stub resolver does not follow aliases itself: the server has to add the records of the target. This server does not know the target’s zone and does not ask for it, or it leaves out the SOA record that says "no such record" (RFC 2308), so that no cache stores the answer. Where no address family has an address, programs report that the name does not resolve; c-ares and systemd-resolved may fail for the other family, too.',
  fix: (servers) => [
    `Have ${servers} resolve the targets of its aliases: an upstream for them (CoreDNS: forward beside file, auto, etcd or template), or recursion.`,
    'If the target has no address of this family, the reply has to carry the SOA record of the target’s zone (RFC 2308 section 2.2).',
  ],
  prove: (server, name) =>
    `ndots query ${name} @${server}: an address behind the last CNAME, or a SOA record in the authority section`,
  disproved:
    'the same query at another resolver ends in an alias as well: then the zone is at fault',
  isFelt: (replies, observed) =>
    isWithoutAddress(replies, observed) || isAtTimes(replies, observed),
};

const aliasLoops: Kind = {
  code: 'ND3041',
  title: 'CNAME records form a loop, so a name never has an address',
  name: 'loops of aliases',
  did: 'hold aliases that lead back to a name before them',
  why: 'Two or more CNAME records point at each other, or one points at itself. No server can resolve such a name: it returns the aliases without an address, or SERVFAIL. The zone is at fault, and not the servers that return it. Often one of two names was meant to have an address, or a rewrite turns the target back into the name.',
  fix: () => [
    'Correct the zone: one of the names in the loop needs an address, or a CNAME to a name outside the loop.',
    'If the loop is not in the zone: a rewrite, template or hosts entry of the Corefile makes it.',
  ],
  prove: (server, name) => `ndots query ${name} CNAME @${server}, then the same for each target`,
  disproved: 'the servers of the zone give an address for one of the names',
  isFelt: () => true,
};

const referrals: Kind = {
  code: 'ND3036',
  title: 'A name server refers its clients to other servers and does not query them itself',
  name: 'referrals instead of answers',
  did: 'have no answer and name the servers of a zone instead',
  why: 'Stub resolvers and forwarders do not follow referrals. The server that they ask is authoritative only, has its recursion turned off, or delegates the zone to servers that it does not ask: a lame delegation. The reply says NOERROR, so that programs and caches take it for "this name has no address".',
  fix: (servers) => [
    `Ask a resolver instead of ${servers}, or turn its recursion on for the DNS pods and nodes.`,
    'If it delegates a zone of yours: forward that zone to its own servers in the Corefile.',
  ],
  prove: (server, name) =>
    `ndots query ${name} @${server}: the flags have ra, and there is an answer`,
  disproved: 'the server gives an answer when it is asked with recursion',
  isFelt: isWithoutAddress,
};

const bareReplies: Kind = {
  code: 'ND3037',
  title: 'Names get an empty answer for every address family, without a SOA record',
  name: 'empty answers without a SOA record',
  did: 'say NOERROR with no record at all',
  why: 'The server says that the name exists and has no address, for IPv4 and for IPv6, and does not name the zone. Typical causes are a filter that answers blocked names with nothing, a broken template or rewrite, or a server that lost its zone. No cache may store it (RFC 2308), and each lookup asks again.',
  fix: (servers) => [
    `Look for what answers these names at ${servers}: a template without an answer, a filter list, a zone that was loaded empty.`,
    'A server that has no such record adds the SOA record of its zone; one that does not know the name says NXDOMAIN.',
  ],
  prove: (server, name) => `ndots query ${name} @${server}, and at its upstream`,
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
  title: 'Replies are larger than their clients accept, and clients retry',
  name: 'replies beyond the client’s size',
  did: 'are larger than the size that their query offers (512 bytes without EDNS)',
  why: 'A server has to cut a reply to the size that the query offers and set TC, so that the client asks over TCP. This one sends all of it. Clients with a buffer of that size lose the end of the message, or drop it.',
  fix: (servers) => [
    `Update ${servers}; in CoreDNS, bufsize limits what is forwarded, and the server itself respects the client’s size.`,
  ],
  prove: (server, name) => `ndots query ${name} @${server} +noedns: at most 512 bytes, or TC`,
  disproved: 'the client uses the reply',
  isFelt: (replies) => (isRejected(replies) ? true : null),
};

function ruleOf(fault: ReplyFault, kind: Kind): FindingKind {
  const { code, title, name } = kind;
  return {
    ...{ code, title, name },
    inCapture(observed, claims) {
      const { replyFaults } = observed;
      if (replyFaults.read === 0) return unknown('the capture has no whole reply');
      const replies = replyFaults.kinds.get(fault);
      const isFelt =
        replies === undefined || replies.count < MIN_CASES ? null : kind.isFelt(replies, observed);
      if (replies === undefined || isFelt === null)
        return excluded(shownBy(replies?.count ?? 0, replyFaults.read));
      if (isFelt) for (const each of replies.names.list) claims.names.add(each.name);
      const isLoop = fault === 'endless' && formLoop(replies.names.list);
      return told(isLoop ? aliasLoops : kind, replies, isFelt, replyFaults.read);
    },
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

function told(kind: Kind, replies: FaultyReplies, isFelt: boolean, read: number): Finding {
  const { count, again, firstMs, lastMs } = replies;
  const servers = byCount(replies.servers.list).map(({ key }) => key);
  const clients = byCount(replies.clients.list).map(({ key }) => key);
  const names = byCount(replies.names.list);
  const { target } = names.find((each) => each.target !== '') ?? names[0]!;
  const [first] = names;
  return {
    code: kind.code,
    title: kind.title,
    severity: isFelt ? 'critical' : 'warning',
    confidence: isFelt ? (kind.confidence ?? 0.93) : 0.8,
    seen: [
      `${share(count, read)} replies ${kind.did}: from ${listed(servers)}, to ${listed(clients)}, from ${clock(firstMs)} to ${clock(lastMs)}.`,
      sentence(
        `Names: ${listed(names.map(({ name, type, count: times }) => `${name} ${typeName(type)} (${times})`))}`,
      ),
      ...(target === ''
        ? []
        : [sentence(`The last alias leads ${kind === aliasLoops ? 'back ' : ''}to ${target}`)]),
      ...(again > 0
        ? [`Clients sent ${again} of these queries again after the reply had come.`]
        : []),
    ],
    why: kind.why,
    fix: kind.fix(listed(servers)),
    prove: kind.prove(servers[0]!, first!.name),
    disproved: kind.disproved,
    // The list is emptied before parts of the capture are read again.
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
