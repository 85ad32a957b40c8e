/** Real sockets for resolver models, as used by `ndots trace` without `--plan`. */
import { createSocket, type Socket as Dgram } from 'node:dgram';
import { connect, type Socket as Stream } from 'node:net';
import { systemClock, type Clock } from '../../server/base/clock.ts';
import type { Random } from '../../server/base/random.ts';
import { ReceivingSocket } from '../../tools/resolver/receiving-socket.ts';
import type {
  Arrival,
  Fault,
  ClientNetwork,
  QueryToSend,
  Socket,
  SentQuery,
} from '../../tools/resolver/network.ts';
import type { ClientReply } from '../../tools/resolver/reply.ts';
import { runLookup, type LookupPlan } from '../../tools/resolver/run-lookup.ts';
import type { Trace } from '../../tools/resolver/trace.ts';
import { queryBytes, readReply } from '../../tools/resolver/query-bytes.ts';

/** The system clock, but with timers that keep the process alive. */
const holdingClock: Clock = {
  ...systemClock,
  after(delayMs, run) {
    const handle = setTimeout(run, delayMs);
    return { cancel: () => clearTimeout(handle) };
  },
};

/** The network for a live trace, which uses this machine's sockets and records queries and replies. */
export class LiveNetwork implements ClientNetwork {
  readonly clock: Clock = systemClock;
  readonly serverPort: number;
  readonly #trace: Trace;
  readonly #turns = new SendRounds();

  /** @param port the servers' port, which is always 53 except in tests */
  constructor(trace: Trace, port = 53) {
    this.#trace = trace;
    this.serverPort = port;
  }

