/** Answers for aliases, which are ExternalName services and endpoints that are domain names. */
import { CLASS, EDE, FLAG, HEADER, MESSAGE_MAX, RCODE, TYPE } from '../../../wire/iana.ts';
import { isLater, type Maybe } from '../../../base/maybe.ts';
import type { Next } from '../../../engine/contract/plugin.ts';
import { mover } from '../../../wire/mover.ts';
import { foldName, parseNameOrNull, suffixAt, type WireName } from '../../../wire/name.ts';
import type { Query } from '../../../transport/query.ts';
import { Records } from '../../../wire/records.ts';
import { Reply } from '../../../wire/reply.ts';
import { replySlab } from '../../../wire/slab.ts';
import { SECTION } from '../../../wire/writer.ts';
import type { ClusterLookup, ClusterZone } from './lookup.ts';
import { writeServerAddresses, type nameServers } from './name-server.ts';
import { EndpointReader } from '../contract/endpoint-encoding.ts';
import { PLUGIN, type ReplyBuilder } from './reply-builder.ts';
import { writeAddresses } from './targets.ts';

export interface AliasParts {
  readonly zone: ClusterZone;
  readonly lookup: ClusterLookup;
  readonly builder: ReplyBuilder;
  readonly ask: Next;
  readonly servers: () => ReturnType<typeof nameServers>;
  /** NOERROR without data. */
  readonly nothing: (query: Query) => Reply;
}

/** Maximum number of additional CNAMEs after the first. */
const CHAIN_MAX = 10;

/** Returns the domain name of an ExternalName service, or null if it is invalid. */
export function externalTarget(text: string): WireName | null {
  const name = parseNameOrNull(text);
  return name?.length === 1 ? null : name;
}

const reader = new EndpointReader();

/**
 * Returns the domain name that all endpoints in the lookup share. Returns null if any has an IP address, because a name
 * with addresses cannot be an alias. If there are several names, the first one in byte order is used. A name can have
 * only one CNAME (RFC 2181 section 10.1), and all servers must return the same one.
 */
export function endpointAlias(lookup: ClusterLookup): WireName | null {
  let first: WireName | null = null;
  const take = (): boolean => {
    if (!reader.named) return false;
    const name = reader.bytes.subarray(reader.addressAt, reader.addressAt + reader.addressLength);
    if (first === null || Buffer.compare(name, first) < 0) first = new Uint8Array(name);
    return true;
  };
  for (const slice of lookup.slices()) {
    if (!lookup.eachEndpoint(slice, reader, take)) return null;
  }
  return first;
}

/**
 * Answers A or AAAA for an alias for `target`. The alias is an ExternalName service, or a headless service with domain
 * names as endpoints. The answer consists of the CNAME and the target's records. A target inside the zone is looked up
 * here, and any other in the whole server. Alias chains within the zone are followed for a few steps. If the target
 * does not exist or its lookup fails, the answer is only the CNAME. It is empty if a target inside the zone has no such
 * address, is below the alias's own name, or leads to a loop.
 */
export function answerAlias(query: Query, target: WireName, parts: AliasParts): Maybe<Reply> {
  const { zone, lookup } = parts;
  const chain: WireName[] = [];
  let owner: WireName = query.folded.slice(0, query.nameLength);
  for (let next: WireName | null = target; ;) {
    if (next === null || chain.length > CHAIN_MAX) return parts.nothing(query);
    const folded = foldName(next);
    if (
      suffixAt(folded, owner) >= 0 ||
      chain.some((one) => suffixAt(foldName(one), folded) === 0)
    ) {
      return parts.nothing(query);
    }
    chain.push(next);
    if (suffixAt(folded, zone.wire) < 0) return askElsewhere(query, chain, parts);
    const meaning = lookup.find(folded, folded.length, zone, query);
    next = meaning === 'endpoints' ? endpointAlias(lookup) : null;
    if (meaning === 'external') next = externalTarget(lookup.service!.external);
    else if (next === null) return answerInside(query, chain, meaning, parts);
    owner = folded;
  }
}

