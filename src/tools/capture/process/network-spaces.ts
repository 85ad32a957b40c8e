/** Finds the network namespace that has an address, which also gives access to its sockets. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isLoopback, parseAddress, printAddress } from '../../../server/base/ip.ts';
import type { Peer } from '../../../server/wire/exchange.ts';
import { allProcesses, networkOf } from './proc-files.ts';

export interface KernelSocket {
  /** 0: no process holds it. */
  readonly inode: number;
  /** The kernel never reuses it until reboot. */
  readonly cookie: bigint;
  readonly uid: number;
  /** The number of its cgroup v2, or null if unknown. */
  readonly cgroup: bigint | null;
  readonly listens: boolean;
}

export interface SpaceSockets {
  find(protocol: 'udp' | 'tcp', local: Peer, remote: Peer): KernelSocket | null;
  close(): void;
}

/** Opens kernel interfaces, using the native calls in `src/server/runtime/`. */
export interface SpaceOpener {
  /**
   * @param path to the namespace: `/proc/PID/ns/net`
   * @throws an error if access is denied or the namespace does not exist
   */
  sockets(path: string): SpaceSockets;
  addresses(path: string): readonly string[];
  /** This machine's namespaces. By default, those in /proc and those with names. */
  list?(): NamespacePaths;
}

export interface NamespacePaths {
  /** Paths by name, for example `/proc/PID/ns/net` for `net:[4026531840]`. */
  readonly paths: ReadonlyMap<string, readonly string[]>;
  /** True if some processes' namespaces could not be read. */
  readonly refused: boolean;
}

export interface NetworkSpace {
  /** `net:[4026531840]`. */
  readonly name: string;
  readonly sockets: SpaceSockets;
}

export type NoSpace = 'elsewhere' | 'several';

interface OpenSpace extends NetworkSpace {
  addresses: readonly string[];
}

/** Limit on open namespaces. A node has about 250 pods. */
const SPACES_MAX = 1024;
/** A search that took 1 ms is repeated after 20 ms at the earliest. */
const PAUSE_PER_COST = 20;
/** Milliseconds until an address without a namespace is searched for again. */
const MISSING_MS = 2000;
/** The number of addresses without a namespace that are remembered. */
const MISSING_MAX = 10_000;
/** Milliseconds until the contents of namespaces are read again. */
const STALE_MS = 2000;
/** The directory in which `ip netns` and container runtimes store namespaces. */
const KEPT = '/run/netns';

/** Finds the namespace that has an address. The owner must close it. */
export class NetworkSpaces {
  readonly #opener: SpaceOpener;
  readonly #own: OpenSpace;
  readonly #spaces = new Map<string, OpenSpace>();
  /** Without loopback addresses, which every namespace has. */
  #byAddress = new Map<string, NetworkSpace | 'several'>();
  readonly #missing = new Map<string, number>();
  #searchAfterMs = -Infinity;
  #searchedMs = -Infinity;
  #refused = false;

  /**
   * @param own the namespace in which packets are captured
   * @throws the opener's error for that namespace
   */
  constructor(opener: SpaceOpener, own: { readonly name: string; readonly path: string }) {
    this.#opener = opener;
    const addresses = opener.addresses(own.path);
    this.#own = { name: own.name, sockets: opener.sockets(own.path), addresses };
    this.#spaces.set(own.name, this.#own);
    this.#search(performance.now());
  }

  /** True if access to a namespace was denied, because that one may have any address. */
  get refused(): boolean {
    return this.#refused;
  }

