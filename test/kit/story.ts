/**
 * Incidents as packets. Models of real resolvers share a clock and send their lookups through a network with one fault.
 * The packets are captured at the client.
 */
import { seededRandom, type Random } from '../../src/server/base/random.ts';
import { VirtualClock } from '../../src/server/base/virtual-clock.ts';
import type { Observations } from '../../src/tools/doctor/observe/observations.ts';
import { Examination } from '../../src/tools/doctor/examination.ts';
import type { Diagnosis } from '../../src/tools/doctor/diagnosis.ts';
import { Reading, usualPorts } from '../../src/tools/capture/read/reading.ts';
import { diagnoseWithParts, everything, type Part } from '../../src/tools/doctor/part-diagnosis.ts';
import { ReceivingSocket } from '../../src/tools/resolver/receiving-socket.ts';
import { findClient } from '../../src/tools/resolver/clients.ts';
import type {
  Arrival,
  Fault,
  ClientNetwork,
  QueryToSend,
  SentQuery,
  Socket,
} from '../../src/tools/resolver/network.ts';
import { queryBytes, readReply } from '../../src/tools/resolver/query-bytes.ts';
import { Trace } from '../../src/tools/resolver/trace.ts';
import {
  addressRecord,
  back,
  dnsMessage,
  framed,
  icmpError,
  ip,
  TCP,
  tcpPacket,
  udp,
  type Captured,
  type Ends,
} from './packets.ts';

export interface Fate {
  /** The query or the reply is lost. */
  readonly lost?: boolean;
  /** The milliseconds until the reply. */
  readonly tookMs?: number;
  readonly rcode?: number;
  readonly addresses?: readonly string[];
  /** Sets TC and omits records. */
  readonly truncated?: boolean;
  readonly cname?: string;
  /** The TTL of a negative answer's SOA. */
  readonly ttl?: number;
  /** For TCP, whether it is unanswered or refused. */
  readonly tcp?: 'dropped' | 'refused';
  /** The server behind the service's address, which is an additional hop in the capture. */
  readonly behind?: string;
  /** A different source address for the reply. */
  readonly from?: string;
  /** The reply is seen in the capture but does not reach the client. */
  readonly unreceived?: boolean;
  /** True if the client receives an ICMP port-unreachable message. */
  readonly unreachable?: boolean;
  /**
   * Returns a server's reply to these bytes, or null if it sends none. The fields above that describe replies are then
   * ignored.
   */
  ask?(query: Uint8Array): Promise<Uint8Array | null>;
}

export interface Passing {
  readonly atMs: number;
  readonly client: string;
  readonly port: number;
  readonly server: string;
  readonly name: string;
  readonly type: string;
  readonly protocol: 'udp' | 'tcp';
  /** The number of times that this client has sent this question from this port. */
  readonly attempt: number;
  /** Milliseconds since this port sent another question, or Infinity if it never has. */
  readonly sincePortMs: number;
  readonly random: Random;
}

export interface StoryClient {
  readonly address: string;
  /** The resolver's name, as for `--client`. */
  readonly resolver: string;
  readonly resolvConf?: string;
  readonly lookups: readonly { readonly atMs: number; readonly name: string }[];
}

export const STORY_START: number = Date.UTC(2026, 10, 22, 3, 7, 0);

/** The resolv.conf of pods in the `shop` namespace. */
export const podResolvConf: string =
  'nameserver 10.96.0.10\nsearch shop.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n';

/** The replies in a healthy cluster, for cluster names and a few external ones. */
export function healthy(passing: Passing): Fate {
  const { name, type, random } = passing;
  const tookMs = 0.3 + random.integer(1000) / 1000;
  const inside = name.endsWith('.cluster.local.');
  const exists = inside
    ? /^(?:[a-z0-9-]+)\.(?:shop|cache|kube-system)\.svc\.cluster\.local\.$/.test(name) &&
      !/^(?:api|www|no)\b/.test(name)
    : /(?:^|\.)(?:example\.com|example\.org)\.$/.test(name) && !/cluster|corp/.test(name);
  if (!exists) return { rcode: 3, tookMs };
  if (type === 'A')
    return {
      addresses: [inside ? '10.96.3.7' : '192.0.2.10'],
      tookMs: inside ? tookMs : tookMs + 8,
    };
  return { addresses: [], tookMs };
}

