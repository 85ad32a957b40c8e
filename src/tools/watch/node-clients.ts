/**
 * Separates packets of a node's own clients from those of other nodes' clients, which are shown by their own agents.
 * This way, each lookup in a cluster counts only once.
 */
import type { InterfaceSide } from '../../server/runtime/interface-sides.ts';
import { PROTOCOL } from '../capture/read/packets/ip-packet.ts';

/** The number of other nodes' clients to remember. More would be a scan. */
const CLIENTS_MAX = 65_536;
/**
 * In milliseconds. If another node's client has been silent for this long, its address may now belong to a new pod on
 * this node.
 */
const FORGET_MS = 60_000;
const IPV4_HEADER = 20;
const IPV6_HEADER = 40;

/** Identifies clients by the interface on which their queries arrive. */
export class NodeClients {
  readonly #ports: ReadonlySet<number>;
  /** Replaced periodically, because interfaces come and go with pods. */
  sides: ReadonlyMap<number, InterfaceSide>;
  /**
   * Maps an address to the time of its last query from outside. The one that has been silent for longest comes first.
   */
  readonly #others = new Map<string, number>();

  /** @param ports the name servers' ports */
  constructor(ports: readonly number[], sides: ReadonlyMap<number, InterfaceSide>) {
    this.#ports = new Set(ports);
    this.sides = sides;
  }

  /**
   * Returns false for a query from another node's client or a reply to one. Packets without ports, which are fragments
   * and ICMP errors, count as the node's own.
   * @param port the interface number
   * @param isOutgoing true if the packet leaves through this interface
   */
  isOwn(
    bytes: Uint8Array,
    start: number,
    end: number,
    timeMs: number,
    port: number,
    isOutgoing: boolean,
  ): boolean {
    const isIpv4 = bytes[start]! >> 4 === 4;
    const payload = start + (isIpv4 ? 4 * (bytes[start]! & 15) : IPV6_HEADER);
    if (payload + 4 > end || payload < start + IPV4_HEADER) return true;
    const protocol = bytes[start + (isIpv4 ? 9 : 6)];
    if (protocol !== PROTOCOL.UDP && protocol !== PROTOCOL.TCP) return true;
    const isPart = isIpv4 && ((bytes[start + 6]! & 0x1f) !== 0 || bytes[start + 7] !== 0);
    if (isPart) return true;
    const isQuery = this.#ports.has((bytes[payload + 2]! << 8) | bytes[payload + 3]!);
    const isReply = !isQuery && this.#ports.has((bytes[payload]! << 8) | bytes[payload + 1]!);
    if (!isQuery && !isReply) return true;
    const size = isIpv4 ? 4 : 16;
    const source = start + (isIpv4 ? 12 : 8);
    const at = isQuery ? source : source + size;
    const client = Buffer.from(bytes.buffer, bytes.byteOffset + at, size).toString('latin1');
    if (isQuery && !isOutgoing) this.#arrived(client, port, timeMs);
    const seenMs = this.#others.get(client);
    return seenMs === undefined || timeMs - seenMs > FORGET_MS;
  }

  #arrived(client: string, port: number, timeMs: number): void {
    const side = this.sides.get(port);
    if (side === undefined) return;
    this.#others.delete(client);
    if (side === 'inside') return;
    this.#others.set(client, timeMs);
    if (this.#others.size <= CLIENTS_MAX) return;
    for (const [oldest] of this.#others) {
      this.#others.delete(oldest);
      return;
    }
  }
}