function answerInside(
  query: Query,
  chain: readonly WireName[],
  meaning: ReturnType<ClusterLookup['find']>,
  { builder, lookup, zone, servers, nothing }: AliasParts,
): Reply {
  const { type } = query;
  const write = (): void => {
    let owner: WireName | null = null;
    for (const target of chain) {
      builder.alias(TYPE.CNAME, target, owner);
      owner = target;
    }
    if (meaning === 'service' || meaning === 'endpoints')
      writeAddresses(builder, lookup, type, owner);
    else if (meaning === 'name-server') writeServerAddresses(builder, servers(), type, owner);
    else if (meaning === 'pod' && type === (lookup.address.length === 4 ? TYPE.A : TYPE.AAAA)) {
      builder.address(SECTION.answer, owner, lookup.address, 0, lookup.address.length);
    }
  };
  builder.begin(query, zone.wire.length, query.limit);
  write();
  if (builder.answers > chain.length) return builder.finish();
  builder.abandon();
  return nothing(query);
}

function askElsewhere(query: Query, chain: readonly WireName[], parts: AliasParts): Maybe<Reply> {
  const { ttl } = parts.builder;
  const reply = parts.ask(query.asking(chain.at(-1)!));
  if (!isLater(reply)) return joined(query, chain, ttl, reply);
  const kept = query.keep();
  return reply.then((late) => joined(kept, chain, ttl, late));
}

const records = new Records();

function joined(query: Query, chain: readonly WireName[], ttl: number, reply: Reply): Reply {
  const from = reply.bare ? noMessage : reply;
  mover.begin(from.bytes, from.start);
  const question = query.start + HEADER.SIZE;
  mover.raw(query.bytes, question, question + query.nameLength + 4);
  let owner: number = HEADER.SIZE;
  for (const target of chain) owner = writeAlias(owner, target, ttl);
  // Pointers to the target's question now have to point to the last CNAME's data.
  const last = chain.at(-1)!;
  for (let at = 0; last[at] !== 0; at += last[at]! + 1) mover.map(HEADER.SIZE + at, owner + at);
  let count = chain.length;
  let flags = FLAG.QR | FLAG.AA | (from.flags & FLAG.TC);
  for (records.of(from); records.next() && records.section === SECTION.answer; count++) {
    const before = mover.length;
    mover.name(records.ownerAt);
    mover.body(records.ttlAt - 4, records.ttl);
    if (mover.length <= MESSAGE_MAX) continue;
    mover.length = before;
    flags |= FLAG.TC;
    break;
  }
  mover.setU16(HEADER.FLAGS, flags | RCODE.NOERROR);
  mover.setU16(HEADER.QDCOUNT, 1);
  mover.setU16(HEADER.ANCOUNT, count);
  mover.setU16(HEADER.NSCOUNT, 0);
  mover.setU16(HEADER.ARCOUNT, 0);
  const start = replySlab.put(mover.out, 0, mover.length);
  const end = start + mover.length;
  const errors = saysLittle(reply) ? unresolved : reply.errors;
  return new Reply(replySlab.bytes, start, end, RCODE.NOERROR, PLUGIN).with({ errors });
}

/**
 * Writes `OWNER CNAME TARGET`.
 * @returns the target's offset
 */
function writeAlias(owner: number, target: WireName, ttl: number): number {
  mover.u16(0xc000 | owner);
  mover.u16(TYPE.CNAME);
  mover.u16(CLASS.IN);
  mover.u32(ttl);
  mover.u16(target.length);
  const at = mover.length;
  mover.raw(target, 0, target.length);
  return at;
}

function hasFailed({ rcode }: Reply): boolean {
  return rcode !== RCODE.NOERROR && rcode !== RCODE.NXDOMAIN;
}

function saysLittle(reply: Reply): boolean {
  return hasFailed(reply) && (reply.errors ?? []).every(({ code }) => code === EDE.OTHER);
}

const unresolved = [
  {
    code: EDE.NO_REACHABLE_AUTHORITY,
    text: 'the target of the ExternalName service could not be resolved',
  },
] as const;
const noMessage = new Reply(new Uint8Array(HEADER.SIZE), 0, HEADER.SIZE, RCODE.NOERROR, PLUGIN);
