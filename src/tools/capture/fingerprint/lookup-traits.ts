/**
 * Traits that reveal which resolver sent a lookup, such as ports, IDs, order, pauses and EDNS. A trait may be present,
 * absent, or not visible.
 */
import { isAddressType, RCODE, TYPE } from '../../../server/wire/iana.ts';
import { isCut, TYPE_CUT } from '../pair/message-head.ts';
import {
  haveSameName,
  isLost,
  type SeenExchange,
  type SeenLookup,
  isEmpty,
} from '../pair/seen-exchange.ts';

export const traitNames = [
  'begins over TCP',
  'pair in one go',
  'pair to one server',
  'pair from one port',
  'A before AAAA',
  'ids of a pair close together',
  'ids of a pair of one clock',
  'ids of a pair of one moment',
  'one port for the whole walk',
  'no EDNS',
  'EDNS of 1232 without cookie',
  'EDNS with cookie',
  'capitals by chance',
  'asks for AD',
  'asks for DNSSEC',
  'all servers at once',
  'again after 2.5 s',
  'again after 5 s',
  'again from the same port',
  'again with the same id',
  'SERVFAIL retried immediately, twice',
  'stops at NODATA',
  'both families',
  'families walk separately',
  'a single label as written',
  'the port of the lookup before',
  'ids that count up',
  'IP IDs continue across ports',
] as const;
export type Trait = (typeof traitNames)[number];

/** The fields in a UDP query that depend on its socket. */
export type SentPacket = Pick<SeenExchange, 'ipId' | 'sentMs' | 'server' | 'client'>;

/** True if the lookup shows the trait, false if it shows that the trait is absent. */
export type Traits = ReadonlyMap<Trait, boolean>;

/** The second flags byte, which has AD and CD (RFC 4035, section 3.2). */
const FLAGS_AT = 3;
const AD = 0x20;
const CD = 0x10;
/** The start of the question, and the byte with DO in the OPT (RFC 6891, section 6.1.3). */
const QUESTION_AT = 12;
const DO_AT = 7;
const AT_ONCE_MS = 8;
/** In milliseconds. A query sent sooner than this after the other one did not wait for its reply. */
const NO_WAIT_MS = 0.3;
/** The accuracy of client timers on a busy machine, in milliseconds. */
const SLACK_MS = 260;
/** musl derives both IDs from the nanoseconds of a clock that it reads twice in quick succession. */
const NEAR_IDS = 2500;
/**
 * glibc derives an ID from a clock's nanoseconds by folding them, so that differing bits are below equal ones, and
 * swapping the bytes (include/random-bits.h). The IDs of a pair nearly always differ by less than `nearly`, and mostly
 * by less than `mostly`.
 */
const CLOCK_IDS = { nearly: 0x2000, mostly: 0x800 };
/** IDs closer together than this are incrementing. */
const COUNTED_IDS = 16;
/** The most that Linux increments the IP identification per millisecond. */
const TICKS_A_MS = 1;
/** The maximum number of packets between two compared packets from the same client to the same server. */
const IP_IDS_BETWEEN = 8;
/** In milliseconds. After this long, any identification could be the next one. */
const IP_IDS_MS = 3000;
/**
 * The size in bytes of a query whose OPT has no options, not counting the name. Includes the header, root label, type,
 * class and OPT.
 */
const WITHOUT_OPTIONS = 12 + 1 + 4 + 11;
/** The size in bytes of an option's code and length (RFC 6891, section 6.1.2). */
const OPTION_HEAD = 4;
/**
 * The number of milliseconds after which clients repeat a query from a new port. At any other time, another program is
 * querying the same name.
 */
const TIMERS_MS = [2000, 2500, 5000];

