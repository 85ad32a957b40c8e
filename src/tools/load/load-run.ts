/**
 * Sends queries at a fixed rate regardless of replies (an open loop). Latency is measured from the time a query was
 * due.
 */
import { printHostPort } from '../../server/base/ip.ts';
import { Problem } from '../../server/base/problem.ts';
import { whyFailed } from '../../server/base/why-failed.ts';
import type { UpstreamAddress } from '../../server/transport/upstream-address.ts';
import type { OpenUdpPort, UdpPort, UdpPortOwner } from '../../server/transport/udp/udp-port.ts';
import type { Query } from '../../server/transport/query.ts';
import { Latencies } from './latencies.ts';

export interface LoadParts {
  readonly servers: readonly UpstreamAddress[];
  readonly queries: readonly Query[];
  /** Queries per second, sent to one server at a time. */
  readonly rate: number;
  readonly lastsMs: number;
  /** Milliseconds per turn. Servers take turns, so that other work on the machine affects them equally. */
  readonly turnMs: number;
  /** The number of milliseconds after which an unanswered query counts as lost. */
  readonly timeoutMs: number;
  /** Source ports per server, one per client. */
  readonly clients: number;
  readonly openPort: OpenUdpPort;
  readonly signal: AbortSignal;
  /** Called about once a second. */
  readonly progress?: (doneMs: number) => void;
}

export class ServerLoad {
  readonly latencies: Latencies = new Latencies();
  /** Replies by response code. */
  readonly rcodes: Map<number, number> = new Map();
  sent = 0;
  lost = 0;
  truncated = 0;
  /** Late replies, and replies that match no query. */
  late = 0;
  /** Send errors, and errors that report an unreachable server. */
  errors = 0;
}

/** The low four bits in the fourth byte (RFC 1035, section 4.1.1). */
const RCODE_MASK = 0x0f;
/** Milliseconds between clock checks, each of which sends every query that is due. */
const TICK_MS = 1;

/**
 * Runs to the end or until aborted.
 * @throws Problem (`load-server`) if there is no route to a server
 */
export async function runLoad(parts: LoadParts): Promise<readonly ServerLoad[]> {
  const { servers, queries, rate, lastsMs, turnMs, timeoutMs, signal, progress } = parts;
  const loads: AskedServer[] = [];
  try {
    for (const address of servers) loads.push(asked(address, parts));
    const begin = performance.now();
    let due = 0;
    let told = 0;
    while (!signal.aborted) {
      const elapsed = performance.now() - begin;
      const wanted = Math.floor((Math.min(elapsed, lastsMs) / 1000) * rate);
      for (; due < wanted; due++) {
        const dueMs = (due / rate) * 1000;
        const turn = Math.floor(dueMs / turnMs) % loads.length;
        loads[turn]!.send(queries[due % queries.length]!, begin + dueMs);
      }
      if (elapsed >= lastsMs) break;
      if (elapsed - told >= 1000) progress?.((told = elapsed));
      await new Promise((resolve) => setTimeout(resolve, TICK_MS));
    }
    const end = performance.now() + timeoutMs;
    while (!signal.aborted && performance.now() < end && loads.some(({ waiting }) => waiting > 0))
      await new Promise((resolve) => setTimeout(resolve, 10));
  } finally {
    for (const load of loads) load.close();
  }
  return loads.map(({ load }) => load);
}

function asked(address: UpstreamAddress, parts: LoadParts): AskedServer {
  try {
    return new AskedServer(address, parts);
  } catch (error) {
    const { host, port } = address;
    throw new Problem({
      code: 'load-server',
      text: `cannot send to ${printHostPort(host, port)}: ${whyFailed(error)}`,
      cause: error,
    });
  }
}

/** A server, and the source ports that send it queries. */
class AskedServer {
  readonly load = new ServerLoad();
  readonly #ports: AskingPort[];
  #next = 0;

  constructor(address: UpstreamAddress, parts: LoadParts) {
    const { clients, openPort, timeoutMs } = parts;
    this.#ports = Array.from(
      { length: clients },
      () =>
        new AskingPort(this.load, timeoutMs, (owner) => openPort({ address, source: '' }, owner)),
    );
  }

  get waiting(): number {
    return this.#ports.reduce((sum, port) => sum + port.waiting, 0);
  }

  send(query: Query, dueAt: number): void {
    this.#ports[this.#next]!.send(query, dueAt);
    this.#next = (this.#next + 1) % this.#ports.length;
  }

  close(): void {
    for (const port of this.#ports) port.close();
  }
}

/** A source port. It uses IDs in turn, each of which is taken until its reply or timeout. */
class AskingPort implements UdpPortOwner {
  readonly #load: ServerLoad;
  readonly #timeoutMs: number;
  readonly #port: UdpPort;
  /** The time at which the query with this ID was due, or 0 if there is none. */
  readonly #dueAt = new Float64Array(65_536);
  #id = 0;
  waiting = 0;

  constructor(load: ServerLoad, timeoutMs: number, open: (owner: UdpPortOwner) => UdpPort) {
    this.#load = load;
    this.#timeoutMs = timeoutMs;
    this.#port = open(this);
    this.#port.hold();
  }

  send(query: Query, dueAt: number): void {
    this.#id = (this.#id + 1) & 0xffff;
    if (this.#dueAt[this.#id] !== 0) this.#lose(this.#id);
    this.#load.sent++;
    if (this.#port.send(query, this.#id) !== null) {
      this.#load.errors++;
      this.#load.lost++;
      return;
    }
    this.#dueAt[this.#id] = dueAt;
    this.waiting++;
  }

  onDatagram(bytes: Uint8Array, start: number, end: number, cut: boolean): void {
    const id = end - start < 12 ? 0 : (bytes[start]! << 8) | bytes[start + 1]!;
    const dueAt = this.#dueAt[id]!;
    if (dueAt === 0) {
      this.#load.late++;
      return;
    }
    const took = performance.now() - dueAt;
    if (took > this.#timeoutMs) {
      this.#lose(id);
      this.#load.late++;
      return;
    }
    this.#dueAt[id] = 0;
    this.waiting--;
    const { latencies, rcodes } = this.#load;
    latencies.add(took);
    const rcode = bytes[start + 3]! & RCODE_MASK;
    rcodes.set(rcode, (rcodes.get(rcode) ?? 0) + 1);
    if (cut || (bytes[start + 2]! & 2) !== 0) this.#load.truncated++;
  }

  onError(): void {
    this.#load.errors++;
  }

  onUnsent(id: number, _: Error, left: boolean): void {
    this.#load.errors++;
    if (!left && this.#dueAt[id] !== 0) this.#lose(id);
  }

  close(): void {
    this.#load.lost += this.waiting;
    this.waiting = 0;
    this.#port.close();
  }

  #lose(id: number): void {
    this.#dueAt[id] = 0;
    this.waiting--;
    this.#load.lost++;
  }
}