/** @returns packets in time order */
export async function play(
  clients: readonly StoryClient[],
  fate: (passing: Passing) => Fate,
  options: {
    readonly seed?: number;
    readonly limitMs?: number;
    readonly clock?: VirtualClock;
  } = {},
): Promise<Captured[]> {
  const clock = options.clock ?? new VirtualClock();
  const random = seededRandom(options.seed ?? 1);
  const packets: Captured[] = [];
  const all = clients.map(async (client, index) => {
    const found = findClient(client.resolver);
    if (found === null) throw new Error(`no resolver ${client.resolver}`);
    const network = new StoryNetwork(
      clock,
      client.address,
      fate,
      packets,
      seededRandom(random.integer(1 << 30) + index + 1),
      !client.resolver.startsWith('musl'),
    );
    const trace = new Trace(clock);
    await Promise.all(
      client.lookups.map(async ({ atMs, name }) => {
        await new Promise<void>((resolve) => clock.after(atMs, resolve));
        const session = found.open({
          network,
          trace,
          random: seededRandom(random.integer(1 << 30) + 1),
          settings: {
            resolvConf: client.resolvConf ?? podResolvConf,
            nsswitch: 'hosts: files dns\n',
            hosts: '127.0.0.1 localhost\n',
            hostAliases: null,
            env: {},
            host: { hostname: 'pod', addresses: [client.address], loopback: [4, 6] },
          },
        });
        await session.lookup({ name, families: [4, 6], addrConfig: false });
      }),
    );
  });
  await clock.run(
    Promise.all(all).then(() => undefined),
    options.limitMs ?? 600_000,
  );
  return packets.toSorted((one, other) => one.timeMs - other.timeMs);
}

/** doctor's findings for packets, counters and logs. */
export function examine(
  packets: readonly Captured[],
  lines: readonly string[] = [],
): Promise<Diagnosis> {
  const [whole] = look(packets, lines, [everything]);
  return diagnoseWithParts(whole!, (parts) => Promise.resolve(look(packets, lines, parts)));
}

/** The observations made from parts of packets, counters and logs. */
export function look(
  packets: readonly Captured[],
  lines: readonly string[],
  parts: readonly Part[],
): readonly Observations[] {
  const examination = new Examination(undefined, parts);
  const { domains, events, observed } = examination;
  const reading = new Reading(events, usualPorts, { domains });
  for (const { timeMs, bytes, port = 0 } of packets)
    reading.takeNetwork(bytes, 0, bytes.length, timeMs, port);
  reading.end();
  for (const text of lines) events.line({ text, timeMs: null, pod: '' }, 0);
  examination.noteUnread(reading);
  return observed;
}

/** Captures the packets of sockets in the example's network. */
class StoryNetwork implements ClientNetwork {
  readonly clock: VirtualClock;
  readonly serverPort = 53;
  readonly address: string;
  readonly fate: (passing: Passing) => Fate;
  readonly packets: Captured[];
  readonly random: Random;
  /** True if sockets are connected, in which case each has its own IP identifications. */
  readonly connects: boolean;
  readonly #asked = new Map<string, number>();
  readonly #last = new Map<number, { atMs: number; question: string }>();
  #packetId = 1;

  constructor(
    clock: VirtualClock,
    address: string,
    fate: (passing: Passing) => Fate,
    packets: Captured[],
    random: Random,
    connects: boolean,
  ) {
    this.connects = connects;
    this.clock = clock;
    this.address = address;
    this.fate = fate;
    this.packets = packets;
    this.random = random;
  }

  udp(): Socket {
    return new StorySocket(this, 'udp', null);
  }