/** Returns a lookup's traits, where the majority decides within a search step. */
export function traitsOf(lookup: SeenLookup): Traits {
  const votes = new Map<Trait, number>();
  const vote = (trait: Trait, present: boolean): void => {
    votes.set(trait, (votes.get(trait) ?? 0) + (present ? 1 : -1));
  };
  const { exchanges } = lookup;
  const [first] = exchanges as [SeenExchange];
  // Only the options distinguish dig from Go here, and logs do not have them.
  if (exchanges.length === 1 && first.logged !== undefined && first.udpSize > 0) return new Map();
  const groups = stepsOf(exchanges);
  // Starting with TCP is a configuration choice, so not doing so proves nothing.
  if (first.protocol === 'tcp') vote('begins over TCP', true);
  const isShort = exchanges.some(lacksBytes);
  for (const group of groups) ofPair(group, isShort, vote);
  ofWalk(groups, isShort, vote);
  ofRepeats(exchanges, vote);
  for (const each of exchanges) {
    const { capitals, query, name, logged } = each;
    ofEdns(each, vote);
    if (logged === undefined) ofFlags(each, vote);
    // A few capitals may come from the user, whereas random case capitalises half of the letters.
    const letters = name.replaceAll(/[^a-z]/g, '').length;
    if (letters >= 6) vote('capitals by chance', capitals && shareOfCapitals(query) > 0.2);
  }
  return new Map(
    [...votes].filter(([, count]) => count !== 0).map(([trait, count]) => [trait, count > 0]),
  );
}

/** True if the capture has only the start of a message. */
function lacksBytes({ query, queryBytes, reply, replyBytes, logged }: SeenExchange): boolean {
  if (logged !== undefined) return false;
  return query.length < queryBytes || (reply !== null && reply.length < replyBytes);
}

function ofEdns(exchange: SeenExchange, vote: Vote): void {
  const { udpSize, cookie, query, queryBytes, name, logged } = exchange;
  vote('no EDNS', udpSize === 0);
  // A log does not include the OPT's contents.
  if (udpSize > 0 && logged !== undefined) return;
  if (udpSize === 0 || query.length === queryBytes) {
    vote('EDNS of 1232 without cookie', udpSize === 1232 && !cookie);
    vote('EDNS with cookie', cookie);
    return;
  }
  // The length of a truncated OPT is known if the name is complete.
  if (isCut(name) || name.includes('\\')) return;
  const options = queryBytes - WITHOUT_OPTIONS - name.length;
  if (options > 0) vote('EDNS of 1232 without cookie', false);
  vote('EDNS with cookie', options > 0 && isCookie(options - OPTION_HEAD));
}

/** AD, CD and DO, which stub resolvers do not set. The OPT may be missing from the capture. */
function ofFlags({ query, udpSize }: SeenExchange, vote: Vote): void {
  if (query.length <= FLAGS_AT) return;
  vote('asks for AD', (query[FLAGS_AT]! & AD) !== 0);
  if ((query[FLAGS_AT]! & CD) !== 0) return vote('asks for DNSSEC', true);
  if (udpSize === 0) return vote('asks for DNSSEC', false);
  let at = QUESTION_AT;
  while (at < query.length && query[at]! > 0) at += query[at]! + 1;
  const opt = at + 5;
  if (opt + DO_AT >= query.length || query[opt] !== 0 || query[opt + 2] !== TYPE.OPT) return;
  vote('asks for DNSSEC', (query[opt + DO_AT]! & 0x80) !== 0);
}

/** True if an option of this size could be a cookie (RFC 7873, section 4). */
function isCookie(bytes: number): boolean {
  return bytes === 8 || (bytes >= 16 && bytes <= 40);
}

/** Groups exchanges by search path name, in search order. */
function stepsOf(exchanges: readonly SeenExchange[]): readonly (readonly SeenExchange[])[] {
  const steps: SeenExchange[][] = [];
  for (const each of exchanges) {
    const step = steps.find(([first]) => haveSameName(first!, each));
    if (step === undefined) steps.push([each]);
    else step.push(each);
  }
  return steps;
}

/**
 * Returns a pair's questions in the order sent, or the only question. The type of a truncated question is unknown, but
 * A usually comes first. If both are in one TCP segment and only the second is truncated, it has the other type.
 */
