/** Replies to AXFR and IXFR. */
import { FLAG, RCODE } from '../wire/iana.ts';
import { nameLength } from '../wire/name.ts';
import type { Query } from '../wire/query.ts';
import type { Reply } from '../wire/reply.ts';
import { SECTION, type MessageWriter } from '../wire/writer.ts';
import type { Difference } from './difference.ts';
import { writeData } from './record-data.ts';
import type { RecordStream, Transferable } from './transfer-source.ts';

/**
 * A message ends with the first record that makes it as long as this: pointers of compression reach no farther, and making one takes
 * a fraction of a millisecond.
 */
const MESSAGE_BYTES = 16_000;

/**
 * A zone, or what leads to it from an older version, as a chain of messages (RFC 5936 section 2.2, RFC 1995 section 4). Each is
 * made when the one before has been sent.
 */
export function transferReply(
  query: Query,
  plugin: string,
  writer: MessageWriter,
  stream: RecordStream,
  onEnd: (records: number) => void,
): Reply {
  const asked = query.keep();
  let records = 0;
  const message = (): Reply => {
    writer.reply(asked, FLAG.AA);
    let more = true;
    while (more && writer.length < MESSAGE_BYTES) {
      more = stream.write(writer);
      if (more) records++;
    }
    const reply = writer.finish(RCODE.NOERROR, plugin);
    if (more) return reply.with({ rest: message });
    onEnd(records);
    return reply;
  };
  return message();
}

/** All records, with the SOA record at both ends. */
export function wholeZone(zone: Transferable): RecordStream {
  let stream = zone.records();
  let ended = false;
  return {
    write(to) {
      if (stream.write(to)) return true;
      if (ended) return false;
      ended = true;
      stream = zone.records();
      return stream.write(to) && ((stream = nothing), true);
    },
  };
}

/** The SOA record alone: nothing has changed, or a datagram has no room for more. */
export function onlySoa(zone: Transferable): RecordStream {
  const stream = zone.records();
  let given = false;
  return {
    write(to) {
      if (given) return false;
      given = true;
      return stream.write(to);
    },
  };
}

/** The changes since `serial`: between two SOA records of now, each difference as it is. null: they are not known so far back. */
export function changesSince(zone: Transferable, serial: number): RecordStream | null {
  const from = zone.history.findIndex((difference) => difference.from === serial);
  if (from < 0) return null;
  const differences = zone.history.slice(from);
  if (differences.at(-1)!.to !== zone.serial) return null;
  const parts = differences.flatMap(({ removed, added }: Difference) => [removed, added]);
  const first = onlySoa(zone);
  const last = onlySoa(zone);
  let part = 0;
  let at = 0;
  return {
    write(to) {
      if (first.write(to)) return true;
      while (part < parts.length && at === parts[part]!.length) {
        part++;
        at = 0;
      }
      if (part === parts.length) return last.write(to);
      at = writeStored(to, parts[part]!, at);
      return true;
    },
  };
}

/** Writes the record that stands at `at` without compression. @returns where it ends */
function writeStored(to: MessageWriter, bytes: Uint8Array, at: number): number {
  const fields = at + nameLength(bytes, at);
  const type = (bytes[fields]! << 8) | bytes[fields + 1]!;
  const ttl =
    ((bytes[fields + 4]! << 24) |
      (bytes[fields + 5]! << 16) |
      (bytes[fields + 6]! << 8) |
      bytes[fields + 7]!) >>>
    0;
  const length = (bytes[fields + 8]! << 8) | bytes[fields + 9]!;
  const data = fields + 10;
  to.open(SECTION.answer, bytes.subarray(at, fields), type, ttl);
  writeData(to, type, bytes, data, length);
  to.close();
  return data + length;
}

const nothing: RecordStream = { write: () => false };
