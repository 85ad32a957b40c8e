/** Finds a name's records. */
import { TYPE } from '../../wire/iana.ts';
import { pathOf, matches } from './path.ts';
import { HOST, unpackService, type SkydnsService } from './skydns-service.ts';

/** A range of keys and packed services: `[from, to)` in two arrays. */
export interface KeyStretch {
  readonly keys: readonly string[];
  readonly values: readonly string[];
  readonly from: number;
  readonly to: number;
}

export interface RecordSource {
  /**
   * Returns all keys under a path. Null means that they are still being read, so the answer must be computed again
   * later.
   * @param most if there are more keys than this, only some are returned, but more than this number
   */
  below(path: string, most: number): KeyStretch | null;
  at(path: string): KeyStretch | null;
  /** Returns when a lease expires, in milliseconds since 1970, or 0 if this is unknown. */
  leaseEnd(id: string): number;
}

export interface FoundService {
  readonly service: SkydnsService;
  /** TTL in seconds. */
  readonly ttl: number;
}

export class TooMany extends Error {
  override readonly name = 'TooMany';
}

export interface SkydnsLookupParts {
  readonly records: RecordSource;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** Minimum and maximum TTL from leases, in seconds. */
  readonly minLeaseTtl: number;
  readonly maxLeaseTtl: number;
  readonly maxSearch: number;
}

/** SkyDNS's default for records without a TTL. */
const DEFAULT_TTL = 300;

/** Finds records by name. Each query has its own instance, because it counts its reads. */
export class SkydnsLookup {
  readonly #parts: SkydnsLookupParts;
  #looked = 0;
  leased = false;

  constructor(parts: SkydnsLookupParts) {
    this.#parts = parts;
  }

  /**
   * Returns the records of a name (wire form, lower case), or only those in its group if it has one. Returns null if
   * the name does not exist. All keys under the name's path belong to it. If there are none, the key at the path itself
   * does.
   * @param exact use only the key itself
   * @throws TooMany
   */
  find(
    name: Uint8Array,
    length: number,
    type: number,
    exact = false,
  ): readonly FoundService[] | null {
    const { path, base } = pathOf(name, length);
    const wild = path !== base;
    let stretch = exact && !wild ? this.#at(base) : this.#below(base);
    if (stretch !== pending && isEmpty(stretch))
      stretch = exact && !wild ? this.#below(base) : this.#at(base);
    else if (exact && wild) return [];
    if (isEmpty(stretch)) return null;
    // There are keys under the path, but none at the path itself.
    if (exact && stretch.keys[stretch.from] !== path) return [];
    this.#looked += stretch.to - stretch.from;
    if (this.#looked > this.#parts.maxSearch) throw new TooMany();
    const segments = wild ? path.split('/') : null;
    const found: FoundService[] = [];
    for (let i = stretch.from; i < stretch.to; i++) {
      const packed = stretch.values[i]!;
      const key = stretch.keys[i]!;
      if (packed === '' || (segments !== null && !matches(key, segments))) continue;
      const service = unpackService(key, packed);
      if (service.kind !== HOST.none || (type === TYPE.TXT && service.text.length > 0))
        found.push({ service, ttl: this.#ttlOf(service) });
    }
    return ofGroup(found);
  }

  /** True if the name exists, without looking at its records. */
  exists(name: Uint8Array): boolean {
    const { base } = pathOf(name);
    const below = this.#below(base);
    return !isEmpty(below) || (below !== pending && !isEmpty(this.#at(base)));
  }

  #below(path: string): KeyStretch {
    return this.#known(this.#parts.records.below(path, this.#parts.maxSearch));
  }

  #at(path: string): KeyStretch {
    return this.#known(this.#parts.records.at(path));
  }

  #known(stretch: KeyStretch | null): KeyStretch {
    return stretch ?? pending;
  }

  #ttlOf({ ttl, lease }: SkydnsService): number {
    if (lease === '') return ttl === 0 ? DEFAULT_TTL : ttl;
    this.leased = true;
    const { records, now, minLeaseTtl, maxLeaseTtl } = this.#parts;
    const left = Math.floor((records.leaseEnd(lease) - now) / 1000);
    const bounded = Math.min(maxLeaseTtl, Math.max(minLeaseTtl, left));
    return ttl === 0 ? bounded : Math.min(ttl, bounded);
  }
}

/** The read is still in progress, and a result without it would be useless. */
const pending: KeyStretch = { keys: [], values: [], from: 0, to: 0 };

function isEmpty({ from, to }: KeyStretch): boolean {
  return from === to;
}

/**
 * Returns the records of one group, which is named by the key with the fewest segments. Records without a group are
 * always included. If the keys at that depth disagree, there is no group and all records are included.
 */
function ofGroup(found: readonly FoundService[]): readonly FoundService[] {
  const [first] = found;
  if (first === undefined) return found;
  let { group } = first.service;
  let depth = depthOf(first.service.key);
  const depths: number[] = [];
  for (const { service } of found) {
    const own = depthOf(service.key);
    depths.push(own);
    if (own >= depth) continue;
    if (service.group === '') break;
    depth = own;
    ({ group } = service);
  }
  if (group === '') return found;
  const members: FoundService[] = [];
  for (const [index, one] of found.entries()) {
    const own = one.service.group;
    if (own !== '' && own !== group && depths[index] === depth) return found;
    if (own === '' || own === group) members.push(one);
  }
  return members;
}

function depthOf(key: string): number {
  let depth = 0;
  for (let at = key.indexOf('/'); at >= 0; at = key.indexOf('/', at + 1)) depth++;
  return depth;
}
