/** New sockets without DNS, by source and second: each takes an entry of connection tracking. */
import { BoundedMap } from './bounded-map.ts';
import { FIRST_CLIENT_PORT } from '../thresholds/transport.ts';

const SOURCES_MAX = 500;
/** Seconds of one source: ten minutes. */
const SECONDS_MAX = 600;
const PORTS = 65_536;

interface Source {
  /** One bit for each port that it used. */
  readonly known: Uint8Array;
  readonly seconds: BoundedMap<number, { opened: number }>;
}

/** New sockets by the address that opened them, in each second. */
export class OtherSockets {
  /** UDP ports, other than those of DNS, from which hosts send to clients. */
  readonly servers: BoundedMap<string, { readonly address: string; readonly port: number }> =
    new BoundedMap(SOURCES_MAX);
  readonly #sources: BoundedMap<string, Source> = new BoundedMap(SOURCES_MAX);

  datagram(source: string, port: number, targetPort: number, timeMs: number): void {
    this.add(source, port, timeMs);
    if (port < FIRST_CLIENT_PORT && targetPort >= FIRST_CLIENT_PORT)
      this.servers.at(`${source} ${port}`, () => ({ address: source, port }));
  }

  add(source: string, port: number, timeMs: number): void {
    const theirs = this.#sources.at(source, () => ({
      known: new Uint8Array(PORTS / 8),
      seconds: new BoundedMap(SECONDS_MAX),
    }));
    if (theirs === null) return;
    const bit = 1 << (port & 7);
    if ((theirs.known[port >> 3]! & bit) !== 0) return;
    theirs.known[port >> 3]! |= bit;
    const second = theirs.seconds.at(Math.floor(timeMs / 1000), () => ({ opened: 0 }));
    if (second !== null) second.opened++;
  }

  /** The one that opened the most in these seconds, the last one included; null: there were none. */
  busiest(
    fromS: number,
    toS: number,
  ): { readonly address: string; readonly opened: number } | null {
    let best: { address: string; opened: number } | null = null;
    for (const [address, { seconds }] of this.#sources.entries) {
      let opened = 0;
      for (const [second, each] of seconds.entries)
        if (second >= fromS && second <= toS) opened += each.opened;
      if (opened > (best?.opened ?? 0)) best = { address, opened };
    }
    return best;
  }

  clear(): void {
    this.#sources.clear();
    this.servers.clear();
  }
}
