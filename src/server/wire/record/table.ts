import type { RecordKind } from './kind.ts';
import { a } from './a.ts';
import { aaaa } from './aaaa.ts';
import { afsdb } from './afsdb.ts';
import { amtrelay } from './amtrelay.ts';
import { apl } from './apl.ts';
import { avc } from './avc.ts';
import { caa } from './caa.ts';
import { cdnskey } from './cdnskey.ts';
import { cds } from './cds.ts';
import { cert } from './cert.ts';
import { cname } from './cname.ts';
import { csync } from './csync.ts';
import { dhcid } from './dhcid.ts';
import { dlv } from './dlv.ts';
import { dname } from './dname.ts';
import { dnskey } from './dnskey.ts';
import { ds } from './ds.ts';
import { eui48 } from './eui48.ts';
import { eui64 } from './eui64.ts';
import { gpos } from './gpos.ts';
import { hinfo } from './hinfo.ts';
import { hip } from './hip.ts';
import { https } from './https.ts';
import { ipseckey } from './ipseckey.ts';
import { isdn } from './isdn.ts';
import { key } from './key.ts';
import { kx } from './kx.ts';
import { l32 } from './l32.ts';
import { l64 } from './l64.ts';
import { loc } from './loc.ts';
import { lp } from './lp.ts';
import { mb } from './mb.ts';
import { md } from './md.ts';
import { mf } from './mf.ts';
import { mg } from './mg.ts';
import { minfo } from './minfo.ts';
import { mr } from './mr.ts';
import { mx } from './mx.ts';
import { naptr } from './naptr.ts';
import { nid } from './nid.ts';
import { ninfo } from './ninfo.ts';
import { ns } from './ns.ts';
import { nsapPtr } from './nsap-ptr.ts';
import { nsec } from './nsec.ts';
import { nsec3 } from './nsec3.ts';
import { nsec3param } from './nsec3param.ts';
import { nullKind } from './null.ts';
import { openpgpkey } from './openpgpkey.ts';
import { ptr } from './ptr.ts';
import { px } from './px.ts';
import { resinfo } from './resinfo.ts';
import { rkey } from './rkey.ts';
import { rp } from './rp.ts';
import { rrsig } from './rrsig.ts';
import { rt } from './rt.ts';
import { sig } from './sig.ts';
import { smimea } from './smimea.ts';
import { soa } from './soa.ts';
import { spf } from './spf.ts';
import { srv } from './srv.ts';
import { sshfp } from './sshfp.ts';
import { svcb } from './svcb.ts';
import { ta } from './ta.ts';
import { talink } from './talink.ts';
import { tkey } from './tkey.ts';
import { tlsa } from './tlsa.ts';
import { tsig } from './tsig.ts';
import { txt } from './txt.ts';
import { uri } from './uri.ts';
import { x25 } from './x25.ts';
import { zonemd } from './zonemd.ts';

/**
 * Every record type whose data is decoded. For all others, the data is plain bytes (RFC 3597). OPT is not included; see
 * `edns.ts`.
 */
export const recordKinds: readonly RecordKind<object>[] = [
  a,
  aaaa,
  afsdb,
  amtrelay,
  apl,
  avc,
  caa,
  cdnskey,
  cds,
  cert,
  cname,
  csync,
  dhcid,
  dlv,
  dname,
  dnskey,
  ds,
  eui48,
  eui64,
  gpos,
  hinfo,
  hip,
  https,
  ipseckey,
  isdn,
  key,
  kx,
  l32,
  l64,
  loc,
  lp,
  mb,
  md,
  mf,
  mg,
  minfo,
  mr,
  mx,
  naptr,
  nid,
  ninfo,
  ns,
  nsapPtr,
  nsec,
  nsec3,
  nsec3param,
  nullKind,
  openpgpkey,
  ptr,
  px,
  resinfo,
  rkey,
  rp,
  rrsig,
  rt,
  sig,
  smimea,
  soa,
  spf,
  srv,
  sshfp,
  svcb,
  ta,
  talink,
  tkey,
  tlsa,
  tsig,
  txt,
  uri,
  x25,
  zonemd,
];

const byType: ReadonlyMap<number, RecordKind<object>> = new Map(
  recordKinds.map((kind) => [kind.type, kind]),
);

/** Returns a type's codec, or undefined if its data is plain bytes. */
export function kindOf(type: number): RecordKind<object> | undefined {
  return byType.get(type);
}
