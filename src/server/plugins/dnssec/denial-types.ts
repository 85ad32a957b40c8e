/**
 * The types that a denial lists for a name. It lists all possible ones, because the name's real types are unknown here.
 */
import { typeBitmaps } from '../../dnssec/nsec-data.ts';
import { TYPE } from '../../wire/iana.ts';

export type NameStanding = 'apex' | 'cut' | 'name';

/** CNAME, DNAME, NS and SOA are listed only where they exist, because they would change what the name means. */
const possible: readonly number[] = [
  ...[TYPE.A, TYPE.PTR, TYPE.HINFO, TYPE.MX, TYPE.TXT, TYPE.RP, TYPE.AFSDB, TYPE.AAAA, TYPE.LOC],
  ...[TYPE.SRV, TYPE.NAPTR, TYPE.CERT, TYPE.APL, TYPE.SSHFP, TYPE.RRSIG, TYPE.NSEC, TYPE.TLSA],
  ...[TYPE.SMIMEA, TYPE.HIP, TYPE.OPENPGPKEY, TYPE.SVCB, TYPE.HTTPS, TYPE.SPF, TYPE.URI, TYPE.CAA],
];
const atApex: readonly number[] = [
  ...possible,
  ...[TYPE.NS, TYPE.SOA, TYPE.DNSKEY, TYPE.CDS, TYPE.CDNSKEY],
];
const atCut: readonly number[] = [TYPE.NS, TYPE.RRSIG, TYPE.NSEC];

const claimed: Readonly<Record<NameStanding, readonly number[]>> = {
  apex: atApex,
  cut: atCut,
  name: possible,
};
/** Cached by position and omitted type. There are only a few dozen combinations, and each denial needs one. */
const made: Readonly<Record<NameStanding, Map<number, Uint8Array>>> = {
  apex: new Map(),
  cut: new Map(),
  name: new Map(),
};

/** Returns the types to list in a denial of `denied`, as in an NSEC record. NSEC cannot deny itself. */
export function claimedTypes(standing: NameStanding, denied: number): Uint8Array {
  const types = claimed[standing];
  const isLeftOut = standing !== 'cut' && denied !== TYPE.NSEC && types.includes(denied);
  const leftOut = isLeftOut ? denied : 0;
  let bitmaps = made[standing].get(leftOut);
  if (bitmaps === undefined) {
    bitmaps = typeBitmaps(types.filter((type) => type !== leftOut));
    made[standing].set(leftOut, bitmaps);
  }
  return bitmaps;
}