  async tcp(server: string, until: number): Promise<Socket | Fault> {
    const socket = new StorySocket(this, 'tcp', server);
    const port = socket.sourcePort;
    const ends: Ends = { from: this.address, fromPort: port, to: server, toPort: 53 };
    this.put(0, tcpPacket(ends, 1000, TCP.SYN));
    const { tcp } = this.judge(socket, { name: '.', type: 'TCP' }, server);
    if (tcp === 'dropped') {
      for (const again of [1000, 3000])
        if (this.clock.now() + again < until) this.put(again, tcpPacket(ends, 1000, TCP.SYN));
      // The kernel gives up after two minutes.
      const patience = Math.min(127_000, Math.max(0, until - this.clock.now()));
      await new Promise<void>((resolve) => this.clock.after(patience, resolve));
      return 'timeout';
    }
    if (tcp === 'refused') {
      this.put(0.3, tcpPacket(back(ends), 1, TCP.RST | TCP.ACK));
      await new Promise<void>((resolve) => this.clock.after(0.3, resolve));
      return 'refused';
    }
    this.put(0.3, tcpPacket(back(ends), 5000, TCP.SYN | TCP.ACK));
    await new Promise<void>((resolve) => this.clock.after(0.4, resolve));
    return socket;
  }

  route(): Fault | null {
    return null;
  }

  nextPort(): number {
    return 20_000 + this.random.integer(40_000);
  }

  put(afterMs: number, bytes: Uint8Array): void {
    this.packets.push({ timeMs: STORY_START + this.clock.now() + afterMs, bytes });
  }

