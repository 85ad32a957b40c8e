/** The records of a signed zone: its own, its keys, the NSEC chain, and signatures. */
import { canonicalData, signedRecords } from '../../dnssec/canonical.ts';
import { dsData, type KeyPair } from '../../dnssec/key-pair.ts';
import type { Signer } from '../../dnssec/signer.ts';
import { nsecData, typeBitmaps } from '../../dnssec/nsec-data.ts';
import { signSet, type Validity } from '../../dnssec/signature.ts';
import { TYPE } from '../../wire/iana.ts';
import { foldName, NAME_MAX, nameLength, type WireName } from '../../wire/name.ts';
import { NODE, type PackedZone } from '../../zone/packed-zone.ts';
import { ZoneData } from '../../zone/zone-data.ts';

/** An RRset and its signatures, in wire form without compression. */
export interface SignedRrset {
  readonly owner: WireName;
  readonly type: number;
  /** TTL in seconds. */
  readonly ttl: number;
  readonly data: readonly Uint8Array[];
  /** RRSIG data, or empty for records that the zone must not sign. */
  readonly signatures: readonly Uint8Array[];
}

export interface Signing {
  readonly signers: readonly Signer[];
  readonly validity: Validity;
  readonly serial: number;
}

/** Types that signing creates. Records of these types in the zone file are removed. */
const made: ReadonlySet<number> = new Set([
  ...[TYPE.RRSIG, TYPE.DNSKEY, TYPE.CDS, TYPE.CDNSKEY, TYPE.NSEC, TYPE.NSEC3, TYPE.NSEC3PARAM],
]);
/** Number of names signed concurrently. */
const AT_ONCE = 32;

interface Rrset {
  readonly type: number;
  readonly ttl: number;
  readonly data: readonly Uint8Array[];
}

/**
 * Yields all RRsets of the signed zone in canonical order, with the SOA record first. Several names are signed at a
 * time, because other threads make the signatures.
 */
export async function* signedZone(
  packed: PackedZone,
  signing: Signing,
): AsyncGenerator<readonly SignedRrset[]> {
  const zone = new ZoneData(packed);
  const names = new NameReader(zone, signing);
  const chain: number[] = [];
  for (let node = 0; node < zone.size; node++) if (names.isInChain(node)) chain.push(node);
  const next = new Map(chain.map((node, at) => [node, chain[(at + 1) % chain.length]!]));
  let batch: Promise<readonly SignedRrset[]>[] = [];
  for (let node = 0; node < zone.size; node++) {
    const sets = names.sets(node);
    if (sets.length === 0) continue;
    const follower = next.get(node);
    batch.push(signName(names, node, sets, follower ?? null, signing));
    if (batch.length < AT_ONCE) continue;
    yield (await Promise.all(batch)).flat();
    batch = [];
  }
  yield (await Promise.all(batch)).flat();
}

/** @param follower the next name in the chain, or null if the name does not belong to the zone itself */
async function signName(
  names: NameReader,
  node: number,
  sets: readonly Rrset[],
  follower: number | null,
  { signers, validity }: Signing,
): Promise<readonly SignedRrset[]> {
  const owner = names.owner(node);
  if (follower === null) return sets.map((set) => ({ owner, ...set, signatures: [] }));
  const isCut = names.isCut(node);
  const all = [...sets, names.denial(follower, sets, isCut)];
  return Promise.all(
    all.map(async (set): Promise<SignedRrset> => {
      const { type, ttl, data } = set;
      // At a zone cut, only DS and NSEC belong to this zone (RFC 4035 section 2.2).
      if (isCut && type !== TYPE.DS && type !== TYPE.NSEC) return { owner, ...set, signatures: [] };
      const canonical = data.map((one) => canonicalData(one, 0, 0, one.length, type));
      const signed = { owner: foldName(owner), type, originalTtl: ttl, data: canonical };
      const records = signedRecords(signed);
      const signatures = await signSet(signed, records, names.origin, signers, validity);
      return { owner, ...set, signatures };
    }),
  );
}

/** Reads the RRsets for each name, adding those that signing creates and omitting those it replaces. */
class NameReader {
  readonly origin: WireName;
  readonly #zone: ZoneData;
  readonly #name = new Uint8Array(NAME_MAX + 1);
  readonly #keys: readonly Rrset[];
  readonly #serial: number;
  readonly #denialTtl: number;

  constructor(zone: ZoneData, { signers, serial }: Signing) {
    this.#zone = zone;
    this.origin = zone.origin;
    this.#serial = serial;
    const at = zone.soa();
    const soa = zone.data.slice(at, at + zone.value);
    const { ttl } = zone;
    // RFC 9077 section 3.
    this.#denialTtl = Math.min(ttl, new DataView(soa.buffer).getUint32(soa.length - 4));
    this.#keys = keySets(
      signers.map(({ pair }) => pair),
      zone.origin,
      ttl,
    );
  }

  /** Returns the owner as spelled in the file. */
  owner(node: number): WireName {
    return this.#name.slice(0, this.#zone.name(node, this.#name));
  }

  isCut(node: number): boolean {
    return (this.#zone.flags(node) & NODE.CUT) !== 0;
  }

  isInChain(node: number): boolean {
    return (this.#zone.flags(node) & NODE.GLUE) === 0 && this.sets(node).length > 0;
  }

  sets(node: number): readonly Rrset[] {
    const zone = this.#zone;
    const sets: Rrset[] = [];
    for (zone.sets(node); zone.next();) {
      const { type, ttl } = zone;
      if (made.has(type) || zone.count === 0) continue;
      const data: Uint8Array[] = [];
      let at = zone.recordsAt;
      for (let left = zone.count; left > 0; left--) {
        at = zone.varint(at);
        data.push(zone.data.slice(at, at + zone.value));
        at += zone.value;
      }
      if (type === TYPE.SOA)
        sets.unshift({ type, ttl, data: [withSerial(data[0]!, this.#serial)] });
      else sets.push({ type, ttl, data });
    }
    return node === 0 ? [...sets, ...this.#keys] : sets;
  }

  denial(follower: number, sets: readonly Rrset[], isCut: boolean): Rrset {
    const types = sets.map(({ type }) => type);
    const own = isCut ? types.filter((type) => type === TYPE.NS || type === TYPE.DS) : types;
    const data = nsecData(this.owner(follower), typeBitmaps([...own, TYPE.RRSIG, TYPE.NSEC]));
    return { type: TYPE.NSEC, ttl: this.#denialTtl, data: [data] };
  }
}

/** Returns DNSKEY records, and records for the parent zone (RFC 7344). */
function keySets(pairs: readonly KeyPair[], origin: WireName, ttl: number): readonly Rrset[] {
  const keys = pairs.map(({ data }) => data);
  const digests = pairs.map((pair) => dsData(pair, origin));
  return [
    { type: TYPE.DNSKEY, ttl, data: keys },
    { type: TYPE.CDS, ttl, data: digests },
    { type: TYPE.CDNSKEY, ttl, data: keys },
  ];
}

function withSerial(soa: Uint8Array, serial: number): Uint8Array {
  const at = nameLength(soa);
  const changed = soa.slice();
  new DataView(changed.buffer).setUint32(at + nameLength(soa, at), serial);
  return changed;
}
