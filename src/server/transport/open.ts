/** Opens the sockets for a listen address. */
import { Problem } from '../base/problem.ts';
import { allowLowPort } from '../runtime/low-ports.ts';
import { bindProblem, isFamilyMissing } from './bind-problem.ts';
import type {
  ListenAddress,
  Listener,
  ListenerParts,
  ListenerTerms,
  MakeListener,
} from './listener.ts';
import { pickPort } from './probe.ts';
import { served, type UdpMode } from './transports.ts';
import { concreteAddresses, isWildcard } from './wildcard.ts';

/**
 * For port 0, a free port is picked and briefly released. If another process grabs it in the meantime, a different port
 * is tried.
 */
const PORT_TRIES = 20;

/**
 * Creates the listener for a listen address, with all the sockets its transport needs (`dns` needs UDP and TCP on one
 * port). A wildcard address has one set of sockets per address family. Several threads and processes may open the same
 * address (SO_REUSEPORT). If `open` throws a Problem, it leaves nothing open.
 * @throws Problem (`transport-not-supported`)
 */
export function openListeners(parts: ListenerParts, udp: UdpMode): Listener {
  const { listeners } = served(parts.endpoint.scheme);
  return new ListenerGroup(parts, () => listeners(udp));
}

class ListenerGroup implements Listener {
  readonly endpoint: ListenAddress;
  readonly #parts: ListenerParts;
  readonly #makers: () => Promise<readonly MakeListener[]>;
  #terms: ListenerTerms;
  #open: Listener[] = [];
  #port: number;

  constructor(parts: ListenerParts, makers: () => Promise<readonly MakeListener[]>) {
    this.endpoint = parts.endpoint;
    this.#parts = parts;
    this.#makers = makers;
    this.#terms = parts.terms;
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

  adopt(terms: ListenerTerms): void {
    this.#terms = terms;
    for (const listener of this.#open) listener.adopt(terms);
  }

  async close(graceMs: number): Promise<void> {
    const open = this.#open;
    this.#open = [];
    await Promise.all(open.map((listener) => listener.close(graceMs)));
  }

  /** Opens every socket or none. */
  async #openAll(): Promise<number> {
    const makers = await this.#makers();
    const opened: Listener[] = [];
    let port = this.endpoint.port === 0 ? await this.#pickPort() : this.endpoint.port;
    let missing: unknown = null;
    allowLowPort(port);
    try {
      for (const address of concreteAddresses(this.endpoint.address)) {
        try {
          for (const make of makers) {
            const endpoint = { ...this.endpoint, address, port };
            const listener = make({ ...this.#parts, terms: this.#terms, endpoint });
            await listener.open();
            opened.push(listener);
            port = listener.port;
          }
        } catch (error) {
          // A wildcard address requires only one family, because which families are available depends on the machine.
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

  /**
   * Picks a free port. The system might choose one that another of our sockets already uses, because SO_REUSEPORT
   * allows sharing.
   */
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
