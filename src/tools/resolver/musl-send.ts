/**
 * The sending half of musl for a single name (src/network/res_msend.c). It queries all servers at once and repeats
 * unanswered questions after timeout / attempts. SERVFAIL is retried immediately, up to a few times, while other errors
 * are ignored. Since 1.2.4, truncated replies are fetched over TCP.
 */
import { parseAddress, printAddress } from '../../server/base/ip.ts';
import { recordBytes, questionBytes, type ClientReply } from './reply.ts';
import { waitForAny, type QueryToSend, type Socket, type SentQuery } from './network.ts';
import type { ModelContext } from './client.ts';
import type { MuslTraits } from './musl-releases.ts';
import type { ResolvConf } from './resolv-conf.ts';
import { cite } from './resolver-rules.ts';
import { note } from './trace.ts';

export interface MuslAnswer {
  readonly reply: ClientReply;
  readonly exchange: SentQuery | null;
}

/** The questions for a name, which are sent to all servers at once until each has an answer or time runs out. */
export class MuslExchange {
  readonly #context: ModelContext;
  readonly #conf: ResolvConf;
  readonly #queries: readonly QueryToSend[];
  readonly #traits: MuslTraits;
  readonly #answers: (MuslAnswer | null)[];
  /** TCP connections opened after truncated replies, by question. */
  readonly #streams = new Map<number, Socket>();
  #udpDone = false;
  #failed = false;
  #resends = 0;

  constructor(
    context: ModelContext,
    conf: ResolvConf,
    queries: readonly QueryToSend[],
    traits: MuslTraits,
  ) {
    this.#context = context;
    this.#conf = conf;
    this.#queries = queries;
    this.#traits = traits;
    this.#answers = queries.map(() => null);
  }

  /** @returns the answer to each question, or null if there is none */
  async run(): Promise<readonly (MuslAnswer | null)[]> {
    const { clock } = this.#context.network;
    const { timeoutMs, attempts } = this.#conf;
    const intervalMs = Math.trunc(timeoutMs / Math.max(1, attempts));
    // poll() may return up to a thousandth late, which decides whether there is still time for a last send.
    const wakeMs = intervalMs * 1.001 + 0.1;
    const socket = this.#context.network.udp();
    const start = clock.now();
    let sentAt = -Infinity;
    try {
      while (clock.now() - start < timeoutMs && !this.#complete() && !this.#failed) {
        if (clock.now() - sentAt >= intervalMs) {
          this.#sendAll(socket);
          sentAt = clock.now();
          this.#resends = 2 * this.#queries.length;
        }
        await waitForAny(
          clock,
          [...(this.#udpDone ? [] : [socket]), ...this.#streams.values()],
          sentAt + wakeMs,
        );
        // Replies that arrive at the same moment are read together.
        await new Promise<void>((resolve) => clock.after(0, resolve));
        await this.#readUdp(socket);
        this.#readStreams();
      }
    } finally {
      socket.close();
      for (const stream of this.#streams.values()) stream.close();
    }
    return this.#answers;
  }

  #complete(): boolean {
    return this.#answers.every((answer) => answer !== null);
  }

  #sendAll(socket: Socket): void {
    this.#queries.forEach((query, index) => {
      if (this.#answers[index] !== null || this.#streams.has(index)) return;
      for (const server of this.#conf.servers) socket.send(query, server);
    });
  }

  async #readUdp(socket: Socket): Promise<void> {
    // musl does not wait for a connection while there are other replies to read.
    const truncated = new Map<number, { readonly query: QueryToSend; readonly server: string }>();
    for (let arrival = socket.take(); arrival !== null; arrival = socket.take()) {
      // The socket is not connected, so it receives no ICMP errors.
      if (arrival.kind === 'fault') continue;
      const { reply, exchange, server } = arrival;
      // Any configured server may answer. The reply's ID is checked, but not its question.
      if (!this.#conf.servers.includes(server)) continue;
      const index = this.#queries.findIndex((query) => query.id === reply.id);
      const query = this.#queries[index];
      if (query === undefined || this.#answers[index] !== null) continue;
      if (this.#streams.has(index) || truncated.has(index)) continue;
      if (reply.rcode === 'SERVFAIL') {
        if (this.#resends > 0) {
          this.#resends--;
          note(exchange, `SERVFAIL: musl sends the query again at once. ${cite('musl-servfail')}`);
          socket.send(query, server);
        } else
          note(exchange, `SERVFAIL: musl waits for the next interval. ${cite('musl-servfail')}`);
        continue;
      }
      if (reply.rcode !== 'NOERROR' && reply.rcode !== 'NXDOMAIN') {
        note(exchange, `${reply.rcode}: musl ignores it and keeps waiting. ${cite('musl-ignore')}`);
        continue;
      }
      const cutOff = reply.size > this.#traits.buffer;
      if ((reply.truncated || cutOff) && this.#traits.tcp) {
        note(exchange, `Truncated: musl repeats this query over TCP. ${cite('musl-tcp')}`);
        truncated.set(index, { query, server });
        continue;
      }
      if (reply.truncated)
        note(
          exchange,
          `Truncated, and this musl does not support TCP, so it uses what it has. ${cite('musl-tcp')}`,
        );
      this.#answers[index] = { reply: this.#received(reply, index), exchange };
    }
    for (const [index, { query, server }] of truncated) {
      await this.#startTcp(index, query, server);
    }
    this.#udpDone = this.#queries.every(
      (_, index) => this.#answers[index] !== null || this.#streams.has(index),
    );
  }

  async #startTcp(index: number, query: QueryToSend, server: string): Promise<void> {
    const stream = await this.#context.network.tcp(server, Infinity);
    if (typeof stream === 'string') {
      this.#context.trace.step(`TCP to ${server} is refused: musl stops waiting`);
      this.#failed = true;
      return;
    }
    stream.send(query, server);
    this.#streams.set(index, stream);
  }

  #readStreams(): void {
    for (const [index, stream] of this.#streams) {
      const arrival = stream.take();
      if (arrival === null) continue;
      const good =
        arrival.kind === 'reply' &&
        (arrival.reply.rcode === 'NOERROR' || arrival.reply.rcode === 'NXDOMAIN');
      if (!good) {
        this.#failed = true;
        return;
      }
      const { reply, exchange } = arrival;
      this.#answers[index] = { reply: this.#received(reply, index), exchange };
      stream.close();
      this.#streams.delete(index);
    }
  }

