/** Datagrams with PROXY protocol headers. */
import type { Clock } from '../../base/clock.ts';
import type { Query } from '../query.ts';
import type { ListenerCounters } from '../listener-counters.ts';
import { ProxyHeader } from '../proxy/proxy-header.ts';
import { proxyAction, type ProxyPlan } from '../proxy/proxy-policy.ts';

interface ProxiedPeer {
  readonly family: 4 | 6;
  readonly peer: Uint8Array;
  readonly port: number;
  until: number;
}

/**
 * Removes PROXY protocol headers (version 2) from datagrams and identifies the client. If sessions are enabled, a
 * datagram that is only a header applies to later ones from the same address and port. When there are too many
 * sessions, the least recently used one is dropped.
 */
export class ProxiedDatagrams {
  /** The position at which the DNS message starts in the most recent datagram. */
  start = 0;
  readonly #header = new ProxyHeader();
  readonly #counters: ListenerCounters;
  readonly #clock: Clock;
  readonly #sessions = new Map<string, ProxiedPeer>();
  #plan: ProxyPlan;
  #named = false;
  #family: 4 | 6 = 4;
  #peer: Uint8Array = nothing;
  #port = 0;

  constructor(plan: ProxyPlan, counters: ListenerCounters, clock: Clock) {
    this.#plan = plan;
    this.#counters = counters;
    this.#clock = clock;
  }

  adopt(plan: ProxyPlan): void {
    this.#plan = plan;
    if (plan.sessionMs === 0) this.#sessions.clear();
  }

  get size(): number {
    return this.#sessions.size;
  }

  /**
   * Reads the header of the datagram `bytes[start, end)` from the address `from[at, …)`.
   * @returns true if it contains a message, which starts at `this.start`; `identify` then fills in its client
   */
  take(
    bytes: Uint8Array,
    start: number,
    end: number,
    from: Uint8Array,
    at: number,
    family: 4 | 6,
    port: number,
  ): boolean {
    const plan = this.#plan;
    const header = this.#header;
    const action = proxyAction(plan, from, at, family);
    this.#named = false;
    this.start = start;
    if (action === 'skip') return true;
    // The intake rejects datagrams that are empty or too short for a header.
    const verdict = header.read(bytes, start, end);
    const isQuery = verdict === 'none' || (verdict === 'partial' && end - start < QUERY_MIN);
    if (isQuery) {
      if (action === 'use' && plan.sessionMs > 0) this.#recall(from, at, family, port);
      return true;
    }
    const fits = header.version === 2 && (header.isDatagram || !header.isNamed);
    if (verdict !== 'header' || action === 'reject' || !fits) {
      this.#counters.proxyRefused.add(1);
      return false;
    }
    this.start = start + header.length;
    if (action === 'ignore' || !header.isNamed) return this.start < end;
    this.#name(header.family, header.source, header.sourcePort);
    if (plan.sessionMs > 0) this.#remember(from, at, family, port);
    return this.start < end;
  }

  /** Replaces the proxy's address with the client's, as given in the last datagram's header. */
  identify(query: Query): void {
    if (!this.#named) return;
    query.family = this.#family;
    query.peer = this.#peer;
    query.peerAt = 0;
    query.peerPort = this.#port;
  }

  #name(family: 4 | 6, peer: Uint8Array, port: number): void {
    this.#counters.proxied.add(1);
    this.#named = true;
    this.#family = family;
    this.#peer = peer;
    this.#port = port;
  }

  #remember(from: Uint8Array, at: number, family: 4 | 6, port: number): void {
    const key = keyOf(from, at, family, port);
    const { sessionMs, sessions } = this.#plan;
    this.#sessions.delete(key);
    this.#sessions.set(key, {
      family: this.#family,
      peer: this.#peer.slice(),
      port: this.#port,
      until: this.#clock.now() + sessionMs,
    });
    for (const [oldest, { until }] of this.#sessions) {
      if (this.#sessions.size <= sessions) break;
      this.#sessions.delete(oldest);
      if (until > this.#clock.now()) this.#counters.evicted.add(1);
    }
  }

  #recall(from: Uint8Array, at: number, family: 4 | 6, port: number): void {
    const key = keyOf(from, at, family, port);
    const session = this.#sessions.get(key);
    if (session === undefined) return;
    this.#sessions.delete(key);
    const now = this.#clock.now();
    if (session.until <= now) return;
    session.until = now + this.#plan.sessionMs;
    this.#sessions.set(key, session);
    this.#name(session.family, session.peer, session.port);
  }
}

/** Size of a DNS message's header. */
const QUERY_MIN = 12;
const nothing = new Uint8Array(0);

function keyOf(from: Uint8Array, at: number, family: 4 | 6, port: number): string {
  return `${port} ${Buffer.from(from.buffer, from.byteOffset + at, family === 4 ? 4 : 16).toString('latin1')}`;
}