function pairOf(
  group: readonly SeenExchange[],
): readonly [a: SeenExchange | undefined, aaaa: SeenExchange | undefined] {
  const [first] = group;
  if (first === undefined || !isCut(first.name)) {
    const a = group.find(({ type }) => type === TYPE.A);
    const aaaa = group.find(({ type }) => type === TYPE.AAAA);
    const one = a ?? aaaa;
    if (one === undefined || (a !== undefined && aaaa !== undefined)) return [a, aaaa];
    const other = group.find(({ type, id }) => type === TYPE_CUT && id !== one.id);
    return [a ?? other, aaaa ?? other];
  }
  const second = group.find(({ id, attempt }) => id !== first.id && attempt === 1);
  return second === undefined ? [undefined, undefined] : [first, second];
}

/** Counts address families or, for truncated questions, IDs. */
function familiesOf(group: readonly SeenExchange[]): number {
  if (!group.some(({ name }) => isCut(name))) return new Set(group.map(({ type }) => type)).size;
  return Math.min(2, new Set(group.map(({ id }) => id)).size);
}

type Vote = (trait: Trait, present: boolean) => void;

/**
 * True if a second question may follow in the part of a segment that was not captured.
 * @param isShort true if the capture has only the start of each message
 */
function mayHideAnother(group: readonly SeenExchange[], isShort: boolean): boolean {
  return isShort && familiesOf(group) === 1 && !group.some(isUdp);
}

function ofPair(group: readonly SeenExchange[], isShort: boolean, vote: Vote): void {
  const [a, aaaa] = pairOf(group);
  if (a === undefined && aaaa === undefined) return;
  const areBoth = a !== undefined && aaaa !== undefined;
  if (areBoth || !mayHideAnother(group, isShort)) vote('both families', areBoth);
  const servers = new Set(
    group
      .filter(
        (each) =>
          (each.type === TYPE_CUT
            ? each.id === (a ?? aaaa)!.id
            : each.type === (a ?? aaaa)!.type) && each.sentMs - group[0]!.sentMs < AT_ONCE_MS,
      )
      .map(({ server }) => server.address),
  );
  vote('all servers at once', servers.size > 1);
  if (a === undefined || aaaa === undefined) return;
  const [first, second] = a.sentMs <= aaaa.sentMs ? [a, aaaa] : [aaaa, a];
  const gapMs = second.sentMs - first.sentMs;
  const waited = gapMs > NO_WAIT_MS && first.repliedMs !== null && first.repliedMs <= second.sentMs;
  const together = gapMs < AT_ONCE_MS && !waited;
  vote('pair in one go', together);
  // Two servers need two sockets, whatever the resolver.
  const toOne = a.server.address === aaaa.server.address;
  vote('pair to one server', toOne);
  if (toOne) vote('pair from one port', a.client.port === aaaa.client.port);
  if (a.type !== aaaa.type)
    vote(
      'A before AAAA',
      a.sentMs < aaaa.sentMs ||
        (a.sentMs === aaaa.sentMs && group.indexOf(a) < group.indexOf(aaaa)),
    );
  const apart = (aaaa.id - a.id) & 0xffff;
  vote('ids of a pair close together', apart >= COUNTED_IDS && apart < NEAR_IDS);
  vote('ids that count up', apart > 0 && apart < COUNTED_IDS);
  const bits = swapBytes(a.id) ^ swapBytes(aaaa.id);
  vote('ids of a pair of one clock', bits < CLOCK_IDS.nearly);
  if (bits < CLOCK_IDS.nearly) vote('ids of a pair of one moment', bits < CLOCK_IDS.mostly);
}

