/** One `forward` upstream: connections, probes and response time. */
import { every, type Timer } from '../../base/clock.ts';
import type { Counter, Histogram } from '../../metrics/registry.ts';
import type { WorkerContext } from '../../engine/contract/plugin.ts';
import type { UpstreamExchange } from '../../transport/upstream/upstream-exchange.ts';
import type { Protocol } from '../../wire/transports.ts';
import {
  ask,
  type Upstream,
  type UpstreamCounters,
  type UpstreamTls,
} from '../../transport/upstream-address.ts';
import { FLAG, rcodeName, TYPE } from '../../wire/iana.ts';
import { parseName } from '../../wire/name.ts';
import { makeQuery } from '../../transport/query.ts';
import { printUpstream, type ForwardUpstreamSpec } from './address.ts';
import { Budget } from './budget.ts';
import type { ForwardLine } from './forward-options.ts';
import type { ForwardMetrics } from './forward-counters.ts';

const PROBE_TIMEOUT_MS = 1000;
/** Additional packets needed to open a TCP connection: SYN, ACKs, FIN. */
const TCP_PACKETS = 4;
/** Weight of a new measurement in the running average of response times. */
const LATENCY_WEIGHT = 0.2;

/** An upstream's address, its line's options, and what it uses. */
export interface ForwardUpstreamParts
  extends Omit<ForwardLine, 'tls'>, Pick<WorkerContext, 'network' | 'clock'> {
  readonly spec: ForwardUpstreamSpec;
  readonly metrics: ForwardMetrics;
  readonly tls: UpstreamTls | null;
}

/** A transport to an upstream, and its counters. */
interface Channel {
  readonly proto: Protocol;
  readonly transport: Upstream;
  connections: { readonly hits: Counter; readonly misses: Counter } | null;
}

/** One upstream on a forward line, with its transports, health and latency. */
export class ForwardUpstream {
  /** `IP:port`, as used in metrics and messages. */
  readonly to: string;
  readonly budget: Budget | null;
  /** Number of failed probes since the last success. */
  fails = 0;
  /** Running average of the response time in ms; 0 if unknown. */
  latencyMs = 0;
  readonly #parts: ForwardUpstreamParts;
  readonly #open = new Map<Protocol, Channel>();
  /** The last one used, because most queries use the same one again. */
  #recent: Channel | null = null;
  /** By result code (four bits in the header). */
  readonly #durations: (Histogram | undefined)[] = Array<Histogram | undefined>(16).fill(undefined);
  readonly #counters: UpstreamCounters;
  readonly #tcpRetries: Counter;
  readonly #spending: ReturnType<ForwardMetrics['budget']> | null;
  readonly #meter: Timer | null;
  #probing = false;
  #closed = false;

  constructor(parts: ForwardUpstreamParts) {
    const { spec, metrics, maxPps, clock } = parts;
    this.#parts = parts;
    this.to = printUpstream(spec);
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

  get spec(): ForwardUpstreamSpec {
    return this.#parts.spec;
  }

  isDown(maxFails: number): boolean {
    return maxFails > 0 && this.fails > maxFails;
  }

  /**
   * Sends over UDP or over a stream, which is TCP or the upstream's own transport. The caller has already paid from the
   * budget.
   */
  start(exchange: UpstreamExchange, stream: boolean, timeoutMs: number, now: number): void {
    const proto = this.#proto(stream);
    exchange.startedAt = now;
    exchange.proto = proto;
    this.#channel(proto).transport.start(exchange, timeoutMs, now);
  }

  /** Counts the reply to an exchange; its message starts at `start`. */
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
    const channel = this.#channel(proto);
    const connections = (channel.connections ??= metrics.connections(this.to, protoLabels[proto]));
    (reused ? connections.hits : connections.misses).add(1);
    const rcode = bytes[start + 3]! & FLAG.RCODE;
    let duration = this.#durations[rcode];
    if (duration === undefined) {
      duration = metrics.duration(this.to, rcodeName(rcode));
      this.#durations[rcode] = duration;
    }
    duration.observe(tookMs / 1000);
  }

  /** A failed exchange counts in the running average as its whole timeout. */
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

  /** True if this upstream accepts UDP. */
  get plain(): boolean {
    return this.#parts.spec.scheme === 'dns';
  }

  #learn(tookMs: number): void {
    this.latencyMs =
      this.latencyMs === 0 ? tookMs : this.latencyMs + LATENCY_WEIGHT * (tookMs - this.latencyMs);
  }

  #proto(stream: boolean): Protocol {
    const { scheme } = this.#parts.spec;
    if (scheme !== 'dns') return scheme;
    return stream ? 'tcp' : 'udp';
  }

  #channel(proto: Protocol): Channel {
    if (this.#recent?.proto === proto) return this.#recent;
    let channel = this.#open.get(proto);
    if (channel === undefined) {
      channel = { proto, transport: this.#transport(proto), connections: null };
      this.#open.set(proto, channel);
    }
    return (this.#recent = channel);
  }

  #transport(proto: Protocol): Upstream {
    const { spec, network, tls, tlsServerName, expireMs, maxAgeMs, maxIdle, source } = this.#parts;
    const { sourcePorts, maxConnections, maxConcurrent, burst, dohMethod } = this.#parts;
    return network.upstream({
      address: {
        host: spec.host,
        port: spec.port,
        serverName: spec.serverName || (tlsServerName ?? ''),
      },
      proto,
      tls: proto === 'tls' || proto === 'https' ? tls : null,
      expireMs,
      maxAgeMs,
      maxIdle,
      sourcePorts,
      maxConnections,
      // An upstream with a single connection allows as many on that one.
      inFlightMax: maxConcurrent,
      burst,
      source: source ?? '',
      httpMethod: dohMethod,
      counters: this.#counters,
    });
  }

  /** Probes the upstream until it answers with any result code at all. Only one such loop runs at a time. */
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
        const { transport } = this.#channel(this.#proto(forceTcp));
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
