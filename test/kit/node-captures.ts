/**
 * Captures on a node with 200 pods, in the form that `tcpdump` writes: glibc lookups along a search path, over IPv4 and
 * IPv6. Options select the fault and how many places on the node see each packet.
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import { seededRandom, type Random } from '../../src/server/base/random.ts';
import { LINK } from '../../src/tools/capture/read/packets/frame.ts';
import type { DnsRecord } from '../../src/server/wire/message.ts';
import { addressRecord, dnsMessage, linked, pcapFile, udpPacket } from './packets.ts';

export interface NodeCapture {
  /** The minimum number of packets. */
  readonly packets: number;
  /**
   * `losses`: in the second half, one packet in fifty is lost. `loop`: two servers send each other the queries for one
   * zone. `crowd`: each query comes from a different client and goes to a different server for a different name, and
   * half of them get no reply.
   */
  readonly trouble: 'none' | 'losses' | 'loop' | 'crowd';
  /**
   * With 1, packets are captured on one interface. With 3, they are captured with `-i any` on the node that runs both
   * pod and server. Each packet is then seen at the pod, the bridge and the server.
   */
  readonly sightings: 1 | 3;
}

const PODS = 200;
const NAMESPACES = 20;
const SERVICES = 500;
const OUTSIDE = 300;
/** Milliseconds from one lookup to the next. */
const PAUSE_MS = 1.3;
const LOSS_PERCENT = 2;
/** glibc's time-out. */
const AGAIN_MS = 5000;
/**
 * In a loop, one lookup in this many is for the looping zone. The others are the number of rounds and the length of
 * each.
 */
const ROUND_EVERY = 400;
const ROUNDS = 2500;
const ROUND_MS = 0.8;

const SERVICE = { 4: '10.96.0.10', 6: 'fd00:96::a' } as const;
const SERVERS = { 4: ['10.244.0.5', '10.244.0.6'], 6: ['fd00:244::5', 'fd00:244::6'] } as const;
const CORPORATE = '192.0.2.53';
const soa: DnsRecord = {
  name: 'cluster.local.',
  type: 6,
  class: 1,
  ttl: 5,
  data: {
    mname: 'ns.dns.cluster.local.',
    rname: 'hostmaster.cluster.local.',
    ...{ serial: 1, refresh: 7200, retry: 1800, expire: 86400, minimum: 5 },
  },
};

export function writeNodeCapture(path: string, capture: NodeCapture): void {
  const file = openSync(path, 'w');
  writeSync(file, pcapFile(LINK.SLL2, []));
  const traffic = new Traffic(capture, (bytes) => writeSync(file, bytes));
  while (traffic.count < capture.packets) traffic.lookup();
  traffic.end();
  closeSync(file);
}

/** A packet's source and destination, and the place where it is seen. */
interface Way {
  readonly from: string;
  readonly fromPort: number;
  readonly to: string;
  readonly toPort: number;
  readonly ttl: number;
  readonly port: number;
}

class Traffic {
  count = 0;
  readonly #capture: NodeCapture;
  readonly #write: (bytes: Uint8Array) => void;
  readonly #random: Random = seededRandom(7);
  readonly #messages = new Map<string, Uint8Array>();
  readonly #heads = new Map<string, Uint8Array>();
  #packets: { readonly timeMs: number; readonly bytes: Uint8Array }[] = [];
  #startMs = 1.7e12;
  #lookups = 0;
  #ipId = 0;

  constructor(capture: NodeCapture, write: (bytes: Uint8Array) => void) {
    this.#capture = capture;
    this.#write = write;
  }

