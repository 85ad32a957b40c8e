/** The SOA record of zones that are generated rather than read from a file, as in CoreDNS. */
import { TYPE } from './iana.ts';
import { NAME_MAX, type WireName } from './name.ts';
import type { MessageWriter, Section } from './writer.ts';

/** Not terminated, because the zone's name follows. */
const NS_DNS = Uint8Array.from([2, ...Buffer.from('ns'), 3, ...Buffer.from('dns')]);
const HOSTMASTER = Uint8Array.from([10, ...Buffer.from('hostmaster')]);

/**
 * Writes `ns.dns.ZONE hostmaster.ZONE SERIAL 7200 1800 86400 MINIMUM`. A name that would be too long is the zone's.
 * @param zone as spelled in the record's owner
 */
export function writeClusterSoa(
  to: MessageWriter,
  section: Section,
  zone: WireName,
  serial: number,
  minimum: number,
  ttl: number = minimum,
): void {
  to.open(section, zone, TYPE.SOA, ttl);
  for (const labels of [NS_DNS, HOSTMASTER]) {
    // A longer name would make the reply unreadable.
    if (labels.length + zone.length <= NAME_MAX) to.bytes(labels);
    to.name(zone);
  }
  to.u32(serial);
  to.u32(7200);
  to.u32(1800);
  to.u32(86_400);
  to.u32(minimum);
  to.close();
}
