/** Which types the denials claim for a name: all it could have, since what it has is not known here. */
import { TYPE } from '../../wire/iana.ts';

/** How a name stands in the zone. */
export type Standing = 'apex' | 'cut' | 'name';

/** CNAME, DNAME, NS and SOA are claimed nowhere but where they are: they would say that the name is something else. */
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

/** The types that a denial of `denied` claims; NSEC itself cannot be denied by an NSEC record. */
export function claimedTypes(standing: Standing, denied: number): readonly number[] {
  if (standing === 'cut') return atCut;
  const types = standing === 'apex' ? atApex : possible;
  return denied === TYPE.NSEC ? types : types.filter((type) => type !== denied);
}
