/** One upstream of `forward`: connections, probes, response time. */
import type { Clock, Timer } from '../../base/clock.ts';
import { every } from '../../base/clock.ts';
import type { Counter, Histogram } from '../../metrics/registry.ts';
import type { UpstreamExchange } from '../../transport/upstream/upstream-exchange.ts';
import type { Protocol } from '../../wire/transports.ts';
import {
  ask,
  type Network,
  type Upstream,
  type UpstreamCounters,
  type UpstreamTls,
} from '../../transport/upstream-address.ts';
import { FLAG, rcodeName, TYPE } from '../../wire/iana.ts';
import { parseName } from '../../wire/name.ts';
import { makeQuery } from '../../transport/query.ts';
import { printUpstream, type ForwardUpstreamSpec } from './address.ts';
import { Budget } from './budget.ts';
import type { HealthOptions } from './option-values.ts';
import type { ForwardMetrics } from './forward-counters.ts';

const PROBE_TIMEOUT_MS = 1000;
/** Outgoing packets of a new TCP connection besides the query itself: SYN, ACKs, FIN. */
const TCP_PACKETS = 4;
/** Weight of a new measurement in the running average of response times. */
const LATENCY_WEIGHT = 0.2;

/**
 * What an upstream is made of: where it is, how it is spoken with, and the limits of the line
 * (times in milliseconds).
 */
export interface TargetParts {
  readonly upstream: ForwardUpstreamSpec;
  readonly network: Network;
  readonly clock: Clock;
  readonly metrics: ForwardMetrics;
  readonly tls: UpstreamTls | null;
  readonly serverName: string;
  readonly expireMs: number;
  readonly maxAgeMs: number;
  readonly maxIdle: number;
  readonly sourcePorts: number;
  readonly maxConnections: number;
  readonly inFlightMax: number;
  readonly burst: number;
  readonly source: string;
  readonly dohMethod: 'POST' | 'GET';
  readonly health: HealthOptions;
  /** Whether probes go over TCP. */
  readonly forceTcp: boolean;
  /** Packets per second; null: no limit. */
  readonly maxPps: number | null;
}

/** How an upstream is spoken with, and what is counted of that. */
interface Way {
  readonly proto: Protocol;
  readonly transport: Upstream;
  connections: { readonly hits: Counter; readonly misses: Counter } | null;
}

/** One upstream of a forward line: its transports, its health, its speed. */
export class ForwardTarget {
  /** `IP:port`, as metrics and messages name it. */
  readonly to: string;
  readonly budget: Budget | null;
  /** Probes that failed since the last one that was answered. */
  fails = 0;
  /** Running average of the response time, ms; 0: nothing known yet. */
  latencyMs = 0;
  readonly #parts: TargetParts;
  readonly #open = new Map<Protocol, Way>();
  /** The one that was used last: mostly all use the same one. */
  #recent: Way | null = null;
  /** By result code, the four bits of the header. */
  readonly #durations: (Histogram | undefined)[] = Array<Histogram | undefined>(16).fill(undefined);
  readonly #counters: UpstreamCounters;
  readonly #tcpRetries: Counter;
  readonly #spending: ReturnType<ForwardMetrics['budget']> | null;
  readonly #meter: Timer | null;
  #probing = false;
  #closed = false;

