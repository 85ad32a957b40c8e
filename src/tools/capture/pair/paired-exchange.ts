/** An exchange made from packets. Its messages are slices of shared memory that are created on access. */
import type { Peer } from '../../../server/wire/exchange.ts';
import { FLAG } from '../../../server/wire/iana.ts';
import type { PassingMessage } from '../read/packets/dissect.ts';
import type { CopiedBytes } from './copied-bytes.ts';
import type { MessageHead } from './message-head.ts';
import type { Ending, Hop, Misfit, SeenExchange, ServerPeer } from './seen-exchange.ts';

const noHops: readonly Hop[] = [];

/**
 * The last view of a reply. Each finding that looks at an exchange reads its reply, and a view takes more memory and
 * time than most of them need. Bytes in a slab never change.
 */
let view: Uint8Array = new Uint8Array(0);
let viewedSlab: Uint8Array | null = null;

export class PairedExchange implements SeenExchange {
  readonly protocol: 'udp' | 'tcp';
  readonly client: Peer;
  server: ServerPeer;
  readonly sentMs: number;
  readonly name: string;
  readonly type: number;
  readonly id: number;
  readonly ipId: number;
  readonly udpSize: number;
  readonly cookie: boolean;
  readonly capitals: boolean;
  readonly queryBytes: number;
  readonly queryFrame: number;
  readonly attempt: number;
  replyFrame: number = 0;
  repliedMs: number | null = null;
  replyBytes: number = 0;
  rcode: number = -1;
  replyFlags: number = 0;
  answers: number = 0;
  ending: Ending = 'waiting';
  hops: readonly Hop[] = noHops;
  strandedBytes: number = 0;
  stray: Peer | null = null;
  routed: boolean = false;
  growing: object | null = null;
  // A capture has a million exchanges and doctor stores tens of thousands, so what few have takes no memory in the others.
  declare isStrayReply?: boolean;
  declare misfit?: Misfit | null;
  declare damaged?: boolean;
  declare damagedQuery?: boolean;
  #querySlab: Uint8Array;
  #queryAt: number;
  /** The number of bytes in the capture. */
  readonly #queryLength: number;
  #replySlab: Uint8Array | null = null;
  #replyAt = 0;
  /** The number of bytes in the capture. */
  #replyEnd = 0;

  constructor(
    message: PassingMessage,
    head: MessageHead,
    client: Peer,
    server: Peer,
    attempt: number,
    copies: CopiedBytes,
  ) {
    if (message.damaged === true) this.damagedQuery = true;
    this.protocol = message.protocol;
    this.client = client;
    this.server = server;
    this.sentMs = message.timeMs;
    this.name = head.name;
    this.type = head.type;
    this.id = head.id;
    // dnstap messages have no packet and therefore no TTL.
    this.ipId = message.ttl === 0 ? 0 : message.ipId;
    this.udpSize = head.udpSize;
    this.cookie = head.cookie;
    this.capitals = head.capitals;
    this.queryFrame = message.frame;
    this.attempt = attempt;
    this.#queryAt = copies.add(message.bytes, message.start, message.end);
    this.#querySlab = copies.slab;
    this.#queryLength = message.end - message.start;
    this.queryBytes = message.size;
  }

  get query(): Uint8Array {
    return this.#querySlab.subarray(this.#queryAt, this.#queryAt + this.#queryLength);
  }

  get reply(): Uint8Array | null {
    if (this.#replySlab === null) return null;
    const isViewed =
      viewedSlab === this.#replySlab &&
      view.byteOffset === viewedSlab.byteOffset + this.#replyAt &&
      view.length === this.#replyEnd - this.#replyAt;
    if (!isViewed) {
      viewedSlab = this.#replySlab;
      view = viewedSlab.subarray(this.#replyAt, this.#replyEnd);
    }
    return view;
  }

  answer(message: PassingMessage, head: MessageHead, copies: CopiedBytes): void {
    this.#replyAt = copies.add(message.bytes, message.start, message.end);
    this.#replySlab = copies.slab;
    this.#replyEnd = this.#replyAt + message.end - message.start;
    this.replyBytes = message.size;
    this.repliedMs = message.timeMs;
    this.replyFrame = message.frame;
    this.rcode = head.flags & FLAG.RCODE;
    this.replyFlags = head.flags;
    this.answers = head.answers;
    if (message.damaged === true || this.damaged === true) this.damaged = message.damaged ?? false;
    if (this.isStrayReply === true) this.isStrayReply = false;
  }

  /** Called if the client did not accept the reply. */
  dropReply(): void {
    this.#replySlab = null;
    this.replyBytes = 0;
    this.repliedMs = null;
    this.replyFrame = 0;
    this.rcode = -1;
    this.replyFlags = 0;
    this.answers = 0;
  }

  moveTo(copies: CopiedBytes): void {
    if (!copies.has(this.#querySlab)) {
      const end = this.#queryAt + this.#queryLength;
      this.#queryAt = copies.add(this.#querySlab, this.#queryAt, end);
      this.#querySlab = copies.slab;
    }
    if (this.#replySlab === null || copies.has(this.#replySlab)) return;
    const length = this.#replyEnd - this.#replyAt;
    this.#replyAt = copies.add(this.#replySlab, this.#replyAt, this.#replyEnd);
    this.#replyEnd = this.#replyAt + length;
    this.#replySlab = copies.slab;
  }
}
