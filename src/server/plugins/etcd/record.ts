/** Records of an answer under construction. */
import { TYPE } from '../../wire/iana.ts';
import { writeData, type AnsweredRecord } from '../../wire/message.ts';
import { foldName, parseName, type WireName } from '../../wire/name.ts';
import type { MessageWriter, Section } from '../../wire/writer.ts';

export interface AnswerRecord {
  /** Null stands for the question's name in the client's spelling. */
  readonly owner: WireName | null;
  readonly type: number;
  /** TTL in seconds. */
  readonly ttl: number;
  readonly target: WireName | null;
  /** Maximum size in bytes without its owner. */
  readonly size: number;
  write(writer: MessageWriter): void;
}

export function addressRecord(
  owner: WireName | null,
  bytes: Uint8Array,
  ttl: number,
): AnswerRecord {
  const type = bytes.length === 4 ? TYPE.A : TYPE.AAAA;
  return record(owner, type, ttl, bytes.length, (writer) => writer.bytes(bytes));
}

export function nameRecord(
  owner: WireName | null,
  type: number,
  target: WireName,
  ttl: number,
): AnswerRecord {
  const made = record(owner, type, ttl, target.length, (writer) => writer.name(target));
  return type === TYPE.CNAME ? { ...made, target } : made;
}

export function srvRecord(
  { priority, weight, port }: Readonly<Record<'priority' | 'weight' | 'port', number>>,
  target: WireName,
  ttl: number,
): AnswerRecord {
  return record(null, TYPE.SRV, ttl, 6 + target.length, (writer) =>
    writer.srvData(priority, weight, port, target),
  );
}

export function mxRecord(preference: number, target: WireName, ttl: number): AnswerRecord {
  return record(null, TYPE.MX, ttl, 2 + target.length, (writer) => {
    writer.u16(preference);
    writer.name(target);
  });
}

/** Splits the text into 255-byte strings. */
export function textRecord(owner: WireName | null, text: Uint8Array, ttl: number): AnswerRecord {
  const size = text.length + Math.ceil(text.length / 255);
  return record(owner, TYPE.TXT, ttl, size, (writer) => {
    for (let at = 0; at < text.length; at += 255) {
      const length = Math.min(255, text.length - at);
      writer.u8(length);
      writer.bytes(text, at, length);
    }
  });
}

/** Builds a record from another reply. */
export function foreignRecord({ record: from, size }: AnsweredRecord): AnswerRecord {
  const owner = parseName(from.name);
  const { type, ttl, data } = from;
  return record(owner, type, ttl, 2 * size + 512, (writer) => writeData(writer, type, data));
}

function record(
  owner: WireName | null,
  type: number,
  ttl: number,
  size: number,
  write: AnswerRecord['write'],
): AnswerRecord {
  return { owner, type, ttl, target: null, size, write };
}

/** Maximum size of a DNS message in bytes (RFC 1035, section 4.2.2). */
const MESSAGE_MAX = 65_535;
const FIXED = 12;

/**
 * Writes as many records as fit. Records with the same name and type get the lowest TTL among them (RFC 2181 section
 * 5.2).
 * @returns true if all were written
 */
export function writeRecords(
  writer: MessageWriter,
  section: Section,
  records: readonly AnswerRecord[],
): boolean {
  const least = leastTtls(records);
  for (const one of records) {
    const size = FIXED + (one.owner?.length ?? 0) + one.size;
    if (writer.length + size > MESSAGE_MAX) return false;
    writer.open(section, one.owner, one.type, least?.get(setOf(one)) ?? one.ttl);
    one.write(writer);
    writer.close();
  }
  return true;
}

/** Returns the TTLs by name and type, or null if all of them are equal. */
function leastTtls(records: readonly AnswerRecord[]): ReadonlyMap<string, number> | null {
  if (records.every(({ ttl }) => ttl === records[0]!.ttl)) return null;
  const least = new Map<string, number>();
  for (const one of records) {
    const set = setOf(one);
    least.set(set, Math.min(one.ttl, least.get(set) ?? Infinity));
  }
  return least;
}

function setOf({ owner, type }: AnswerRecord): string {
  if (owner === null) return String(type);
  return `${type} ${Buffer.from(foldName(owner)).toString('latin1')}`;
}
