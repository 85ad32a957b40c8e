/** Writes queries, replies and upstream exchanges as dnstap messages, within a worker. */
import { LineWriter, type LineRingMemory } from '../../base/line-ring.ts';
import type { Clock } from '../../base/clock.ts';
import { parseAddress } from '../../base/ip.ts';
import type { ExchangeTap, EndedExchange } from '../contract/ports.ts';
import { DnstapWriter, TAP, type TapPeer } from '../../wire/dnstap.ts';
import { compileFormat } from '../contract/log-format.ts';
import type { Query } from '../../transport/query.ts';
import { silence, type Reply } from '../../wire/reply.ts';
import { stamp, STAMP_ROOM } from '../../wire/stamp.ts';

/** Milliseconds between two readings of the system clock, which may be adjusted in between. */
const LOOK_MS = 1000;

/** Size in bytes. A longer query is omitted from its reply's message. */
const QUERY_MAX = 4096;

/** Writes a worker's traffic as frames into shared memory. Nothing here waits for readers. */
export class Tap implements ExchangeTap {
  readonly #writer: DnstapWriter;
  readonly #full: boolean;
  readonly #extra: ReturnType<typeof compileFormat> | null;
  readonly #clock: Clock;
  #ring: LineWriter | null = null;
  /** Wall-clock time at the monotonic clock's zero, in milliseconds since 1970. */
  #epoch = 0;
  #lookAt = -Infinity;
  readonly #upstreams = new Map<string, TapPeer>();

  constructor(prefix: Uint8Array, full: boolean, extra: string, clock: Clock) {
    this.#writer = new DnstapWriter(prefix, STAMP_ROOM + QUERY_MAX);
    this.#full = full;
    this.#extra = extra === '' ? null : compileFormat(extra);
    this.#clock = clock;
  }

  use(ring: LineRingMemory): void {
    this.#ring = new LineWriter(ring);
  }

  query(query: Query): void {
    const writer = this.#writer;
    const { arrived, family, proto } = query;
    writer.begin(TAP.CLIENT_QUERY, this.#extraOf(query, silence, 0));
    writer.socket(family, proto, query, null);
    writer.queryTime(this.#wall(arrived));
    if (this.#full) writer.queryMessage(query.bytes, query.start, query.end);
    this.#send();
  }

  /** Writes a CLIENT_RESPONSE with the reply as the client receives it. */
  reply(query: Query, reply: Reply, hasQuery = false): void {
    if (reply === silence) return;
    const writer = this.#writer;
    const { arrived, family, proto } = query;
    const now = this.#clock.now();
    writer.begin(TAP.CLIENT_RESPONSE, this.#extraOf(query, reply, now - arrived));
    writer.socket(family, proto, query, null);
    writer.queryTime(this.#wall(arrived));
    if (hasQuery && query.end - query.start <= QUERY_MAX)
      writer.queryMessage(query.bytes, query.start, query.end);
    writer.responseTime(this.#wall(now));
    if (this.#full) writer.responseBy((out, at) => stamp(reply, query, out, at));
    this.#send();
  }

  /** Writes query and reply in one message, so that a full ring never includes only one of them. */
  both(query: Query, reply: Reply): void {
    if (reply === silence) this.query(query);
    else this.reply(query, reply, true);
  }

  /** Writes a FORWARDER_QUERY, and a FORWARDER_RESPONSE if there is a reply. */
  exchanged(exchange: EndedExchange): void {
    this.#forwarded(exchange);
    if (exchange.reply !== null) this.exchangedBoth(exchange, false);
  }

  /** Writes query and reply in one message, or a FORWARDER_QUERY if no reply came. */
  exchangedBoth(exchange: EndedExchange, hasQuery = true): void {
    const { query, host, port, proto, sentAt, reply, start, end } = exchange;
    if (reply === null) return this.#forwarded(exchange);
    const writer = this.#writer;
    const to = this.#upstream(host, port);
    writer.begin(TAP.FORWARDER_RESPONSE, this.#extraOf(query, silence, 0));
    writer.socket(to.family, proto, null, to);
    writer.queryTime(this.#wall(sentAt));
    if (hasQuery && query.end - query.start <= QUERY_MAX)
      writer.queryMessage(query.bytes, query.start, query.end);
    writer.responseTime(this.#wall(this.#clock.now()));
    // The query went out with a random id, while the message above is the client's. Readers pair them by id.
    if (this.#full) writer.responseMessage(reply, start, end, query.id);
    this.#send();
  }

  #forwarded({ query, host, port, proto, sentAt }: EndedExchange): void {
    const writer = this.#writer;
    const to = this.#upstream(host, port);
    writer.begin(TAP.FORWARDER_QUERY, this.#extraOf(query, silence, 0));
    writer.socket(to.family, proto, null, to);
    writer.queryTime(this.#wall(sentAt));
    if (this.#full) writer.queryMessage(query.bytes, query.start, query.end);
    this.#send();
  }

  #extraOf(query: Query, reply: Reply, elapsedMs: number): string {
    return this.#extra === null ? '' : this.#extra(query, reply, elapsedMs);
  }

  #upstream(host: string, port: number): TapPeer {
    const key = `${host} ${port}`;
    const known = this.#upstreams.get(key);
    if (known !== undefined) return known;
    const peer = parseAddress(host.split('%')[0]!) ?? new Uint8Array(4);
    const family = peer.length === 4 ? 4 : 6;
    const made: TapPeer = { family, peer, peerAt: 0, peerPort: port };
    this.#upstreams.set(key, made);
    return made;
  }

  /** Converts a time on the clock to milliseconds since 1970. */
  #wall(time: number): number {
    if (time >= this.#lookAt) {
      this.#lookAt = time + LOOK_MS;
      this.#epoch = this.#clock.wall() - this.#clock.now();
    }
    return this.#epoch + time;
  }

  #send(): void {
    const writer = this.#writer;
    writer.endFrame();
    this.#ring?.writeBytes(writer.bytes, writer.start, writer.at);
  }
}
