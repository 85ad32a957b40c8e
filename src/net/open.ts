import { Problem } from '../base/problem.ts';
import { bindProblem, isFamilyMissing } from './bind-problem.ts';
import { httpsListener } from './https.ts';
import {
  makeCounters,
  type Endpoint,
  type Listener,
  type ListenerParts,
  type ListenerCounters,
} from './listener.ts';
import { concreteAddresses, isWildcard } from './places.ts';
import { pickPort } from './probe.ts';
import { tcpListener } from './tcp.ts';
import { tlsListener } from './tls.ts';
import { batchedUdp, batchedUdpListener } from './udp-batch.ts';
import { plainUdpListener } from './udp-plain.ts';

/** Whether UDP goes through batched system calls: `auto` where they work, `on` insists. */
export type Batched = 'auto' | 'on' | 'off';

export interface OpenOptions {
  readonly batched: Batched;
}

/** Makes a listener of one concrete address. */
export type Transport = (parts: ListenerParts) => Listener;

/** With port 0 a port is picked and let go for a moment: somebody may take it, then all try again. */
const PORT_TRIES = 20;

/**
 * The listener for an endpoint: all sockets that its scheme needs (`dns`: UDP and TCP on one port), for the wildcard address
 * one set per address family. Several threads and processes may open the same endpoint (SO_REUSEPORT).
 * `open` throws a Problem and leaves nothing open.
 */
export function openListeners(parts: ListenerParts, options: OpenOptions): Listener {
  return new ListenerGroup(parts, transportsOf(parts, options));
}

function transportsOf(parts: ListenerParts, { batched }: OpenOptions): Transport[] {
  const { scheme } = parts.endpoint;
  const sockets = Math.max(1, parts.sockets ?? 1);
  switch (scheme) {
    case 'dns':
      return [...Array<Transport>(sockets).fill(udp(batched)), tcpListener];
    case 'tls':
      return [tlsListener];
    case 'https':
      return [httpsListener];
    default:
      throw new Problem({
        code: 'transport-not-supported',
        text: `transport ${scheme}:// is not supported`,
        remedy: 'Use dns://, tls:// or https://.',
      });
  }
}

/** The UDP transport to use here. @throws Problem (`batched-udp-not-available`) if it is insisted on in vain */
function udp(batched: Batched): Transport {
  if (batched === 'off') return plainUdpListener;
  const found = batchedUdp();
  if (found.available) return batchedUdpListener;
  if (batched === 'auto') return plainUdpListener;
  throw new Problem({
    code: 'batched-udp-not-available',
    text: `batched UDP is not available here: ${found.reason}`,
    remedy: 'Install the optional dependency koffi, or let the transport be chosen automatically.',
  });
}

class ListenerGroup implements Listener {
  readonly endpoint: Endpoint;
  readonly counters: ListenerCounters;
  readonly #parts: ListenerParts;
  readonly #transports: readonly Transport[];
  #open: Listener[] = [];
  #port: number;

  constructor(parts: ListenerParts, transports: readonly Transport[]) {
    this.endpoint = parts.endpoint;
    this.counters = parts.counters ?? makeCounters();
    this.#parts = { ...parts, counters: this.counters };
    this.#transports = transports;
    this.#port = parts.endpoint.port;
  }

  get port(): number {
    return this.#port;
  }

  async open(): Promise<void> {
    if (this.#open.length > 0) return;
    for (let tries = PORT_TRIES; ; tries--) {
      try {
        this.#port = await this.#openAll();
        return;
      } catch (error) {
        const again = this.endpoint.port === 0 && tries > 1;
        if (!again || !(error instanceof Problem) || error.code !== 'address-in-use') throw error;
      }
    }
  }

  async close(graceMs: number): Promise<void> {
    const open = this.#open;
    this.#open = [];
    await Promise.all(open.map((listener) => listener.close(graceMs)));
  }

  /** Opens every socket or none. */
  async #openAll(): Promise<number> {
    const opened: Listener[] = [];
    let port = this.endpoint.port === 0 ? await this.#pickPort() : this.endpoint.port;
    let missing: unknown = null;
    try {
      for (const address of concreteAddresses(this.endpoint.address)) {
        try {
          for (const transport of this.#transports) {
            const endpoint = { ...this.endpoint, address, port };
            const listener = transport({ ...this.#parts, endpoint });
            await listener.open();
            opened.push(listener);
            port = listener.port;
          }
        } catch (error) {
          // A wildcard needs one family only; which ones there are depends on the machine.
          if (!isWildcard(this.endpoint.address) || !isFamilyMissing(causeOf(error))) throw error;
          missing ??= error;
        }
      }
      if (opened.length === 0) throw missing;
    } catch (error) {
      await Promise.all(opened.map((listener) => listener.close(0)));
      throw error;
    }
    this.#open = opened;
    return port;
  }

  /** Left to the system, a port that another of our sockets shares could be chosen: SO_REUSEPORT allows that. */
  async #pickPort(): Promise<number> {
    let failed: unknown = null;
    for (const address of concreteAddresses(this.endpoint.address)) {
      try {
        return await pickPort(address);
      } catch (error) {
        failed ??= await bindProblem(error, 'udp', { ...this.endpoint, address });
      }
    }
    throw failed;
  }
}

function causeOf(error: unknown): unknown {
  return error instanceof Problem ? error.cause : error;
}
