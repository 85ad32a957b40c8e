/** The file of a signed zone: how it is written, and how its first records show whether it is current. */
import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { CLASS, TYPE } from '../../wire/iana.ts';
import { dataOf, readData } from '../../wire/message.ts';
import { printName, type WireName } from '../../wire/name.ts';
import { printRecord } from '../../wire/print.ts';
import { Reader } from '../../wire/reader.ts';
import { rrsig, soa, type Signature } from '../../wire/record/table.ts';
import { parseZone } from '../../wire/zone-text.ts';
import type { SignedRrset } from './signed-records.ts';

/** The SOA record and its signatures come first, but a different program may write other records before them. */
const HEAD_BYTES = 65_536;
const HEAD_RECORDS = 100;

export interface SignedHead {
  /** Null if there is no SOA record. */
  readonly serial: number | null;
  /** Signatures over the SOA record. */
  readonly signatures: readonly Signature[];
  /** The file's modification time in milliseconds since 1970. */
  readonly writtenAt: number;
}

/**
 * Reads the beginning of the file.
 * @throws Error with the system's code
 */
export function readSignedHead(path: string, origin: string): SignedHead {
  const { mtimeMs } = statSync(path);
  let serial: number | null = null;
  const signatures: Signature[] = [];
  let count = 0;
  const problem = (): void => undefined;
  for (const record of parseZone(readHead(path), { file: path, origin, problem })) {
    serial ??= dataOf(record, soa)?.serial ?? null;
    const signature = dataOf(record, rrsig);
    if (signature?.typeCovered === TYPE.SOA) signatures.push(signature);
    if (++count === HEAD_RECORDS) break;
  }
  return { serial, signatures, writtenAt: mtimeMs };
}

function readHead(path: string): string {
  const handle = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(HEAD_BYTES);
    const length = readSync(handle, bytes, 0, bytes.length, 0);
    const text = bytes.toString('utf8', 0, length);
    return length < bytes.length ? text : text.slice(0, text.lastIndexOf('\n') + 1);
  } finally {
    closeSync(handle);
  }
}

/**
 * Writes a zone to a file next to `path`, one record per line, and renames it. Readers of `path` get either the
 * complete old file or the complete new one.
 * @returns the number of records
 */
export async function writeZoneFile(
  path: string,
  zone: AsyncIterable<readonly SignedRrset[]>,
): Promise<number> {
  const beside = `${path}.new`;
  let records = 0;
  try {
    const file = await open(beside, 'w', 0o644);
    try {
      for await (const sets of zone) {
        let text = '';
        for (const { owner, type, ttl, data, signatures } of sets) {
          for (const one of data) text += line(owner, type, ttl, one);
          for (const one of signatures) text += line(owner, TYPE.RRSIG, ttl, one);
          records += data.length + signatures.length;
        }
        // `writeFile` repeats partial writes. On a full disk, a single write may end early without an error.
        await file.writeFile(text);
      }
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(beside, path);
    return records;
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
}

function line(owner: WireName, type: number, ttl: number, bytes: Uint8Array): string {
  const data = readData(new Reader(bytes), type, bytes.length);
  return `${printRecord({ name: printName(owner), type, class: CLASS.IN, ttl, data })}\n`;
}
