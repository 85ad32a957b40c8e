/** Connections that start with a PROXY protocol header, until that header has been read. */
import type { Socket } from 'node:net';
import { parseAddress, printAddress } from '../../base/ip.ts';
import { ConnectionTable, type EvictableConnection } from '../limits/connection-table.ts';
import { bareAddress, nameEnds } from '../connection-ends.ts';
import type { ListenerLimits } from '../limits/limits.ts';
import type { ListenerCounters } from '../listener-counters.ts';
import { PROXY_HEADER_MAX, ProxyHeader } from './proxy-header.ts';
import { proxyAction, type ProxyAction, type ProxyPlan } from './proxy-policy.ts';
import { Timed, type TimerWheel } from '../timer-wheel.ts';

export interface ProxiedHost {
  readonly limits: ListenerLimits;
  readonly counters: ListenerCounters;
  readonly wheel: TimerWheel;
}

/**
 * Reads the PROXY protocol header at the start of each connection. Connections that have not yet sent theirs are
 * limited in number and time, just like handshakes. A client that sends no header continues as soon as its first bytes
 * show that.
 */
export class ProxiedStreams {
  readonly #host: ProxiedHost;
  readonly #ready: (socket: Socket) => void;
  readonly #table: ConnectionTable<WaitingConnection>;
  #plan: ProxyPlan;

  /** @param ready receives the socket once its header has been read */
  constructor(host: ProxiedHost, plan: ProxyPlan, ready: (socket: Socket) => void) {
    this.#host = host;
    this.#plan = plan;
    this.#ready = ready;
    this.#table = new ConnectionTable(() => host.counters.evicted.add(1));
  }

  /** Applies a different policy, starting with the next connection. */
  adopt(plan: ProxyPlan): void {
    this.#plan = plan;
  }

  begin(socket: Socket): void {
    const address = parseAddress(bareAddress(socket.remoteAddress));
    // Without an address, the policy cannot be applied. CoreDNS behaves in the same way.
    const action =
      address === null
        ? 'reject'
        : proxyAction(this.#plan, address, 0, address.length === 4 ? 4 : 6);
    if (action === 'skip') return this.#ready(socket);
    const { counters, wheel, limits } = this.#host;
    const waiting = new WaitingConnection(socket, action, (outcome) => {
      wheel.cancel(waiting);
      this.#table.delete(waiting);
      if (outcome === 'named') counters.proxied.add(1);
      if (outcome === 'refused') counters.proxyRefused.add(1);
      if (outcome === 'late') counters.timedOut.add(1);
      if (outcome === 'named' || outcome === 'plain') this.#ready(socket);
      else socket.destroy();
    });
    this.#table.add(waiting, limits.handshakes);
    wheel.set(waiting, limits.readTimeoutMs);
  }

  /** Closes all connections whose header is still missing. */
  destroy(): void {
    for (const waiting of this.#table) waiting.destroy();
  }
}

type ProxyOutcome = 'named' | 'plain' | 'refused' | 'late' | 'gone';

/** A connection whose first bytes have not arrived. */
class WaitingConnection extends Timed implements EvictableConnection {
  readonly busy = false;
  readonly #socket: Socket;
  readonly #action: Exclude<ProxyAction, 'skip'>;
  readonly #done: (outcome: ProxyOutcome) => void;
  #bytes = nothing;
  #over = false;

  constructor(
    socket: Socket,
    action: Exclude<ProxyAction, 'skip'>,
    done: (outcome: ProxyOutcome) => void,
  ) {
    super();
    this.#socket = socket;
    this.#action = action;
    this.#done = done;
    socket.on('data', this.#onData);
    socket.once('end', this.#onEnd);
    socket.once('close', this.#onEnd);
  }

  override expire(): void {
    this.#end('late');
  }

  finish(): void {
    this.destroy();
  }

  destroy(): void {
    this.#end('gone');
  }

  readonly #onEnd = (): void => this.#end('gone');

  readonly #onData = (chunk: Buffer): void => {
    const bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk]);
    const verdict = header.read(bytes, 0, bytes.length);
    if (verdict === 'partial' && bytes.length < PROXY_HEADER_MAX) {
      // Copy the bytes, because the chunk may be much larger than the data received.
      this.#bytes = bytes === chunk ? Buffer.from(bytes) : bytes;
      return;
    }
    const refused = verdict === 'header' && (this.#action === 'reject' || header.isDatagram);
    if (verdict === 'wrong' || verdict === 'partial' || refused) return this.#end('refused');
    const names = verdict === 'header' && this.#action === 'use' && header.isNamed;
    if (names) {
      nameEnds(this.#socket, {
        peer: header.source.slice(0, header.family === 4 ? 4 : 16),
        peerPort: header.sourcePort,
        local: printAddress(header.destination, 0, header.destinationFamily === 4 ? 4 : 16),
        localPort: header.destinationPort,
      });
    }
    this.#goOn(verdict === 'header' ? bytes.subarray(header.length) : bytes);
    this.#end(names ? 'named' : 'plain');
  };

  /** Returns the bytes after the header to the stream, to be the protocol's first input. */
  #goOn(rest: Buffer): void {
    const socket = this.#socket;
    socket.off('data', this.#onData);
    socket.pause();
    if (rest.length > 0) socket.unshift(rest);
    // The protocol's connection attaches its listeners to the socket in this turn.
    process.nextTick(() => socket.resume());
  }

  #end(outcome: ProxyOutcome): void {
    if (this.#over) return;
    this.#over = true;
    this.#socket.off('data', this.#onData);
    this.#socket.off('end', this.#onEnd);
    this.#socket.off('close', this.#onEnd);
    this.#done(outcome);
  }
}

const nothing: Buffer = Buffer.alloc(0);
const header = new ProxyHeader();
