/** The RRsets in a reply. */
import { canonicalData, type SignedSet } from '../../dnssec/canonical.ts';
import { CLASS, TYPE } from '../../wire/iana.ts';
import { LOWER, type WireName } from '../../wire/name.ts';
import { Records } from '../../wire/records.ts';
import type { Reply } from '../../wire/reply.ts';
import type { Section } from '../../wire/writer.ts';

/** Original TTL in all signatures, in seconds. The TTL in a reply may already have counted down. */
const ORIGINAL_TTL = 3600;

export interface FoundSet extends SignedSet {
  readonly section: Section;
  readonly ownerAt: number;
  readonly dataAt: number;
  /** Seconds. */
  readonly ttl: number;
  readonly data: Uint8Array[];
}

const records = new Records();

/** All signable RRsets in a reply, in order, including those that are already signed. */
export class FoundSets {
  readonly #sets = new Map<string, FoundSet>();
  readonly #signed = new Set<string>();

  constructor(reply: Reply) {
    for (records.of(reply); records.next();) {
      const { section, type, ownerAt, dataAt, dataLength, bytes, start, ttl } = records;
      if (records.class !== CLASS.IN || type === TYPE.OPT) continue;
      const owner = records.owner.map((byte) => LOWER[byte]!);
      if (type === TYPE.RRSIG) {
        const covered = (bytes[dataAt]! << 8) | bytes[dataAt + 1]!;
        if (dataLength >= 18) this.#signed.add(keyOf(section, owner, covered));
        continue;
      }
      const key = keyOf(section, owner, type);
      const known = this.#sets.get(key);
      const data = canonicalData(bytes, start, dataAt, dataLength, type);
      if (known !== undefined) known.data.push(data);
      else {
        const originalTtl = ORIGINAL_TTL;
        const set = { section, owner, type, originalTtl, ownerAt, dataAt, ttl, data: [data] };
        this.#sets.set(key, set);
      }
    }
  }

  get all(): Iterable<FoundSet> {
    return this.#sets.values();
  }

  find(section: Section, owner: WireName, type: number): FoundSet | null {
    return this.#sets.size === 0 ? null : (this.#sets.get(keyOf(section, owner, type)) ?? null);
  }

  first(section: Section, type: number): FoundSet | null {
    for (const set of this.all) if (set.section === section && set.type === type) return set;
    return null;
  }

  isSigned({ section, owner, type }: FoundSet): boolean {
    return this.#signed.size > 0 && this.#signed.has(keyOf(section, owner, type));
  }
}

function keyOf(section: Section, owner: WireName, type: number): string {
  return `${section} ${type} ${Buffer.from(owner).toString('latin1')}`;
}
