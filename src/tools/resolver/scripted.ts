/**
 * A network whose answers come from a script. Everything happens on the given clock, so a lookup of 75 seconds takes a
 * millisecond on a virtual one.
 */
import type { Clock, Timer } from '../../server/base/clock.ts';
import { answerBySpec } from './answer-spec.ts';
import { nextAnswer, type RuleCounts, type Script } from './answers-file.ts';
import { ReceivingSocket } from './receiving-socket.ts';
import type { Arrival, Fault, ClientNetwork, QueryToSend, Socket, SentQuery } from './network.ts';
import type { SocketKind } from '../../server/wire/transports.ts';
import { labelOf, type ClientReply } from './reply.ts';
import type { Trace } from './trace.ts';

/** Milliseconds until Linux gives up looking for a neighbour (three ARP or ND probes, one second apart). */
const neighbourMs = 3000;
/** The round-trip time to a server in the same cluster, in milliseconds. */
const relayMs = 0.5;
/** Milliseconds until a TCP connection is established or refused. */
const handshakeMs = 0.1;
/** Used for RACE, in milliseconds. A second question from the same port within this time is lost. */
const raceMs = 10;

/** Answers instead of the script. Null if there is no reply. */
export interface Answering {
  answer(query: QueryToSend, protocol: SocketKind): Promise<ClientReply | null>;
}

export class ScriptedNetwork implements ClientNetwork {
  readonly clock: Clock;
  readonly serverPort = 53;
  readonly #script: Script;
  readonly #trace: Trace;
  readonly #counts: RuleCounts = new Map();
  readonly #server: Answering | null;
  readonly #lookingUntil = new Map<string, number>();

  /** @param server answers instead of the script, if given */
  constructor(clock: Clock, script: Script, trace: Trace, server: Answering | null = null) {
    this.clock = clock;
    this.#script = script;
    this.#trace = trace;
    this.#server = server;
  }

  udp(): Socket {
    return new ScriptedSocket('udp', null, this);
  }

  tcp(server: string, until: number): Promise<Socket | Fault> {
    const script = this.#script;
    if (script.noRoute.has(server)) return Promise.resolve('no-route');
    const refused = script.closed.has(server) || script.noTcp.has(server);
    const late = script.unrouted.has(server);
    const patienceMs = until - this.clock.now();
    const lostMs = late ? this.#neighbourMs(server) : 0;
    return new Promise((resolve) => {
      this.clock.after(late ? Math.min(lostMs, patienceMs) : handshakeMs, () => {
        if (late) resolve(patienceMs < lostMs ? 'timeout' : 'unreachable');
        else resolve(refused ? 'refused' : new ScriptedSocket('tcp', server, this));
      });
    });
  }

  /** Returns a fault that the kernel detects before sending anything. */
  route(server: string): Fault | null {
    return this.#script.noRoute.has(server) ? 'no-route' : null;
  }

