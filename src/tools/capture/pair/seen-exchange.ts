/** A query and its reply in a capture, and the lookups they belong to. */
import type { Exchange, Lookup, Peer } from '../../../server/wire/exchange.ts';
import { FLAG } from '../../../server/wire/iana.ts';
import { readMessage, type DnsRecord } from '../../../server/wire/message.ts';
import { readable } from '../../../server/wire/reader.ts';
import type { Asker } from './asker.ts';
import type { CopiedBytes } from './copied-bytes.ts';
import { isCut } from './message-head.ts';

/** The same query after its address was translated from a service's to a pod's. */
export interface Hop {
  readonly client: Peer;
  readonly server: ServerPeer;
  readonly sentMs: number;
  repliedMs: number | null;
  readonly port: number;
  replyBytes: number;
  /** The first interfaces on which its reply was seen. Omitted if it is not from packets. */
  readonly replyPorts?: number[];
}

export interface ServerPeer extends Peer {
  /** Its address, if `address` is a name that includes the port (`ServerNames`). */
  readonly host?: string;
}

/** The address, without the port that a name may include. */
export function addressOf({ address, host }: ServerPeer): string {
  return host ?? address;
}

/** The server at the end of all address translations. */
export function finalServer({
  server,
  hops,
  behind = null,
}: Pick<SeenExchange, 'server' | 'hops' | 'behind'>): ServerPeer {
  return hops.at(-1)?.server ?? behind ?? server;
}

/** The part of a reply that does not match its query, which is the ID, the question, or the QR flag. */
export type Misfit = 'id' | 'question' | 'flag';

/** Why an exchange ended, where `open` means that the capture ended first. */
export type Ending = 'waiting' | 'answered' | 'retried' | 'lost' | 'open';

/** An exchange in a capture. Frequently used fields are parsed in advance. */
export interface SeenExchange extends Exchange {
  readonly protocol: 'udp' | 'tcp';
  server: ServerPeer;
  /** Absolute and in lower case. A truncated name (`isCut`) ends in `…` or is empty. */
  readonly name: string;
  readonly type: number;
  readonly id: number;
  /** The identification of the query's IPv4 packet, or 0 if there is none. */
  readonly ipId: number;
  /** True if its packet was seen again with a lower TTL and the same addresses. */
  routed?: boolean;
  /** UDP size in the query's OPT. It is 0 if there is no OPT, and 512 if it is cut off. */
  readonly udpSize: number;
  readonly cookie: boolean;
  readonly capitals: boolean;
  /** The frame number in the capture, or 0 if there is none. */
  readonly queryFrame: number;
  replyFrame: number;
  repliedMs: number | null;
  /** The length on the wire, although the capture may have fewer bytes. */
  readonly queryBytes: number;
  /** The length on the wire, although the capture may have fewer bytes. 0 if there is no reply. */
  readonly replyBytes: number;
  /** -1: no reply. */
  rcode: number;
  /** The second word of the reply's header. */
  replyFlags: number;
  /** The number of records in the reply's answer section. */
  answers: number;
  ending: Ending;
  /** The number of times that this port has sent the question with this ID, counting from 1. */
  readonly attempt: number;
  /** The same query after each address translation, in order. */
  hops: readonly Hop[];
  /** The size in bytes of a reply that was seen on its path but not at the client, or 0 if there is none. */
  strandedBytes: number;
  /** The server that answered instead of the target. */
  stray: Peer | null;
  /** True if the reply is the one from `stray`, and not a later one from the target. Omitted if it is not from packets. */
  isStrayReply?: boolean;
  /** The mismatched reply that reached its socket. Omitted if it is not from packets. */
  misfit?: Misfit | null;
  /** True if its reply has a wrong UDP checksum. Omitted if it is not from packets. */
  damaged?: boolean;
  /** True if its query was seen with a wrong UDP checksum at one place or more. Omitted if it is not from packets. */
  damagedQuery?: boolean;
  /** True if its reply is truncated and its client's connection for the whole one was not accepted. Only live views set it. */
  tcpFailed?: boolean;
  /** Set for a log line, which does not have the query's options and may not have times. Omitted for a message. */
  readonly logged?: Logged;
  /** Set after the exchange has ended. Omitted or null if it was not looked up. */
  asker?: Asker | null;
  /** The server after address translation, likewise. */
  answerer?: Asker | null;
  /** The server after a translation that is visible only in the kernel's connection tracking. */
  behind?: Peer | null;
  /** The queries that the server sent to answer this one. Omitted or null if that is not known. */
  upstream?: readonly SeenExchange[] | null;
  /** The facts about its sender so far, used only for attribution. Omitted if it is not looked up. */
  sender?: object | null;
  /** The open lookup it belongs to, used only for grouping. */
  growing: object | null;
  /** Moves its bytes to the memory for long-lived exchanges. Omitted if it has memory of its own. */
  moveTo?(copies: CopiedBytes): void;
}

