/** Real sockets under a resolver model: what `ndots trace` without `--plan` uses. */
import { createSocket, type Socket as Dgram } from 'node:dgram';
import { connect, type Socket as Stream } from 'node:net';
import { systemClock, type Clock } from '../base/clock.ts';
import type { Arrival, Fault, Network, Protocol, Query, Socket } from '../resolver/network.ts';
import type { Reply } from '../resolver/reply.ts';
import type { Exchange, Trace } from '../resolver/trace.ts';
import { queryBytes, readReply } from './query-bytes.ts';

export class LiveNetwork implements Network {
  readonly clock: Clock = systemClock;
  readonly #trace: Trace;
  readonly #port: number;

  /** @param port of every server; 53 but for tests */
  constructor(trace: Trace, port = 53) {
    this.#trace = trace;
    this.#port = port;
  }

  udp(): Socket {
    return new LiveUdp(this.#trace, this.#port);
  }

  tcp(server: string, until: number): Promise<Socket | Fault> {
    return new Promise((resolve) => {
      const stream = connect({ host: server, port: this.#port });
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
        resolve(new LiveTcp(this.#trace, stream, server));
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

/** What both kinds of socket share: the queue of arrivals and those who wait for it. */
abstract class LiveSocket implements Socket {
  abstract readonly protocol: Protocol;
  port = 0;
  protected readonly trace: Trace;
  protected readonly sent: Exchange[] = [];
  #queue: Arrival[] = [];
  readonly #watchers = new Set<() => void>();

  constructor(trace: Trace) {
    this.trace = trace;
  }

  abstract connect(server: string): Fault | null;
  abstract send(query: Query, server: string): Exchange | Fault;
  abstract close(): void;

  take(): Arrival | null {
    return this.#queue.shift() ?? null;
  }

  wait(until: number): Promise<Arrival | null> {
    const ready = this.take();
    const left = until - systemClock.now();
    if (ready !== null || left <= 0) return Promise.resolve(ready);
    return new Promise((resolve) => {
      // Held: a lookup that waits keeps the program alive.
      const handle = Number.isFinite(left) ? setTimeout(() => finish(null), left) : null;
      const finish = (arrival: Arrival | null): void => {
        stop();
        if (handle !== null) clearTimeout(handle);
        resolve(arrival);
      };
      const stop = this.watch(() => finish(this.take()));
    });
  }

  watch(run: () => void): () => void {
    if (this.#queue.length > 0) {
      queueMicrotask(run);
      return () => {};
    }
    this.#watchers.add(run);
    return () => this.#watchers.delete(run);
  }

  protected begin(query: Query, server: string): Exchange {
    if (this.port === 0) this.port = this.trace.nextPort();
    const exchange = this.trace.begin(query, server, this.protocol, this.port);
    this.sent.push(exchange);
    return exchange;
  }

  protected arrive(arrival: Arrival): void {
    this.#queue.push(arrival);
    for (const run of [...this.#watchers]) run();
  }

  /** A message from the wire; what cannot be read, or answers nothing that was asked, is dropped. */
  protected message(bytes: Uint8Array, server: string): void {
    let reply: Reply;
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
  readonly #port: number;
  #socket: Dgram | null = null;
  #peer: string | null = null;
  #ready = false;
  #waiting: { readonly bytes: Uint8Array; readonly server: string }[] = [];

  constructor(trace: Trace, port: number) {
    super(trace);
    this.#port = port;
  }

  connect(server: string): Fault | null {
    this.#peer = server;
    const socket = this.#open(server);
    // Without a route it is the connecting that fails, and the listener for errors does not hear of it.
    socket.connect(this.#port, server, (error?: Error | null) => {
      if (error === undefined || error === null) this.#flush();
      else this.#failed(error, server);
    });
    return null;
  }

  send(query: Query, server: string): Exchange | Fault {
    const exchange = this.begin(query, server);
    if (this.#socket === null) {
      this.#open(server).bind(0, () => this.#flush());
    }
    this.#waiting.push({ bytes: queryBytes(query), server });
    if (this.#ready) this.#flush();
    return exchange;
  }

  #open(server: string): Dgram {
    const socket = createSocket(server.includes(':') ? 'udp6' : 'udp4');
    socket.on('message', (bytes, from) => this.message(bytes, from.address));
    socket.on('error', (error) => this.#failed(error, this.#peer ?? server));
    this.#socket = socket;
    return socket;
  }

  #failed(error: Error, server: string): void {
    const fault = faultOf(error);
    for (const exchange of this.sent) {
      const open = exchange.server === server && exchange.answeredAtMs === null;
      if (open && fault === 'refused') exchange.answer = 'CLOSED';
    }
    const text = `no way from this machine to ${server}: what goes there never leaves it`;
    if (fault === 'no-route' && this.trace.steps.every((step) => step.text !== text))
      this.trace.step(text);
    // A socket whose connecting failed has nothing to wait for.
    this.#ready = true;
    this.arrive({ kind: 'fault', fault, server });
  }

  #flush(): void {
    this.#ready = true;
    for (const { bytes, server } of this.#waiting.splice(0)) {
      const failed = (error: Error | null): void => {
        if (error !== null) this.#failed(error, server);
      };
      if (this.#peer === null) this.#socket?.send(bytes, this.#port, server, failed);
      else this.#socket?.send(bytes, failed);
    }
  }

  close(): void {
    const socket = this.#socket;
    this.#socket = null;
    this.#waiting = [];
    if (socket === null) return;
    socket.removeAllListeners();
    socket.on('error', () => {});
    // A socket that is still connecting cannot be closed at once.
    if (this.#ready || this.#peer === null) socket.close();
    else socket.once('connect', () => socket.close());
  }
}

class LiveTcp extends LiveSocket {
  readonly protocol = 'tcp';
  readonly #stream: Stream;
  readonly #server: string;
  #pending = Buffer.alloc(0);

  constructor(trace: Trace, stream: Stream, server: string) {
    super(trace);
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

  send(query: Query, server: string): Exchange | Fault {
    const exchange = this.begin(query, server);
    const bytes = queryBytes(query);
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
