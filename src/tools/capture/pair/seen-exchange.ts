/** A query and its reply as a capture shows them, and the lookups that they belong to. */
import type { Exchange, Lookup, Peer } from '../../../server/wire/exchange.ts';
import { FLAG } from '../../../server/wire/iana.ts';
import type { Asker } from './asker.ts';
import type { CopiedBytes } from './copied-bytes.ts';
import { isCut } from './message-head.ts';

/**
 * The same query behind a translation of addresses: asked at a service's address, and taken to a
 * pod.
 */
export interface Hop {
  readonly client: Peer;
  readonly server: ServerPeer;
  readonly sentMs: number;
  repliedMs: number | null;
  /** Interface of the capture on which it was seen. */
  readonly port: number;
  /** Bytes of the reply. */
  replyBytes: number;
}

export interface ServerPeer extends Peer {
  /** Its address, where `address` is a name with the port in it (`ServerNames`). */
  readonly host?: string;
}

/** The address of a server, without the port that its name may have. */
export function addressOf({ address, host }: ServerPeer): string {
  return host ?? address;
}

/** What of a reply does not fit its query: the id, the question, or the QR flag. */
export type Misfit = 'id' | 'question' | 'flag';

/** Why an exchange is over. `open`: the capture ended before it could be known. */
export type Ending = 'waiting' | 'answered' | 'retried' | 'lost' | 'open';

/**
 * An exchange of a capture; what is read from its bytes stands beside them, as it is asked for so
 * often.
 */
export interface SeenExchange extends Exchange {
  readonly protocol: 'udp' | 'tcp';
  server: ServerPeer;
  /**
   * Absolute, lower case; what the capture has only the beginning of ends in `…` (`isCut`), or is
   * empty.
   */
  readonly name: string;
  readonly type: number;
  readonly id: number;
  /** Identification of the query's IP packet (IPv4); 0: it has none, or is of no packet. */
  readonly ipId: number;
  /**
   * What the query's OPT offers; 0 = it has none; 512 where it has one that the capture cuts off.
   */
  readonly udpSize: number;
  readonly cookie: boolean;
  readonly capitals: boolean;
  /** Frames of the capture; 0 = none. */
  readonly queryFrame: number;
  replyFrame: number;
  repliedMs: number | null;
  /** Length of the query as it passed, of which the capture may have only the beginning. */
  readonly queryBytes: number;
  /**
   * Length of the reply as it passed, of which the capture may have only the beginning; 0 without
   * one.
   */
  readonly replyBytes: number;
  /** Of the reply; -1 without one. */
  rcode: number;
  /** Second header word of the reply. */
  replyFlags: number;
  /** Records in the reply's answer section. */
  answers: number;
  ending: Ending;
  /** 1 = first; counts how often this very question was sent from this port with this id. */
  readonly attempt: number;
  /** The same query further on its way, in order. */
  hops: readonly Hop[];
  /**
   * Bytes of a reply that was seen on its way, and not where the query had come from; 0: none was.
   */
  strandedBytes: number;
  /** Who answered instead of the server that was asked. */
  stray: Peer | null;
  /** What came to its socket instead of a reply that fits; absent: of no packets. */
  misfit?: Misfit | null;
  /** Whether the UDP checksum of its reply is wrong; absent: of no packets. */
  damaged?: boolean;
  /**
   * Of a line of a log: which options its query had is not known; and of one without times nothing
   * of when. Absent: of a message.
   */
  readonly logged?: Logged;
  /** Who asked; absent or null: nobody looked. Of an exchange that is over. */
  asker?: Asker | null;
  /** Who answered, behind a translation of addresses; as above. */
  answerer?: Asker | null;
  /** The server behind a translation that no packet shows, as the kernel tracks it. */
  behind?: Peer | null;
  /** The lookup that it is of, while that grows: of its grouping alone. */
  growing: object | null;
  /**
   * Moves its bytes to where those stand that outlive the others; absent: they stand by themselves.
   */
  moveTo?(copies: CopiedBytes): void;
}

/** What a log tells of the times of its lines. */
export type Logged = 'with times' | 'without times';

/** A lookup of a capture. */
export interface SeenLookup extends Lookup<SeenExchange> {
  readonly client: string;
  /** The names that were asked for, in order: what the search path made of the name. */
  readonly candidates: readonly string[];
}

/** Whether its reply has no answer. A log does not tell. */
export function isEmpty({ answers, logged }: SeenExchange): boolean {
  return answers === 0 && logged === undefined;
}

/** Milliseconds from the query to its reply; null without one. */
export function latencyOf({
  sentMs,
  repliedMs,
}: Pick<Exchange, 'sentMs' | 'repliedMs'>): number | null {
  return repliedMs === null ? null : repliedMs - sentMs;
}

/**
 * Whether both ask for the same name; names of which the capture has only the beginning are told by
 * their lengths as well. Of two questions for one name it may have more of the one: headers differ
 * from UDP to TCP, and of two in a segment the second is cut sooner.
 */
export function haveSameName(one: SeenExchange, other: SeenExchange): boolean {
  if (one.name === other.name) return !isCut(one.name) || one.queryBytes === other.queryBytes;
  if (one.queryBytes !== other.queryBytes) return false;
  return beginsAs(one.name, other.name) || beginsAs(other.name, one.name);
}

/** Whether the one is a name of which all that is there is the beginning of the other. */
function beginsAs(one: string, other: string): boolean {
  return one.length > 1 && isCut(one) && other.startsWith(one.slice(0, -1));
}

/** What fits into a packet of Ethernet in any case, bytes of a message. */
const PACKET_BYTES = 1400;
/** What every reply over UDP may have (RFC 1035 section 4.2.1), and without EDNS none more than. */
export const UDP_BYTES = 512;

/**
 * Bytes of the reply, be it one that was only seen on its way; a truncated one counts as more than
 * fits into a packet.
 */
export function bytesOf({ replyBytes, replyFlags, hops, strandedBytes }: SeenExchange): number {
  if ((replyFlags & FLAG.TC) !== 0) return PACKET_BYTES + 1;
  const behind = hops.length === 0 ? 0 : Math.max(...hops.map(({ replyBytes }) => replyBytes));
  return Math.max(replyBytes, behind, strandedBytes);
}

/** Whether a reply of so many bytes is more than one packet. */
export function needsFragments(bytes: number): boolean {
  return bytes > PACKET_BYTES;
}

/**
 * Whether the query got no reply and should have: what the end of the capture cut off is not
 * counted.
 */
export function isLost({ ending }: Pick<SeenExchange, 'ending'>): boolean {
  return ending === 'lost' || ending === 'retried';
}

/**
 * When the first and the last of these were sent, milliseconds since 1970; Infinity and -Infinity:
 * there are none.
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