  constructor(parts: TargetParts) {
    const { upstream, metrics, maxPps, clock } = parts;
    this.#parts = parts;
    this.to = printUpstream(upstream);
    this.#tcpRetries = metrics.tcpRetries(this.to);
    this.#counters = metrics.upstream(this.to);
    metrics.healthFailures(this.to);
    this.budget = maxPps === null ? null : new Budget(maxPps);
    this.#spending = maxPps === null ? null : metrics.budget(this.to);
    this.#meter =
      maxPps === null
        ? null
        : every(clock, 1000, () => this.budget!.show(this.#spending!.headroom, clock.now()));
    this.#spending?.headroom.set(maxPps ?? 0);
  }

  get upstream(): ForwardUpstreamSpec {
    return this.#parts.upstream;
  }

  isDown(maxFails: number): boolean {
    return maxFails > 0 && this.fails > maxFails;
  }

  /**
   * Asks over a stream (TCP, or what the upstream speaks) or a datagram; the packet has been taken
   * out of the budget.
   */
  start(exchange: UpstreamExchange, stream: boolean, timeoutMs: number, now: number): void {
    const proto = this.#proto(stream);
    exchange.startedAt = now;
    exchange.proto = proto;
    this.#way(proto).transport.start(exchange, timeoutMs, now);
  }

  /** Counts a reply to the exchange; its message begins at `start`. */
  took(
    exchange: UpstreamExchange,
    bytes: Uint8Array,
    start: number,
    reused: boolean,
    now: number,
  ): void {
    const { metrics } = this.#parts;
    const { proto } = exchange;
    const tookMs = now - exchange.startedAt;
    this.#learn(tookMs);
    if (proto !== 'udp' && !reused) this.budget?.spend(TCP_PACKETS, now);
    const way = this.#way(proto);
    const connections = (way.connections ??= metrics.connections(this.to, protoLabels[proto]));
    (reused ? connections.hits : connections.misses).add(1);
    const rcode = bytes[start + 3]! & FLAG.RCODE;
    let duration = this.#durations[rcode];
    if (duration === undefined) {
      duration = metrics.duration(this.to, rcodeName(rcode));
      this.#durations[rcode] = duration;
    }
    duration.observe(tookMs / 1000);
  }

  /** The exchange failed: for the running average it took all the time that it had. */
  missed({ timeoutMs }: UpstreamExchange): void {
    this.#learn(timeoutMs);
  }

  countTcpRetry(): void {
    this.#tcpRetries.add(1);
  }

  countDelayed(): void {
    this.#spending?.delayed.add(1);
  }

  countOverspent(): void {
    this.#spending?.rejects.add(1);
  }

  /** Whether datagrams are spoken at all. */
  get plain(): boolean {
    return this.#parts.upstream.scheme === 'dns';
  }

  #learn(tookMs: number): void {
    this.latencyMs =
      this.latencyMs === 0 ? tookMs : this.latencyMs + LATENCY_WEIGHT * (tookMs - this.latencyMs);
  }

  #proto(stream: boolean): Protocol {
    const { scheme } = this.#parts.upstream;
    if (scheme !== 'dns') return scheme;
    return stream ? 'tcp' : 'udp';
  }

  #way(proto: Protocol): Way {
    if (this.#recent?.proto === proto) return this.#recent;
    let way = this.#open.get(proto);
    if (way === undefined) {
      way = { proto, transport: this.#transport(proto), connections: null };
      this.#open.set(proto, way);
    }
    return (this.#recent = way);
  }

  #transport(proto: Protocol): Upstream {
    const { upstream, network, tls, expireMs, maxAgeMs, maxIdle, source, dohMethod, serverName } =
      this.#parts;
    const { sourcePorts, maxConnections, inFlightMax, burst } = this.#parts;
    return network.upstream({
      address: {
        host: upstream.host,
        port: upstream.port,
        serverName: upstream.serverName || serverName,
      },
      proto,
      tls: proto === 'tls' || proto === 'https' ? tls : null,
      expireMs,
      maxAgeMs,
      maxIdle,
      sourcePorts,
      maxConnections,
      inFlightMax,
      burst,
      source,
      httpMethod: dohMethod,
      counters: this.#counters,
    });
  }

  /** Probes the upstream until it answers, whatever the answer. One loop at a time. */
  probe(): void {
    if (this.#probing || this.#closed) return;
    this.#probing = true;
    void this.#probeLoop();
  }

  async #probeLoop(): Promise<void> {
    const { health, clock, metrics, forceTcp } = this.#parts;
    const query = makeQuery(parseName(health.domain), TYPE.NS);
    if (!health.recursion) query.flags &= ~FLAG.RD;
    for (;;) {
      this.budget?.spend(1, clock.now());
      try {
        const { transport } = this.#way(this.#proto(forceTcp));
        await ask(transport, query, PROBE_TIMEOUT_MS, clock.now());
        this.fails = 0;
        break;
      } catch {
        if (this.#closed) break;
        this.fails++;
        metrics.healthFailures(this.to).add(1);
      }
      await new Promise<void>((resolve) => {
        clock.after(Math.max(10, health.intervalMs), resolve);
      });
      if (this.#closed) break;
    }
    this.#probing = false;
  }

  close(): void {
    this.#closed = true;
    this.#meter?.cancel();
    for (const { transport } of this.#open.values()) transport.close();
    this.#open.clear();
    this.#recent = null;
  }
}

const protoLabels: Readonly<Record<Protocol, string>> = {
  udp: 'udp',
  tcp: 'tcp',
  tls: 'tcp-tls',
  https: 'https',
  grpc: 'grpc',
};