  packetId(): number {
    return (this.#packetId++ % 0xffff) + 1;
  }

  judge(
    socket: StorySocket,
    query: { readonly name: string; readonly type: string },
    server: string,
  ): Fate {
    const question = `${socket.sourcePort} ${query.type} ${query.name}`;
    const attempt = (this.#asked.get(question) ?? 0) + 1;
    this.#asked.set(question, attempt);
    const now = this.clock.now();
    const last = this.#last.get(socket.sourcePort);
    this.#last.set(socket.sourcePort, { atMs: now, question });
    return this.fate({
      atMs: now,
      client: this.address,
      port: socket.sourcePort,
      server,
      name: query.name.toLowerCase(),
      type: query.type,
      protocol: socket.protocol,
      attempt,
      sincePortMs: last === undefined || last.question === question ? Infinity : now - last.atMs,
      random: this.random,
    });
  }
}

class StorySocket extends ReceivingSocket {
  readonly protocol: 'udp' | 'tcp';
  readonly port: number;
  readonly sourcePort: number;
  readonly #network: StoryNetwork;
  readonly #peer: string | null;
  #closed = false;
  #sent = 0;
  #lastMs = 0;
  #sequence = 1001;
  #replySequence = 5001;

  constructor(network: StoryNetwork, protocol: 'udp' | 'tcp', peer: string | null) {
    super(network.clock);
    this.#network = network;
    this.protocol = protocol;
    this.#peer = peer;
    this.sourcePort = network.nextPort();
    this.port = this.sourcePort;
  }

  connect(): Fault | null {
    return null;
  }

  send(query: QueryToSend, server: string): SentQuery | Fault {
    const network = this.#network;
    const ends: Ends = { from: network.address, fromPort: this.sourcePort, to: server, toPort: 53 };
    const bytes = queryBytes(query);
    const fate = network.judge(this, query, server);
    const counted = network.packetId();
    const id = network.connects ? ownIpId(this.sourcePort, ++this.#sent) : counted;
    // Simultaneous queries are sent one after the other.
    const sent = Math.max(
      0.01 + network.random.integer(40) / 1000,
      this.#lastMs + 0.03 - network.clock.now(),
    );
    this.#lastMs = network.clock.now() + sent;
    if (this.protocol === 'udp') {
      network.put(sent, ip(ends, 17, udp(ends, bytes), { id }));
      if (fate.behind !== undefined)
        network.put(
          sent + 0.02,
          ip({ ...ends, to: fate.behind }, 17, udp(ends, bytes), { id, ttl: 63 }),
        );
    } else {
      const segment = framed(bytes);
      network.put(sent, tcpPacket(ends, this.#sequence, TCP.PSH | TCP.ACK, segment));
      this.#sequence += segment.length;
    }
    const exchange = sentQuery(query, server, this, network.clock.now());
    if (fate.unreachable === true && this.protocol === 'udp') {
      network.put(
        sent + 0.1,
        icmpError(server, ip(ends, 17, udp(ends, bytes), { id }), 3, 3, network.address),
      );
      network.clock.after(0.2, () => this.#arrive({ kind: 'fault', fault: 'refused', server }));
      return exchange;
    }
    if (fate.lost === true) return exchange;
    const tookMs = fate.tookMs ?? 0.5;
    const deliver = (reply: Uint8Array): void => {
      network.clock.after(tookMs, () => this.#deliver(reply, ends, fate, exchange));
    };
    if (fate.ask === undefined) deliver(replyOf(query, fate));
    else
      void fate.ask(bytes).then((reply) => {
        if (reply !== null) deliver(reply);
      });
    return exchange;
  }

  #deliver(reply: Uint8Array, ends: Ends, fate: Fate, exchange: SentQuery): void {
    const network = this.#network;
    const { server } = exchange;
    const home = { ...back(ends), ...(fate.from === undefined ? {} : { from: fate.from }) };
    if (this.protocol === 'tcp') {
      const segment = framed(reply);
      network.put(0, tcpPacket(home, this.#replySequence, TCP.PSH | TCP.ACK, segment));
      this.#replySequence += segment.length;
    } else {
      const replyId = network.packetId();
      if (fate.behind !== undefined)
        network.put(
          -0.02,
          ip({ from: fate.behind, to: home.to }, 17, udp(home, reply), { id: replyId }),
        );
      network.put(0, ip(home, 17, udp(home, reply), { id: replyId }));
    }
    // A reply from a different address is not accepted.
    if (fate.from !== undefined || fate.unreceived === true) return;
    exchange.answer = 'answered';
    this.#arrive({ kind: 'reply', reply: readReply(reply), server, exchange });
  }

  close(): void {
    this.#closed = true;
    this.clear();
  }

  #arrive(arrival: Arrival): void {
    if (this.#closed || (this.#peer !== null && this.#peer !== arrival.server)) return;
    this.push(arrival);
  }
}

/** The IP identification of a connected socket's nth packet. Linux starts each socket at a random value. */
export function ownIpId(port: number, nth: number): number {
  return (((Math.imul(port, 40_503) >>> 0) + nth) % 0xffff) + 1;
}

function sentQuery(
  query: QueryToSend,
  server: string,
  socket: StorySocket,
  atMs: number,
): SentQuery {
  return {
    atMs,
    server,
    serverPort: 53,
    protocol: socket.protocol,
    port: socket.port,
    sourcePort: socket.sourcePort,
    turn: null,
    wireId: query.id,
    id: 1,
    name: query.name,
    type: query.type,
    edns: query.edns,
    ad: query.ad,
    why: query.why,
    answer: 'DROP',
    answeredAtMs: null,
    reply: null,
    outcome: '',
    lookup: 0,
    relayed: false,
  };
}

function replyOf({ id, name, type }: QueryToSend, fate: Fate): Uint8Array {
  const { rcode = 0, addresses = [], truncated = false, ttl = 30, cname } = fate;
  const zone = name.endsWith('cluster.local.') ? 'cluster.local.' : 'example.';
  const soa = {
    name: zone,
    type: 6,
    class: 1,
    ttl,
    data: {
      mname: `ns.${zone}`,
      rname: `host.${zone}`,
      serial: 1,
      refresh: 7200,
      retry: 1800,
      expire: 86_400,
      minimum: ttl,
    },
  };
  const alias =
    cname === undefined ? [] : [{ name, type: 5, class: 1, ttl: 30, data: { target: cname } }];
  return dnsMessage(name, type, {
    id,
    reply: true,
    flags: 0x8180 | (truncated ? 0x0200 : 0),
    rcode,
    answer: [
      ...alias,
      ...addresses.map((each) => addressRecord(cname ?? name, ofFamily(each, type))),
    ],
    authority: addresses.length === 0 && !truncated && rcode !== 2 && rcode !== 5 ? [soa] : [],
  });
}

/** The address or, for AAAA, an IPv6 address that is derived from it. */
function ofFamily(address: string, type: string): string {
  return type !== 'AAAA' || address.includes(':')
    ? address
    : `2001:db8::${address.replaceAll('.', ':')}`;
}
