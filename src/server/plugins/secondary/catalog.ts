/** Catalog zones (RFC 9432), whose records list other zones. */
import { TYPE } from '../../wire/iana.ts';
import {
  foldName,
  joinNames,
  nameLength,
  parseName,
  printName,
  suffixAt,
} from '../../wire/name.ts';
import type { WireName } from '../../wire/name.ts';
import type { PackedZone } from '../../zone/packed-zone.ts';
import { RecordCursor } from '../../zone/record-cursor.ts';
import { ZoneData } from '../../zone/zone-data.ts';

export interface CatalogMember {
  /** Absolute, in lower case. */
  readonly zone: string;
  /** The member's label in the catalog. If it changes, the zone is reset. */
  readonly id: string;
  /** The catalog that the zone moves to (`coo`), or null. */
  readonly goesTo: string | null;
}

/** The supported schema version. */
const VERSION = '2';
/**
 * Returns the zones listed in a catalog.
 * @param most maximum number of zones
 * @throws Error with a text for the log if the catalog is invalid, in which case the previous zones stay
 */
export function readCatalog(packed: PackedZone, most: number): readonly CatalogMember[] {
  const catalog = printName(packed.origin);
  const below = (labels: string, zone: WireName): WireName => {
    const name = joinNames(foldName(parseName(`${labels}.`)), zone);
    if (name === null) throw new Error(`the name of catalog zone ${catalog} is too long`);
    return name;
  };
  const versionAt = below('version', packed.origin);
  const zonesAt = below('zones', packed.origin);
  const versions: string[] = [];
  const zones = new Map<string, string>();
  const goesTo = new Map<string, string>();
  let hasServer = false;
  const data = new ZoneData(packed);
  for (const cursor = new RecordCursor(data); cursor.next();) {
    const { type, at, length } = cursor;
    const owner = foldName(cursor.owner.subarray(0, nameLength(cursor.owner)));
    const bytes = data.data.subarray(at, at + length);
    if (type === TYPE.NS && owner.length === packed.origin.length) hasServer = true;
    if (type === TYPE.TXT && versions.length < 2 && printName(owner) === printName(versionAt))
      versions.push(textOf(bytes));
    if (type !== TYPE.PTR) continue;
    const end = suffixAt(owner, zonesAt);
    const labels = end > 0 ? labelsOf(owner, end) : [];
    const target = printName(foldName(new Uint8Array(bytes)));
    // Stores no more labels than a catalog may have members, even if the zone has a million records.
    if (labels.length === 1) {
      const [id] = labels as [string];
      if (zones.has(id))
        throw new Error(`catalog member ${id}.zones.${catalog} must have exactly one PTR record`);
      if (zones.set(id, target).size > most)
        throw new Error(`catalog zone ${catalog} lists more than ${most} zones (max_members)`);
    } else if (labels.length === 2 && labels[0] === 'coo') {
      const id = labels[1]!;
      if (goesTo.has(id)) throw new Error(`catalog member ${id} has more than one coo PTR record`);
      if (goesTo.set(id, target).size > most)
        throw new Error(
          `catalog zone ${catalog} has more than ${most} coo PTR records (max_members)`,
        );
    }
  }
  if (!hasServer) throw new Error(`catalog zone ${catalog} has no NS record`);
  if (versions.length !== 1)
    throw new Error(`catalog zone ${catalog} must have exactly one version TXT record`);
  if (versions[0] !== VERSION)
    throw new Error(`catalog zone ${catalog} has unsupported version "${versions[0]}"`);
  const named = new Map<string, string>();
  return [...zones].map(([id, zone]) => {
    const other = named.get(zone);
    if (other !== undefined)
      throw new Error(`catalog member zone ${zone} is listed by both ${other} and ${id}`);
    named.set(zone, id);
    return { zone, id, goesTo: goesTo.get(id) ?? null };
  });
}

/** Returns the labels before `end` as text. */
function labelsOf(name: WireName, end: number): string[] {
  const labels: string[] = [];
  for (let at = 0; at < end; at += name[at]! + 1)
    labels.push(Buffer.from(name.subarray(at + 1, at + 1 + name[at]!)).toString('latin1'));
  return labels;
}

/** Concatenates the character strings of a TXT record. */
function textOf(data: Uint8Array): string {
  let text = '';
  for (let at = 0; at < data.length; at += data[at]! + 1)
    text += Buffer.from(data.subarray(at + 1, at + 1 + data[at]!)).toString('latin1');
  return text;
}
