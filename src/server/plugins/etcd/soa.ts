/** The SOA record for a zone stored in etcd. */
import { TYPE } from '../../wire/iana.ts';
import { parseName } from '../../wire/name.ts';
import type { MessageWriter, Section } from '../../wire/writer.ts';

/** The same as in CoreDNS. */
const SOA = { ttl: 30, refresh: 7200, retry: 1800, expire: 86_400 } as const;
/** Not terminated, because the zone's name follows. */
const NS_DNS = parseName('ns.dns.').subarray(0, -1);
const HOSTMASTER = parseName('hostmaster.').subarray(0, -1);

/** @param zone in wire form, as spelled in the record's owner */
export function writeSoa(
  to: MessageWriter,
  section: Section,
  zone: Uint8Array,
  serial: number,
): void {
  to.open(section, zone, TYPE.SOA, SOA.ttl);
  to.bytes(NS_DNS);
  to.name(zone);
  to.bytes(HOSTMASTER);
  to.name(zone);
  for (const word of [serial, SOA.refresh, SOA.retry, SOA.expire, SOA.ttl]) to.u32(word);
  to.close();
}