  of(address: string): NetworkSpace | NoSpace {
    const found = this.#byAddress.get(address);
    if (found !== undefined) return found;
    const bytes = parseAddress(address);
    if (bytes === null) return 'elsewhere';
    if (isLoopback(bytes)) return this.#own;
    const nowMs = performance.now();
    if ((this.#missing.get(address) ?? -Infinity) >= nowMs || !this.#search(nowMs))
      return 'elsewhere';
    const appeared = this.#byAddress.get(address);
    if (appeared !== undefined) return appeared;
    if (this.#missing.size >= MISSING_MAX) this.#missing.clear();
    this.#missing.set(address, nowMs + MISSING_MS);
    return 'elsewhere';
  }

  /** Call this periodically to find new namespaces and close removed ones. */
  refresh(): void {
    const nowMs = performance.now();
    if (nowMs - this.#searchedMs > STALE_MS) this.#search(nowMs);
  }

  close(): void {
    for (const { sockets } of this.#spaces.values()) sockets.close();
    this.#spaces.clear();
    this.#byAddress.clear();
  }

  /** @returns false if the last search was too recent */
  #search(nowMs: number): boolean {
    if (nowMs < this.#searchAfterMs) return false;
    const { paths, refused } = (this.#opener.list ?? namespacePaths)();
    if (refused) this.#refused = true;
    for (const [name, space] of this.#spaces)
      // Otherwise, its open sockets would keep the namespace alive after it has ended.
      if (space !== this.#own && !paths.has(name)) {
        space.sockets.close();
        this.#spaces.delete(name);
      }
    for (const [name, candidates] of paths) this.#take(name, candidates);
    this.#index();
    this.#searchedMs = performance.now();
    this.#searchAfterMs = this.#searchedMs + (this.#searchedMs - nowMs) * PAUSE_PER_COST;
    return true;
  }

  #take(name: string, candidates: readonly string[]): void {
    const open = this.#spaces.get(name);
    for (const path of candidates)
      try {
        const addresses = this.#opener.addresses(path);
        if (open !== undefined) open.addresses = addresses;
        else if (this.#spaces.size < SPACES_MAX)
          this.#spaces.set(name, { name, sockets: this.#opener.sockets(path), addresses });
        return;
      } catch (error) {
        // The process has exited and the namespace may have another one, or access is denied.
        const { code } = error as { readonly code?: string };
        if (code !== 'ENOENT' && code !== 'ESRCH') this.#refused = true;
      }
  }

  #index(): void {
    const found = new Map<string, NetworkSpace | 'several'>();
    for (const space of this.#spaces.values())
      for (const address of space.addresses) {
        const { plain, isEverywhere } = canonical(address);
        if (isEverywhere) continue;
        const known = found.get(plain);
        if (known === undefined) found.set(plain, space);
        // Packets for an address in the capturing namespace were sent there.
        else if (known !== space && known !== this.#own)
          found.set(plain, space === this.#own ? space : 'several');
      }
    this.#byAddress = found;
    for (const address of found.keys()) this.#missing.delete(address);
  }
}

/** Formats an address as captures print it, leaving out a link-local address's interface. */
function canonical(address: string): { readonly plain: string; readonly isEverywhere: boolean } {
  const [plain = ''] = address.split('%');
  const bytes = parseAddress(plain);
  if (bytes === null) return { plain, isEverywhere: false };
  return { plain: printAddress(bytes, 0, bytes.length), isEverywhere: isLoopback(bytes) };
}

/** Returns paths for each namespace that has a process or a name. Each has several paths, because processes exit. */
function namespacePaths(): NamespacePaths {
  const found = new Map<string, string[]>();
  let refused = false;
  const add = (name: string, path: string): void => {
    const known = found.get(name);
    if (known === undefined) found.set(name, [path]);
    else if (known.length < 3) known.push(path);
  };
  for (const pid of allProcesses()) {
    const network = networkOf(pid);
    if (network === 'refused') refused = true;
    else if (network !== 'ended') add(network.name, `/proc/${pid}/ns/net`);
  }
  try {
    for (const file of readdirSync(KEPT)) {
      const path = join(KEPT, file);
      add(`net:[${statSync(path).ino}]`, path);
    }
  } catch {
    // No namespace has a name.
  }
  return { paths: found, refused };
}