  /**
   * Milliseconds until the kernel drops a server's neighbour entry. All packets sent during that time fail together
   * with the first.
   */
  #neighbourMs(server: string): number {
    const now = this.clock.now();
    const known = this.#lookingUntil.get(server) ?? -Infinity;
    const until = known > now ? known : now + neighbourMs;
    this.#lookingUntil.set(server, until);
    return until - now;
  }

  nextPort(): number {
    return this.#trace.nextPort();
  }

  /** Sends a query and schedules the reply. */
  deliver(socket: ScriptedSocket, query: QueryToSend, server: string): SentQuery {
    const exchange = this.#trace.begin(query, server, socket.protocol, socket.port);
    if (socket.protocol === 'udp' && this.#script.closed.has(server)) {
      exchange.answer = 'CLOSED';
      socket.fault({ kind: 'fault', fault: 'refused', server });
      return exchange;
    }
    if (socket.protocol === 'udp' && this.#script.unrouted.has(server)) {
      socket.later(this.#neighbourMs(server), () => {
        socket.fault({ kind: 'fault', fault: 'unreachable', server });
      });
      return exchange;
    }
    if (this.#server !== null) {
      void this.#relay(this.#server, socket, query, server, exchange);
      return exchange;
    }
    const spec = nextAnswer(this.#script, this.#counts, server, query.name, query.type);
    const delayMs = spec.delayMs ?? this.#script.delayMs;
    if (spec.reset && socket.protocol === 'tcp') {
      exchange.answer = 'RST';
      socket.later(delayMs, () => socket.fault({ kind: 'fault', fault: 'reset', server }));
      return exchange;
    }
    const raced = spec.race && socket.asked(query, this.clock.now());
    const reply = raced ? null : answerBySpec(spec, query, socket.protocol);
    if (reply !== null) {
      // Recorded now, because the reply was sent even if the client closes its socket before it arrives.
      exchange.answer = labelOf(reply);
      socket.later(delayMs, () => {
        this.#trace.answered(exchange, reply);
        socket.arrive({ kind: 'reply', reply, server: spec.from ?? server, exchange });
      });
    }
    return exchange;
  }

  async #relay(
    by: Answering,
    socket: ScriptedSocket,
    query: QueryToSend,
    server: string,
    exchange: SentQuery,
  ): Promise<void> {
    const reply = await by.answer(query, socket.protocol);
    if (reply === null) return;
    exchange.answer = labelOf(reply);
    socket.later(relayMs, () => {
      this.#trace.answered(exchange, reply);
      socket.arrive({ kind: 'reply', reply, server, exchange });
    });
  }
}

class ScriptedSocket extends ReceivingSocket {
  readonly protocol: SocketKind;
  port = 0;
  readonly #network: ScriptedNetwork;
  #peer: string | null;
  #closed = false;
  #allErrors = false;
  readonly #timers = new Set<Timer>();
  readonly #asked: { readonly key: string; readonly at: number }[] = [];

  constructor(protocol: SocketKind, peer: string | null, network: ScriptedNetwork) {
    super(network.clock);
    this.protocol = protocol;
    this.#peer = peer;
    this.#network = network;
  }

  connect(server: string, allErrors = false): Fault | null {
    const fault = this.#network.route(server);
    if (fault === null) this.#peer = server;
    this.#allErrors = allErrors;
    return fault;
  }

  send(query: QueryToSend, server: string): SentQuery | Fault {
    const fault = this.takeFault() ?? this.#network.route(server);
    if (fault !== null) return fault;
    if (this.port === 0) this.port = this.#network.nextPort();
    const exchange = this.#network.deliver(this, query, server);
    this.#asked.push({ key: `${query.name} ${query.type}`, at: this.#network.clock.now() });
    return exchange;
  }

  /** True if this port has sent another question within the last `raceMs`. */
  asked(query: QueryToSend, now: number): boolean {
    const key = `${query.name} ${query.type}`;
    return this.#asked.some((other) => other.key !== key && now - other.at <= raceMs);
  }

  close(): void {
    this.#closed = true;
    this.clear();
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
  }

  /** Schedules a step on this socket's path, which is skipped if the socket has been closed by then. */
  later(delayMs: number, run: () => void): void {
    this.#timers.add(this.#network.clock.after(delayMs, run));
  }

  arrive(arrival: Arrival): void {
    // A connected socket drops packets from other addresses.
    if (this.#closed || (this.#peer !== null && this.#peer !== arrival.server)) return;
    this.push(arrival);
  }

  /**
   * Delivers a fault. Only connected sockets receive errors for their path. An unreachable host is reported only to
   * those that requested all errors (Linux: IP_RECVERR).
   */
  fault(arrival: Arrival & { kind: 'fault' }): void {
    if (this.protocol === 'udp' && this.#peer !== arrival.server) return;
    if (arrival.fault === 'unreachable' && !this.#allErrors) return;
    this.arrive(arrival);
  }
}