  /** One getaddrinfo call in one of the pods. */
  lookup(): void {
    const nth = this.#lookups++;
    const pod = this.#random.integer(PODS);
    const namespace = `team-${pod % NAMESPACES}`;
    const path = [`${namespace}.svc.cluster.local.`, 'svc.cluster.local.', 'cluster.local.', ''];
    this.#startMs += PAUSE_MS;
    if (this.#capture.trouble === 'crowd') this.#stranger(nth);
    else if (this.#capture.trouble === 'loop' && nth % ROUND_EVERY === ROUND_EVERY - 1)
      this.#round(pod);
    else if (this.#random.integer(10) < 6) {
      const service = this.#random.integer(SERVICES);
      this.#walk(pod, `api-${service}.team-${service % NAMESPACES}.`, path.slice(0, 2));
    } else this.#walk(pod, `www.shop-${this.#random.integer(OUTSIDE)}.example.`, path);
    if (this.#packets.length > 20_000) this.#flush(this.#startMs);
  }

  end(): void {
    this.#flush(Infinity);
  }

  /** The last name in the search exists. */
  #walk(pod: number, stem: string, path: readonly string[]): void {
    const family = pod % 3 === 0 ? 6 : 4;
    let timeMs = this.#startMs;
    path.forEach((domain, at) => {
      const port = 32_768 + this.#random.integer(28_000);
      const [one, other] = (['A', 'AAAA'] as const).map((type) =>
        this.#exchange(
          pod,
          family,
          port,
          stem + domain,
          type,
          at === path.length - 1,
          timeMs,
          this.#random.integer(65_536),
        ),
      ) as [number, number];
      timeMs = Math.max(one, other) + 0.05;
    });
  }

  /** @returns the time when the reply arrived */
  #exchange(
    pod: number,
    family: 4 | 6,
    fromPort: number,
    name: string,
    type: 'A' | 'AAAA',
    isThere: boolean,
    timeMs: number,
    id: number,
  ): number {
    const from = family === 4 ? `10.244.1.${pod + 1}` : `fd00:244::1:${(pod + 1).toString(16)}`;
    const ends = { from, fromPort, to: SERVICE[family], toPort: 53 };
    const server = SERVERS[family][fromPort & 1]!;
    const { trouble, packets } = this.#capture;
    const lossy = trouble === 'losses' && this.count > packets / 2;
    const lost = lossy && this.#random.integer(100) < LOSS_PERCENT;
    this.#see(timeMs, ends, server, this.#message(name, type, id, null));
    if (lost)
      return this.#exchange(pod, family, fromPort, name, type, isThere, timeMs + AGAIN_MS, id);
    const tookMs = isThere && name.endsWith('.example.') ? 4 : 0.25;
    const reply = this.#message(name, type, id, isThere ? 'found' : 'absent');
    this.#see(
      timeMs + tookMs,
      { from: server, fromPort: 53, to: from, toPort: fromPort },
      SERVICE[family],
      reply,
    );
    return timeMs + tookMs;
  }

  #stranger(nth: number): void {
    const hex = (nth >> 16).toString(16) + ':' + (nth & 0xffff).toString(16);
    const ends = {
      from: `fd00:1::${hex}`,
      fromPort: 1024 + (nth % 64_000),
      to: `fd00:2::${hex}`,
      toPort: 53,
    };
    const [name, id] = [`x${nth}.crowd.example.`, nth & 0xffff];
    this.#heads.clear();
    this.#messages.clear();
    this.#see(this.#startMs, ends, ends.to, this.#message(name, 'A', id, null));
    if (nth % 2 === 0) return;
    const back = { from: ends.to, fromPort: 53, to: ends.from, toPort: ends.fromPort };
    this.#see(this.#startMs + 0.4, back, ends.to, this.#message(name, 'A', id, 'found'));
  }

  /** A query that two servers send back and forth until the first one gives up. */
  #round(pod: number): void {
    const name = `db-${this.#random.integer(20)}.corp.example.`;
    const ways = [
      [`10.244.1.${pod + 1}`, SERVERS[4][0]],
      [SERVERS[4][0], CORPORATE],
      [CORPORATE, SERVERS[4][0]],
    ] as const;
    for (let turn = 0; turn < ROUNDS; turn++) {
      const [from, to] = ways[turn === 0 ? 0 : 1 + (turn & 1)]!;
      const ends = { from, fromPort: 1024 + this.#random.integer(64_000), to, toPort: 53 };
      const id = this.#random.integer(65_536);
      const timeMs = this.#startMs + turn * ROUND_MS;
      this.#see(timeMs, ends, to, this.#message(name, 'A', id, null));
      // By then, the last queries have been answered with the first server's reply, sent when it timed out.
      if (turn % 5 === 0)
        this.#see(
          timeMs + ROUNDS * ROUND_MS,
          { from: to, fromPort: 53, to: from, toPort: ends.fromPort },
          from,
          this.#message(name, 'A', id, 'failed'),
        );
    }
  }

  /**
   * A packet and its form after address translation. `other` is the address that replaces the original one: the
   * server's in a query, and the service's in a reply.
   */
  #see(
    timeMs: number,
    ends: {
      readonly from: string;
      readonly fromPort: number;
      readonly to: string;
      readonly toPort: number;
    },
    other: string,
    message: Uint8Array,
  ): void {
    const ipId = (this.#ipId = (this.#ipId % 65_535) + 1);
    const isReply = ends.fromPort === 53;
    const asSent = isReply && this.#capture.sightings === 1 ? { ...ends, from: other } : ends;
    this.#packet(timeMs, { ...asSent, ttl: 64, port: isReply ? 9 : 3 }, message, ipId);
    if (this.#capture.sightings === 1) return;
    const translated = isReply ? { ...ends, from: other } : { ...ends, to: other };
    const bridge = isReply ? ends : translated;
    this.#packet(timeMs + 0.01, { ...bridge, ttl: 63, port: 5 }, message, ipId);
    this.#packet(timeMs + 0.02, { ...translated, ttl: 63, port: isReply ? 3 : 9 }, message, ipId);
  }

  #packet(timeMs: number, way: Way, message: Uint8Array, ipId: number): void {
    const head = this.#head(way);
    const six = way.from.includes(':');
    const at = 20 + (six ? 40 : 20);
    const bytes = new Uint8Array(at + 8 + message.length);
    bytes.set(head);
    bytes.set(message, at + 8);
    const view = new DataView(bytes.buffer);
    if (six) view.setUint16(20 + 4, 8 + message.length);
    else {
      view.setUint16(20 + 2, 28 + message.length);
      view.setUint16(20 + 4, ipId);
    }
    view.setUint16(at, way.fromPort);
    view.setUint16(at + 2, way.toPort);
    view.setUint16(at + 4, 8 + message.length);
    this.#packets.push({ timeMs, bytes });
    this.count++;
  }

  /** The constant part of all packets on a path: the headers with addresses, but without lengths, ports and IDs. */
  #head({ from, to, ttl, port }: Way): Uint8Array {
    const key = `${from} ${to} ${port} ${ttl}`;
    let head = this.#heads.get(key);
    if (head === undefined) {
      const packet = udpPacket({ from, fromPort: 0, to, toPort: 0 }, new Uint8Array(0), 0, ttl);
      head = linked(packet, LINK.SLL2);
      head[7] = port;
      this.#heads.set(key, head);
    }
    return head;
  }

  #message(
    name: string,
    type: 'A' | 'AAAA',
    id: number,
    reply: 'found' | 'absent' | 'failed' | null,
  ): Uint8Array {
    const key = `${type} ${name} ${reply}`;
    let message = this.#messages.get(key);
    if (message === undefined) {
      message = dnsMessage(name, type, {
        reply: reply !== null,
        rcode: reply === 'absent' ? 3 : reply === 'failed' ? 2 : 0,
        answer:
          reply === 'found'
            ? [addressRecord(name, type === 'A' ? '192.0.2.7' : '2001:db8::7')]
            : [],
        authority: reply === 'absent' ? [soa] : [],
      });
      this.#messages.set(key, message);
    }
    const own = message.slice();
    own[0] = id >> 8;
    own[1] = id & 0xff;
    return own;
  }

  /** Writes the packets before `untilMs`, because no later event can add any before that. */
  #flush(untilMs: number): void {
    this.#packets.sort((one, other) => one.timeMs - other.timeMs);
    const end = this.#packets.findIndex(({ timeMs }) => timeMs >= untilMs);
    const due = this.#packets.splice(0, end < 0 ? this.#packets.length : end);
    const out = Buffer.alloc(due.reduce((sum, { bytes }) => sum + 16 + bytes.length, 0));
    let at = 0;
    for (const { timeMs, bytes } of due) {
      const micros = Math.round(timeMs * 1000);
      out.writeUInt32LE(Math.floor(micros / 1e6), at);
      out.writeUInt32LE(micros % 1e6, at + 4);
      out.writeUInt32LE(bytes.length, at + 8);
      out.writeUInt32LE(bytes.length, at + 12);
      out.set(bytes, at + 16);
      at += 16 + bytes.length;
    }
    this.#write(out);
  }
}
