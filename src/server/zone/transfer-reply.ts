/** Replies to AXFR and IXFR. */
import { readUint32 } from '../base/big-endian.ts';
import { FLAG, MESSAGE_MAX, RCODE } from '../wire/iana.ts';
import { nameLength } from '../wire/name.ts';
import type { Query } from '../transport/query.ts';
import type { Reply } from '../wire/reply.ts';
import { SECTION, type MessageWriter } from '../wire/writer.ts';
import type { Difference } from './difference.ts';
import { writeData } from './record-data.ts';
import type { RecordStream, Transferable } from './transfer-source.ts';

/**
 * Size in bytes at which a message ends. Compression pointers reach no farther, and building a message of this size
 * takes a fraction of a millisecond.
 */
const MESSAGE_BYTES = 16_000;

/** Number of bytes that are left free in each message for a signature and OPT. */
const ADDED_BYTES = 1024;

/**
 * Returns a zone, or its changes since an older version, as a chain of messages (RFC 5936 section 2.2, RFC 1995 section
 * 4). Each one is built when the previous message has been sent. A record that does not fit next to others gets its own
 * message.
 * @throws MessageFull if a record does not fit into any message
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
  let step = stream.next();
  const write = (): Reply => {
    writer.reply(asked, FLAG.AA);
    const begin = writer.length;
    while (step === 'record' && writer.length < MESSAGE_BYTES) {
      const fits = writer.length + stream.size <= MESSAGE_MAX - ADDED_BYTES;
      if (!fits && writer.length > begin) break;
      stream.write(writer);
      records++;
      step = stream.next();
    }
    const reply = writer.finish(RCODE.NOERROR, plugin);
    if (step !== 'end') return reply.with({ rest });
    onEnd(records);
    return reply;
  };
  const rest = (): Reply | null => {
    if (step === 'pause') step = stream.next();
    return step === 'pause' ? null : write();
  };
  return write();
}

/** Returns all records, with the SOA record at both ends. */
export function wholeZone(zone: Transferable): RecordStream {
  return inTurn([zone.records(), onlySoa(zone)]);
}

/** Returns only the SOA record, because nothing has changed or a datagram has no room for more. */
export function onlySoa(zone: Transferable): RecordStream {
  const stream = zone.records();
  let given = false;
  return {
    next() {
      if (given) return 'end';
      given = true;
      return stream.next();
    },
    get size() {
      return stream.size;
    },
    write: (to) => stream.write(to),
  };
}

/**
 * Returns the changes since `serial`, as stored differences between two copies of the current SOA record. Returns null
 * if the history does not go back that far.
 */
export function changesSince(zone: Transferable, serial: number): RecordStream | null {
  const from = zone.history.findIndex((difference) => difference.from === serial);
  if (from < 0) return null;
  const differences = zone.history.slice(from);
  if (differences.at(-1)!.to !== zone.serial) return null;
  const parts = differences.flatMap(({ removed, added }: Difference) => [
    storedRecords(removed),
    storedRecords(added),
  ]);
  return inTurn([onlySoa(zone), ...parts, onlySoa(zone)]);
}

function inTurn(streams: readonly RecordStream[]): RecordStream {
  let at = 0;
  return {
    next() {
      for (; at < streams.length; at++) {
        const step = streams[at]!.next();
        if (step !== 'end') return step;
      }
      return 'end';
    },
    get size() {
      return streams[at]!.size;
    },
    write: (to) => streams[at]!.write(to),
  };
}

/** Streams consecutive records without compression. */
function storedRecords(bytes: Uint8Array): RecordStream {
  let at = 0;
  let end = 0;
  return {
    next() {
      at = end;
      if (at === bytes.length) return 'end';
      end = recordEnd(bytes, at);
      return 'record';
    },
    get size() {
      return end - at;
    },
    write: (to) => writeStored(to, bytes, at),
  };
}

function recordEnd(bytes: Uint8Array, at: number): number {
  const fields = at + nameLength(bytes, at);
  return fields + 10 + ((bytes[fields + 8]! << 8) | bytes[fields + 9]!);
}

/** Writes the uncompressed record at `at`. */
function writeStored(to: MessageWriter, bytes: Uint8Array, at: number): void {
  const fields = at + nameLength(bytes, at);
  const type = (bytes[fields]! << 8) | bytes[fields + 1]!;
  const ttl = readUint32(bytes, fields + 4);
  const length = (bytes[fields + 8]! << 8) | bytes[fields + 9]!;
  const data = fields + 10;
  to.open(SECTION.answer, bytes.subarray(at, fields), type, ttl);
  writeData(to, type, bytes, data, length);
  to.close();
}