  /** The part of a reply that musl reads, which is the records in the buffer unless there are too many. */
  #received(reply: ClientReply, index: number): ClientReply {
    const { buffer, mostRecords, tcp } = this.#traits;
    // musl's loop over the question stops at the first non-ASCII byte, so it never finds the records.
    if (/\\(1[3-9]|12[89]|2)/.test(reply.name)) return { ...reply, answer: [] };
    if (reply.answer.length + 1 > mostRecords) return { ...reply, answer: [] };
    if (reply.size <= buffer) return reply;
    return tcp ? whole(reply, buffer) : cut(reply, buffer, this.#neighbour(index));
  }

  /**
   * The bytes that follow the receive buffer in memory. For the first buffer, these are the ID and flags of the other
   * reply.
   */
  #neighbour(index: number): readonly number[] {
    const other = index === 0 ? this.#queries[1] : undefined;
    return other === undefined ? [] : [other.id >> 8, other.id & 0xff, 0x85, 0x80];
  }
}

/** Returns the reply with only those records that are entirely in the buffer. */
function whole(reply: ClientReply, buffer: number): ClientReply {
  let at = questionBytes(reply.name);
  const answer = reply.answer.filter((record) => {
    at += recordBytes(record, true);
    return at <= buffer;
  });
  return { ...reply, answer };
}

/**
 * The part of an oversized reply that musl reads without TCP, which is the records that start inside the buffer. Record
 * lengths are checked too loosely, so the last address may end with bytes from beyond the buffer.
 */
function cut(reply: ClientReply, buffer: number, neighbour: readonly number[]): ClientReply {
  let at = questionBytes(reply.name);
  const kept = [];
  for (const record of reply.answer) {
    const bytes = recordBytes(record, true);
    const dataAt = at + bytes - (record.type === 'A' ? 4 : record.type === 'AAAA' ? 16 : 0);
    if (at + 2 + (bytes - 12) > buffer || dataAt > buffer) break;
    const missing = at + bytes - buffer;
    if (missing <= 0) kept.push(record);
    else if (record.type === 'A' || record.type === 'AAAA') {
      const data = [...(parseAddress(record.data) ?? [])].map((byte, i, all) => {
        const beyond = i - (all.length - missing);
        return beyond < 0 ? byte : (neighbour[beyond] ?? 0);
      });
      kept.push({ ...record, data: printAddress(Uint8Array.from(data)) });
    }
    at += bytes;
  }
  return { ...reply, answer: kept };
}
