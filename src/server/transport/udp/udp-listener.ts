/** The part shared by both UDP listeners. */
import { Intake } from '../intake.ts';
import type { ListenerCounters } from '../listener-counters.ts';
import type { ListenAddress, ListenerParts, ListenerTerms } from '../listener.ts';
import { OutletPending } from '../outlet.ts';
import { ProxiedDatagrams } from './proxied-datagrams.ts';

/** A listen address, with its intake and its PROXY header reader. */
export abstract class UdpListener {
  readonly endpoint: ListenAddress;
  readonly counters: ListenerCounters;
  readonly pending: OutletPending = new OutletPending();
  readonly full = false;
  protected readonly parts: ListenerParts;
  protected readonly intake: Intake;
  protected readonly family: 4 | 6;
  /** Null if no PROXY headers are expected. */
  protected proxied: ProxiedDatagrams | null = null;
  #port: number;

  constructor(parts: ListenerParts) {
    const { endpoint, terms } = parts;
    this.parts = parts;
    this.endpoint = endpoint;
    this.#port = endpoint.port;
    this.family = endpoint.address.includes(':') ? 6 : 4;
    this.counters = parts.counters('udp');
    this.intake = new Intake({
      ...parts,
      proto: 'udp',
      counters: this.counters,
      limits: terms.limits,
    });
    this.adopt(terms);
  }

  /** The configured port, or the one chosen by the system. */
  get port(): number {
    return this.#port;
  }

  adopt({ limits, proxy }: ListenerTerms): void {
    this.intake.adopt(limits);
    if (proxy === null) this.proxied = null;
    else if (this.proxied === null)
      this.proxied = new ProxiedDatagrams(proxy, this.counters, this.parts.clock);
    else this.proxied.adopt(proxy);
  }

  hold(): void {
    // The intake limits the memory used by all waiting queries.
  }

  /** Called once a socket is bound to the port, so queries may arrive from now on. */
  protected opened(port: number): void {
    this.#port = port;
    this.pending.closed = false;
  }
}
