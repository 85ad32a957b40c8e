/**
 * Connections that processes open to addresses they have looked up: the target, its translation, and the process that
 * accepted it.
 */
import { printAddress } from '../../../server/base/ip.ts';
import { isAddressType } from '../../../server/wire/iana.ts';
import { printData } from '../../../server/wire/print.ts';
import type { Peer } from '../../../server/wire/exchange.ts';
import { answerRecords, type SeenLookup } from '../pair/seen-exchange.ts';
import { emptyPacket, PROTOCOL, readIpv4, readIpv6 } from '../read/packets/ip-packet.ts';
import type { Asker } from '../pair/asker.ts';
import type { Attribution } from './attribution.ts';

export interface OpenedConnection {
  readonly client: Peer;
  readonly server: Peer;
  readonly openedMs: number;
  readonly asker: Asker;
  /** The server after translation, or null if it is unknown or not translated. */
  behind: Peer | null;
  /** The process that accepted the connection or listens there, or null if it has not been looked up yet. */
  acceptor: Asker | null;
}

/** Milliseconds until the accepting process has the connection. The connection tracking entry lasts longer. */
const SETTLE_MS = 5;
/** Programs use an address within this many milliseconds of looking it up. */
const SOON_MS = 10_000;
/** The oldest are dropped first. */
const CONNECTIONS_MAX = 10_000;
const NEXT_MAX = 5;
const SYN = 2;
const ACK = 16;
const FLAGS_AT = 13;

export class OpenedConnections {
  readonly #attribution: Attribution;
  readonly #ports: ReadonlySet<number>;
  readonly #packet = emptyPacket();
  /** By client address and port, which translated copies and repeats have in common. */
  readonly #all = new Map<string, OpenedConnection>();
  #unsettled: OpenedConnection[] = [];

  /** @param ports name server ports, where connections count as queries */
  constructor(attribution: Attribution, ports: readonly number[]) {
    this.#attribution = attribution;
    this.#ports = new Set(ports);
  }

  /** @returns false if the packet does not open a connection, or if the connection is to a name server */
  take(bytes: Uint8Array, start: number, end: number, timeMs: number): boolean {
    const packet = this.#packet;
    const isIp =
      bytes[start]! >> 4 === 4
        ? readIpv4(bytes, start, end, packet)
        : readIpv6(bytes, start, end, packet);
    if (!isIp || packet.protocol !== PROTOCOL.TCP || packet.end - packet.at <= FLAGS_AT)
      return false;
    const at = packet.at;
    if ((bytes[at + FLAGS_AT]! & (SYN | ACK)) !== SYN) return false;
    const [from, to] = [(bytes[at]! << 8) | bytes[at + 1]!, (bytes[at + 2]! << 8) | bytes[at + 3]!];
    if (this.#ports.has(from) || this.#ports.has(to)) return false;
    const size = packet.family === 4 ? 4 : 16;
    const address = (place: number): string =>
      printAddress(packet.head, packet.addressesAt + place, size);
    this.#opened({ address: address(0), port: from }, { address: address(size), port: to }, timeMs);
    return true;
  }

  /** Call periodically to look up the acceptors. */
  settle(nowMs: number): void {
    const ripe = this.#unsettled.filter(({ openedMs }) => nowMs - openedMs >= SETTLE_MS);
    if (ripe.length === 0) return;
    this.#unsettled = this.#unsettled.filter(({ openedMs }) => nowMs - openedMs < SETTLE_MS);
    for (const each of ripe) {
      const { client, server, openedMs } = each;
      const found = this.#attribution.translated('tcp', client, server);
      each.behind = found?.server ?? null;
      each.acceptor = this.#attribution.receiver(
        'tcp',
        found?.server ?? server,
        found?.client ?? client,
        openedMs,
      );
    }
  }

  /** The connections, in order, for which the process used addresses from a lookup. */
  after(lookup: SeenLookup): readonly OpenedConnection[] {
    const pids = new Set(
      lookup.exchanges.flatMap(({ asker }) => (asker?.processes ?? []).map(({ pid }) => pid)),
    );
    if (pids.size === 0) return [];
    const addresses = addressesFound(lookup);
    const found: OpenedConnection[] = [];
    for (const each of this.#all.values()) {
      const { openedMs, client, server, asker } = each;
      if (client.address !== lookup.client || !addresses.has(server.address)) continue;
      if (openedMs < lookup.startMs || openedMs > lookup.endMs + SOON_MS) continue;
      if (asker.processes.some(({ pid }) => pids.has(pid))) found.push(each);
      if (found.length === NEXT_MAX) break;
    }
    return found;
  }

  #opened(client: Peer, server: Peer, timeMs: number): void {
    const key = `${client.address} ${client.port}`;
    const before = this.#all.get(key);
    // This is the same packet after translation, on another interface, or repeated.
    if (before !== undefined && timeMs - before.openedMs < SOON_MS) return;
    const asker = this.#attribution.sender('tcp', client, server, timeMs);
    // If the process is unknown, the connection cannot be matched to a lookup.
    if (asker.processes.length === 0) return;
    const opened = { client, server, openedMs: timeMs, asker, behind: null, acceptor: null };
    this.#all.delete(key);
    this.#all.set(key, opened);
    this.#unsettled.push(opened);
    if (this.#all.size > CONNECTIONS_MAX) this.#all.delete(this.#all.keys().next().value!);
    if (this.#unsettled.length > CONNECTIONS_MAX) this.#unsettled.shift();
  }
}

function addressesFound({ exchanges }: SeenLookup): ReadonlySet<string> {
  const found = new Set<string>();
  for (const { type, data } of exchanges.flatMap(answerRecords))
    if (isAddressType(type)) found.add(printData(type, data));
  return found;
}
