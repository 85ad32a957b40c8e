/** A query and its reply in a capture, and the lookups that they belong to. */
import type { Exchange, Lookup, Peer } from '../../../server/wire/exchange.ts';
import { FLAG } from '../../../server/wire/iana.ts';
import type { Asker } from './asker.ts';
import type { CopiedBytes } from './copied-bytes.ts';
import { isCut } from './message-head.ts';

/** The same query after address translation: from a service's address to a pod's. */
export interface Hop {
  readonly client: Peer;
  readonly server: ServerPeer;
  readonly sentMs: number;
  repliedMs: number | null;
  /** Interface of the capture. */
  readonly port: number;
  replyBytes: number;
}

export interface ServerPeer extends Peer {
  /** Its address, where `address` is a name that includes the port (`ServerNames`). */
  readonly host?: string;
}

/** Without the port that a name may include. */
export function addressOf({ address, host }: ServerPeer): string {
  return host ?? address;
}

/** The part of a reply that does not match its query: the id, the question, or the QR flag. */
export type Misfit = 'id' | 'question' | 'flag';

/** The reason why an exchange ended. `open`: the capture ended before it was known. */
export type Ending = 'waiting' | 'answered' | 'retried' | 'lost' | 'open';

/** An exchange of a capture. Frequently used fields are parsed in advance. */
export interface SeenExchange extends Exchange {
  readonly protocol: 'udp' | 'tcp';
  server: ServerPeer;
  /** Absolute, lower case; a cut name ends in `…` (`isCut`), or is empty. */
  readonly name: string;
  readonly type: number;
  readonly id: number;
  /** Identification of the query's IPv4 packet; 0: none. */
  readonly ipId: number;
  /** UDP size in the query's OPT; 0: no OPT; 512: it is cut off. */
  readonly udpSize: number;
  readonly cookie: boolean;
  readonly capitals: boolean;
  /** Frame number in the capture; 0: none. */
  readonly queryFrame: number;
  replyFrame: number;
  repliedMs: number | null;
  /** Length on the wire; the capture may have fewer bytes. */
  readonly queryBytes: number;
  /** Length on the wire; the capture may have fewer bytes; 0: no reply. */
  readonly replyBytes: number;
  /** -1: no reply. */
  rcode: number;
  /** Second header word of the reply. */
  replyFlags: number;
  /** Records in the reply's answer section. */
  answers: number;
  ending: Ending;
  /** 1: the first; counts how often this question was sent from this port with this id. */
  readonly attempt: number;
  /** The same query after each address translation, in order. */
  hops: readonly Hop[];
  /** Bytes of a reply that was seen on its path, but not at the client; 0: none. */
  strandedBytes: number;
  /** The server that answered instead of the target. */
  stray: Peer | null;
  /** The mismatching reply that reached its socket; absent: not from packets. */
  misfit?: Misfit | null;
  /** True if the UDP checksum of its reply is wrong; absent: not from packets. */
  damaged?: boolean;
  /** From a log line, which lacks the query's options and may lack times. Absent: from a message. */
  readonly logged?: Logged;
  /** Set once the exchange has ended; absent or null: not looked up. */
  asker?: Asker | null;
  /** The server after address translation; as above. */
  answerer?: Asker | null;
  /** The server after a translation that only the kernel's connection tracking shows. */
  behind?: Peer | null;
  /** The open lookup that it is in; internal to the grouping. */
  growing: object | null;
  /** Moves its bytes to the memory of long-lived exchanges; absent: it has its own memory. */
  moveTo?(copies: CopiedBytes): void;
}

export type Logged = 'with times' | 'without times';

export interface SeenLookup extends Lookup<SeenExchange> {
  readonly client: string;
  /** The names that the search path produced, in order. */
  readonly candidates: readonly string[];
}

/** True if its reply has no answer. A log does not show that. */
export function isEmpty({ answers, logged }: SeenExchange): boolean {
  return answers === 0 && logged === undefined;
}

/** Milliseconds from query to reply; null: no reply. */
export function latencyOf({
  sentMs,
  repliedMs,
}: Pick<Exchange, 'sentMs' | 'repliedMs'>): number | null {
  return repliedMs === null ? null : repliedMs - sentMs;
}

/**
 * True if both ask for the same name; cut names are compared by length too. The capture may have more of one:
 * headers of UDP and TCP differ in length, and the second message of a segment is cut sooner.
 */
export function haveSameName(one: SeenExchange, other: SeenExchange): boolean {
  if (one.name === other.name) return !isCut(one.name) || one.queryBytes === other.queryBytes;
  if (one.queryBytes !== other.queryBytes) return false;
  return beginsAs(one.name, other.name) || beginsAs(other.name, one.name);
}

/** True if the one is cut and the other begins with it. */
function beginsAs(one: string, other: string): boolean {
  return one.length > 1 && isCut(one) && other.startsWith(one.slice(0, -1));
}

/** Bytes of a message that fits into an Ethernet packet in any case. */
const PACKET_BYTES = 1400;
/** The limit of UDP replies without EDNS (RFC 1035, section 4.2.1). */
export const UDP_BYTES = 512;

/** Bytes of the reply, even if it was only seen on its way; a truncated reply counts as larger than a packet. */
export function bytesOf({ replyBytes, replyFlags, hops, strandedBytes }: SeenExchange): number {
  if ((replyFlags & FLAG.TC) !== 0) return PACKET_BYTES + 1;
  const behind = hops.length === 0 ? 0 : Math.max(...hops.map(({ replyBytes }) => replyBytes));
  return Math.max(replyBytes, behind, strandedBytes);
}

/** True if a reply of this size takes more than one packet. */
export function needsFragments(bytes: number): boolean {
  return bytes > PACKET_BYTES;
}

/** True if the query should have got a reply and did not; queries at the end of a capture do not count. */
export function isLost({ ending }: Pick<SeenExchange, 'ending'>): boolean {
  return ending === 'lost' || ending === 'retried';
}

/** The times of the first and the last query, milliseconds since 1970; Infinity and -Infinity: there are none. */
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