export type Logged = 'with times' | 'without times';

export interface SeenLookup extends Lookup<SeenExchange> {
  readonly client: string;
  /** The names that the search path generated, in order. */
  readonly candidates: readonly string[];
}

/** True if its reply has no answer, which logs do not show. */
export function isEmpty({ answers, logged }: SeenExchange): boolean {
  return answers === 0 && logged === undefined;
}

/** The records in its reply's answer section. Empty if the reply cannot be read. */
export function answerRecords({
  reply,
  answers,
}: Pick<SeenExchange, 'reply' | 'answers'>): readonly DnsRecord[] {
  if (reply === null || answers === 0) return [];
  return readable(() => readMessage(reply).answer) ?? [];
}

/** Milliseconds from query to reply, or null if there is no reply. */
export function latencyOf({
  sentMs,
  repliedMs,
}: Pick<Exchange, 'sentMs' | 'repliedMs'>): number | null {
  return repliedMs === null ? null : repliedMs - sentMs;
}

/**
 * True if both query the same name. Truncated names are also compared by length. The capture may have more of one than
 * of the other. UDP and TCP headers differ in length, and a segment's second message is truncated sooner.
 */
export function haveSameName(one: SeenExchange, other: SeenExchange): boolean {
  if (one.name === other.name) return !isCut(one.name) || one.queryBytes === other.queryBytes;
  if (one.queryBytes !== other.queryBytes) return false;
  return beginsAs(one.name, other.name) || beginsAs(other.name, one.name);
}

/** True if one name is truncated and the other starts with it. */
function beginsAs(one: string, other: string): boolean {
  return one.length > 1 && isCut(one) && other.startsWith(one.slice(0, -1));
}

/** The size in bytes up to which a message always fits into an Ethernet packet. */
const PACKET_BYTES = 1400;
/** The size limit for UDP replies without EDNS (RFC 1035, section 4.2.1). */
export const UDP_BYTES = 512;

/** The reply's size in bytes, even if it was seen only in transit. A truncated reply counts as larger than a packet. */
export function bytesOf({ replyBytes, replyFlags, hops, strandedBytes }: SeenExchange): number {
  if ((replyFlags & FLAG.TC) !== 0) return PACKET_BYTES + 1;
  const behind = hops.length === 0 ? 0 : Math.max(...hops.map(({ replyBytes }) => replyBytes));
  return Math.max(replyBytes, behind, strandedBytes);
}

/** True if a reply this large takes more than one packet. */
export function needsFragments(bytes: number): boolean {
  return bytes > PACKET_BYTES;
}

/** True if the query should have been answered but was not. Queries at the end of a capture do not count. */
export function isLost({ ending }: Pick<SeenExchange, 'ending'>): boolean {
  return ending === 'lost' || ending === 'retried';
}

/** The queries that are not counted because their replies may have come after the end. Empty if there are none. */
export function unfinishedText(count: number): string {
  return count === 0 ? '' : `, ${count} more still waiting at the end`;
}

/**
 * The times of the first and last query, in milliseconds since 1970, or Infinity and -Infinity if there are no queries.
 */
export function sentSpan(all: readonly { readonly sentMs: number }[]): {
  readonly fromMs: number;
  readonly toMs: number;
} {
  let [fromMs, toMs] = [Infinity, -Infinity];
  for (const { sentMs } of all) {
    fromMs = Math.min(fromMs, sentMs);
    toMs = Math.max(toMs, sentMs);
  }
  return { fromMs, toMs };
}