function ofWalk(groups: readonly (readonly SeenExchange[])[], isShort: boolean, vote: Vote): void {
  for (let at = 1; at < groups.length; at++) {
    const first = groups[at]!.find(isUdp) ?? groups[at]![0]!;
    const before = groups[at - 1]!.filter(({ protocol }) => protocol === first.protocol);
    if (before.length === 0) continue;
    const goesOn = isUdp(first) ? goesOnInIp(before.at(-1)!, first) : null;
    if (goesOn !== null) vote('IP IDs continue across ports', goesOn);
    vote(
      'one port for the whole walk',
      before.some(({ client }) => client.port === first.client.port),
    );
    // Types other than A and AAAA (TXT, SRV) have no counterpart.
    if (![...before, ...groups[at]!].every(({ type, name }) => isAddressType(type) || isCut(name)))
      continue;
    if (!mayHideAnother(groups[at]!, isShort))
      vote('families walk separately', familiesOf(groups[at]!) === 1);
  }
  const alone = groups.length === 1 && groups[0]!.every(({ rcode }) => rcode === RCODE.NXDOMAIN);
  if (/^[^.]+\.$/.test(groups[0]?.[0]?.name ?? '')) vote('a single label as written', alone);
  const last = groups.at(-1);
  const ended =
    last !== undefined &&
    last.length > 0 &&
    last.every((each) => each.rcode === RCODE.NOERROR && isEmpty(each));
  if (ended && groups.length === 1 && last.length === 2) vote('stops at NODATA', true);
  else if (
    groups
      .slice(0, -1)
      .some(
        (group) =>
          group.length > 0 && group.every((each) => each.rcode === RCODE.NOERROR && isEmpty(each)),
      )
  )
    vote('stops at NODATA', false);
}

function ofRepeats(exchanges: readonly SeenExchange[], vote: Vote): void {
  const last = new Map<string, SeenExchange>();
  const servfails = new Map<string, number>();
  for (const each of exchanges) {
    if (!isUdp(each)) continue;
    // A truncated question is identified by its ID, so a retry with a different ID is not detected.
    const cut = isCut(each.name);
    const question = cut ? `${each.id}/${each.queryBytes}` : each.type;
    const key = `${question} ${each.name} ${each.server.address}`;
    const before = last.get(key);
    last.set(key, each);
    if (before === undefined) continue;
    const afterMs = each.sentMs - before.sentMs;
    if (before.rcode === RCODE.SERVFAIL && afterMs < 1000) {
      servfails.set(key, (servfails.get(key) ?? 0) + 1);
      continue;
    }
    if (!isLost(before) && before.ending !== 'waiting' && before.ending !== 'open') continue;
    const sameSocket = before.client.port === each.client.port || before.id === each.id;
    if (!sameSocket && !TIMERS_MS.some((ms) => Math.abs(afterMs - ms) < SLACK_MS)) continue;
    vote('again after 2.5 s', Math.abs(afterMs - 2500) < SLACK_MS);
    vote('again after 5 s', Math.abs(afterMs - 5000) < SLACK_MS);
    vote('again from the same port', before.client.port === each.client.port);
    if (!cut) vote('again with the same id', before.id === each.id);
  }
  for (const count of servfails.values()) vote('SERVFAIL retried immediately, twice', count >= 2);
}

function swapBytes(id: number): number {
  return ((id & 0xff) << 8) | (id >> 8);
}

/**
 * True if the later of two queries from different ports continues the earlier one's IP identification, or null if that
 * is not visible. Linux has one counter for all unconnected sockets, which grows by at most the clock ticks in between
 * (net/ipv4/route.c, `ip_idents_reserve`). Each connected socket starts from a separate value. musl is the only
 * resolver that leaves its sockets unconnected.
 */
export function goesOnInIp(before: SentPacket, after: SentPacket): boolean | null {
  if (before.ipId === 0 || after.ipId === 0) return null;
  if (before.server.address !== after.server.address) return null;
  if (before.client.port === after.client.port) return null;
  const passedMs = after.sentMs - before.sentMs;
  if (passedMs < 0 || passedMs > IP_IDS_MS) return null;
  const apart = (after.ipId - before.ipId) & 0xffff;
  return apart > 0 && apart <= TICKS_A_MS * passedMs + IP_IDS_BETWEEN;
}

function isUdp({ protocol }: SeenExchange): boolean {
  return protocol === 'udp';
}

/** The fraction of the letters in the question's name that are capitals. */
function shareOfCapitals(query: Uint8Array): number {
  let capitals = 0;
  let letters = 0;
  for (let at = 12; at < query.length && query[at]! > 0; at += query[at]! + 1)
    for (let i = at + 1; i <= at + query[at]! && i < query.length; i++) {
      const folded = query[i]! | 0x20;
      if (folded < 0x61 || folded > 0x7a) continue;
      letters++;
      if (query[i]! < 0x61) capitals++;
    }
  return letters === 0 ? 0 : capitals / letters;
}