  udp(): Socket {
    return new LiveUdp(this.#trace, this.serverPort, this.#turns);
  }

  tcp(server: string, until: number): Promise<Socket | Fault> {
    return new Promise((resolve) => {
      const stream = connect({ host: server, port: this.serverPort });
      const left = until - this.clock.now();
      const timer = Number.isFinite(left)
        ? this.clock.after(Math.max(0, left), () => {
            stream.destroy();
            resolve('timeout');
          })
        : null;
      stream.once('connect', () => {
        timer?.cancel();
        stream.removeAllListeners('error');
        resolve(new LiveTcp(this.#trace, stream, server, this.serverPort, this.#turns));
      });
      stream.once('error', (error) => {
        timer?.cancel();
        resolve(faultOf(error));
      });
    });
  }
}

function faultOf(error: Error): Fault {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ECONNREFUSED') return 'refused';
  if (code === 'ECONNRESET') return 'reset';
  if (code === 'ENETUNREACH' || code === 'EADDRNOTAVAIL') return 'no-route';
  return code === 'EHOSTUNREACH' ? 'unreachable' : 'closed';
}

/** Counts the event loop turns in which queries were sent, because those sent in one turn leave together. */
class SendRounds {
  #count = 0;
  #open = false;

  get current(): number {
    if (!this.#open) {
      this.#open = true;
      this.#count++;
      setImmediate(() => {
        this.#open = false;
      });
    }
    return this.#count;
  }
}

/** The base for both socket types, which records queries and received packets. */
abstract class LiveSocket extends ReceivingSocket {
  port = 0;
  protected readonly trace: Trace;
  protected readonly serverPort: number;
  readonly #turns: SendRounds;
  protected readonly sent: SentQuery[] = [];

  constructor(trace: Trace, serverPort: number, turns: SendRounds) {
    super(holdingClock);
    this.trace = trace;
    this.serverPort = serverPort;
    this.#turns = turns;
  }

  /** @param sourcePort null if the socket could not be bound */
  protected begin(query: QueryToSend, server: string, sourcePort: number | null): SentQuery {
    if (this.port === 0) this.port = this.trace.nextPort();
    const real = { serverPort: this.serverPort, sourcePort, turn: this.#turns.current };
    const exchange = this.trace.begin(query, server, this.protocol, this.port, real);
    this.sent.push(exchange);
    return exchange;
  }

  protected arrive(arrival: Arrival): void {
    this.push(arrival);
  }

  /** Handles a received message. Drops it if it is unreadable or matches no query. */
  protected message(bytes: Uint8Array, server: string): void {
    let reply: ClientReply;
    try {
      reply = readReply(bytes);
    } catch {
      return;
    }
    const exchange = this.sent.findLast(
      (one) =>
        one.wireId === reply.id &&
        one.type === reply.type &&
        one.server === server &&
        one.name.toLowerCase() === reply.name.toLowerCase(),
    );
    if (exchange === undefined) return;
    if (exchange.answeredAtMs === null) this.trace.answered(exchange, reply);
    this.arrive({ kind: 'reply', reply, server, exchange });
  }
}

class LiveUdp extends LiveSocket {
  readonly protocol = 'udp';
  #socket: Dgram | null = null;
  #peer: string | null = null;

  connect(server: string): Fault | null {
    this.#peer = server;
    const socket = this.#open(server);
    // By this point the failure is known, so the callback ignores it.
    socket.connect(this.serverPort, server, () => {});
    try {
      socket.remoteAddress();
      return null;
    } catch {
      noWay(this.trace, server);
      return 'no-route';
    }
  }

  send(query: QueryToSend, server: string): SentQuery | Fault {
    const bytes = queryBytes(query);
    const socket = this.#socket ?? this.#open(server);
    const exchange = this.begin(query, server, portOf(socket));
    const failed = (error: Error | null): void => {
      if (error !== null) this.#failed(error, server);
    };
    if (this.#peer === null) socket.send(bytes, this.serverPort, server, failed);
    else socket.send(bytes, failed);
    return exchange;
  }

  #open(server: string): Dgram {
    const type = server.includes(':') ? 'udp6' : 'udp4';
    const socket = createSocket({ type, lookup: atOnce });
    socket.on('message', (bytes, from) => this.message(bytes, from.address));
    socket.on('error', (error) => this.#failed(error, this.#peer ?? server));
    socket.bind({ port: 0, exclusive: true });
    this.#socket = socket;
    return socket;
  }

  #failed(error: Error, server: string): void {
    const fault = faultOf(error);
    for (const exchange of this.sent) {
      const open = exchange.server === server && exchange.answeredAtMs === null;
      if (open && fault === 'refused') exchange.answer = 'CLOSED';
    }
    if (fault === 'no-route') noWay(this.trace, server);
    this.arrive({ kind: 'fault', fault, server });
  }

  close(): void {
    const socket = this.#socket;
    this.#socket = null;
    if (socket === null) return;
    socket.removeAllListeners();
    socket.on('error', () => {});
    socket.close();
  }
}

/** Reports once that a server is unreachable. */
function noWay(trace: Trace, server: string): void {
  const text = `there is no route from this machine to ${server}`;
  if (trace.steps.every((step) => step.text !== text)) trace.step(text);
}

/** Binds the socket and sends the query in the same turn. Servers are given as addresses, so nothing is looked up. */
function atOnce(
  address: string,
  _options: unknown,
  done: (error: null, address: string, family: number) => void,
): void {
  done(null, address, address.includes(':') ? 6 : 4);
}

/** The source port, or null if the socket could not be bound. */
function portOf(socket: Dgram): number | null {
  try {
    return socket.address().port;
  } catch {
    return null;
  }
}

class LiveTcp extends LiveSocket {
  readonly protocol = 'tcp';
  readonly #stream: Stream;
  readonly #server: string;
  #pending = Buffer.alloc(0);

  constructor(trace: Trace, stream: Stream, server: string, port: number, turns: SendRounds) {
    super(trace, port, turns);
    this.#stream = stream;
    this.#server = server;
    stream.on('data', (chunk: Buffer) => this.#read(chunk));
    stream.on('error', (error) => {
      const fault = faultOf(error);
      for (const exchange of this.sent) {
        if (fault === 'reset' && exchange.answeredAtMs === null) exchange.answer = 'RST';
      }
      this.arrive({ kind: 'fault', fault, server });
    });
    stream.on('end', () => this.arrive({ kind: 'fault', fault: 'closed', server }));
  }

  connect(): Fault | null {
    return null;
  }

  send(query: QueryToSend, server: string): SentQuery | Fault {
    const bytes = queryBytes(query);
    const exchange = this.begin(query, server, this.#stream.localPort ?? null);
    const framed = Buffer.alloc(2 + bytes.length);
    framed.writeUInt16BE(bytes.length, 0);
    framed.set(bytes, 2);
    this.#stream.write(framed);
    return exchange;
  }

  #read(chunk: Buffer): void {
    this.#pending = Buffer.concat([this.#pending, chunk]);
    while (this.#pending.length >= 2) {
      const end = 2 + this.#pending.readUInt16BE(0);
      if (this.#pending.length < end) return;
      this.message(this.#pending.subarray(2, end), this.#server);
      this.#pending = this.#pending.subarray(end);
    }
  }

  close(): void {
    this.#stream.removeAllListeners();
    this.#stream.on('error', () => {});
    this.#stream.destroy();
  }
}

/** Time limit of the rehearsal, milliseconds. */
const rehearsalMs = 250;

/**
 * Runs a lookup like `plan` against a local server that has no names. Otherwise, a trace would attribute the time for
 * compilation to the client or the server.
 */
export async function rehearse(plan: LookupPlan, random: Random): Promise<void> {
  const server = createSocket({ type: 'udp4', lookup: atOnce });
  server.on('error', () => {});
  server.on('message', (query, { port, address }) => {
    // The query as a reply: NXDOMAIN, recursion available.
    const reply = Uint8Array.from(query);
    reply.set([0x81, 0x83], 2);
    server.send(reply, port, address);
  });
  server.bind({ port: 0, address: '127.0.0.1', exclusive: true });
  const port = portOf(server);
  if (port !== null) {
    const settings = { ...plan.settings, resolvConf: 'nameserver 127.0.0.1\n' };
    const short = {
      ...plan,
      settings,
      name: 'rehearsal.invalid.',
      repeat: 1,
      limitMs: rehearsalMs,
    };
    await runLookup(short, (made) => new LiveNetwork(made, port), systemClock, random, true);
  }
  server.close();
}
