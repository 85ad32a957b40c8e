/** The addresses of upstreams given by host name, which are looked up repeatedly at run time. */
import type { Clock } from '../../base/clock.ts';
import { whyFailed } from '../../base/why-failed.ts';
import type { Counter, Family, Gauge, Registry } from '../../metrics/registry.ts';

export interface HostLookup {
  readonly addresses: readonly string[];
  /** The records' lowest TTL, or null because the system resolver does not report it. */
  readonly ttlMs: number | null;
  /** False if the lookup failed for one address family, so that addresses may be missing. */
  readonly whole: boolean;
}

export interface HostAddressesParts {
  readonly lookUp: (name: string, servers: readonly string[]) => Promise<HostLookup>;
  readonly clock: Clock;
  readonly metrics: Registry;
  /** The minimum time between two lookups of a name. If it is 0, names are looked up only once. */
  readonly intervalMs: number;
  readonly holdMs: number;
  readonly warn: (text: string) => void;
}

interface KnownHost {
  readonly addresses: readonly string[];
  readonly dueAt: number;
}

/** Remembers the addresses of host names. If a lookup fails or finds nothing, the previous addresses stay in use. */
export class HostAddresses {
  readonly #parts: HostAddressesParts;
  readonly #known = new Map<string, KnownHost>();
  readonly #failing = new Set<string>();
  #lookups: Family<readonly ['host', 'result'], Counter> | null = null;
  #addresses: Family<readonly ['host'], Gauge> | null = null;

  constructor(parts: HostAddressesParts) {
    this.#parts = parts;
  }

  get names(): readonly string[] {
    return [...this.#known.keys()];
  }

  get refreshes(): boolean {
    return this.#parts.intervalMs > 0 && this.#known.size > 0;
  }

  get due(): boolean {
    const now = this.#parts.clock.now();
    return this.refreshes && [...this.#known.values()].some(({ dueAt }) => dueAt <= now);
  }

  /**
   * Resolves a name to its addresses.
   * @throws the lookup's error if no earlier addresses are known
   */
  readonly resolve = async (
    name: string,
    servers: readonly string[],
  ): Promise<readonly string[]> => {
    const { clock, intervalMs, holdMs, lookUp } = this.#parts;
    const before = this.#known.get(name);
    if (before !== undefined && (intervalMs === 0 || clock.now() < before.dueAt))
      return before.addresses;
    let found: HostLookup | null = null;
    let why = 'it has no address';
    try {
      found = await lookUp(name, servers);
      if (!found.whole) why = 'one address family could not be looked up';
    } catch (error) {
      if (before === undefined) throw error;
      why = whyFailed(error);
    }
    const usable =
      found !== null && found.addresses.length > 0 && (found.whole || before === undefined);
    if (before === undefined && !usable) return [];
    this.#count(name, usable);
    if (!usable) {
      if (!this.#failing.has(name))
        this.#parts.warn(
          `lookup of the upstream ${name} failed: ${why}; keeping its addresses (${before!.addresses.join(', ')})`,
        );
      this.#failing.add(name);
    } else this.#failing.delete(name);
    const addresses = usable ? sameOr(before?.addresses, found!.addresses) : before!.addresses;
    const wait = Math.max(intervalMs, Math.min(holdMs, usable ? (found!.ttlMs ?? 0) : 0));
    this.#known.set(name, { addresses, dueAt: clock.now() + wait });
    this.#addresses!.with(name).set(addresses.length);
    return addresses;
  };

  #count(name: string, usable: boolean): void {
    const { metrics } = this.#parts;
    this.#lookups ??= metrics.counter(
      'ndots_forward_host_lookups_total',
      'Lookups of upstream host names; after a failed lookup, the previous addresses stay in use.',
      ['host', 'result'],
    );
    this.#addresses ??= metrics.gauge(
      'ndots_forward_host_addresses',
      'Current addresses of an upstream host name.',
      ['host'],
    );
    this.#lookups.with(name, usable ? 'ok' : 'failed').add(1);
  }
}

/** Returns the previous addresses if only their order has changed, because servers rotate them. */
function sameOr(
  before: readonly string[] | undefined,
  found: readonly string[],
): readonly string[] {
  if (before?.length !== found.length) return found;
  const known = new Set(before);
  return found.every((address) => known.has(address)) ? before : found;
}
