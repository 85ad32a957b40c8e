/** Reads a zone file. */
import { isUtf8 } from 'node:buffer';
import { statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { builtins } from '../base/builtins.ts';
import type { Clock } from '../base/clock.ts';
import { Problem, type Place } from '../base/problem.ts';
import { whyFailed } from '../base/why-failed.ts';
import { readFileBytes } from '../base/read-file.ts';
import { inSlices, type Slices } from '../base/slices.ts';
import { CLASS, className, TYPE, typeName } from '../wire/iana.ts';
import { writeData } from '../wire/message.ts';
import { foldName, printName, type WireName } from '../wire/name.ts';
import { MessageFull, MessageWriter } from '../wire/writer.ts';
import { parseOwned } from '../wire/zone-text.ts';
import { fileStamp, type FileStamp } from './file-stamp.ts';
import { ITERATIONS_MAX, readHashParts } from './nsec3-hash.ts';
import type { PackedZone } from './packed-zone.ts';
import type { ReadingProgress } from './zone-progress.ts';
import { TargetCheck } from './target-check.ts';
import { ZoneData } from './zone-data.ts';
import { NAME_RECORDS_MAX, ZoneBuilder, type RecordRefusal } from './zone-builder.ts';

/** Maximum size in bytes of a zone file and of each file that it includes. Larger ones do not fit into a string. */
const FILE_MAX = 500 * 1024 * 1024;
/** Maximum number of errors reported per file; if there are more, they probably have the same cause. */
const PROBLEMS_MAX = 20;
/** Size in bytes of a record's type, class, TTL and length. */
const RECORD_AROUND = 10;
/** Bit mask for the number of records after which the work may pause. */
const RECORD_SLICE = 0x3f;

/**
 * Thrown if a zone file with its includes and `$GENERATE` lines is larger than may be read here. In this case, nothing
 * was stored.
 */
export class ZoneTooLarge extends Error {
  /** See `ZoneFileResult`. */
  readonly included: readonly FileStamp[];

  constructor(included: readonly FileStamp[]) {
    super();
    this.included = included;
  }
}

export interface ZoneFileTerms {
  /** Maximum size of all files in bytes, and maximum number of records; anything beyond them is `ZoneTooLarge`. */
  readonly bytes?: number;
  readonly records?: number;
  /** Maximum size of all records in bytes; it is an error to have more. */
  readonly share?: number;
  readonly progress?: ReadingProgress;
}

export interface ZoneFileResult {
  /** Null if there is no zone, in which case `problems` explains why. */
  readonly packed: PackedZone | null;
  readonly problems: readonly Problem[];
  /** Parts that were ignored, and how others were interpreted. */
  readonly warnings: readonly Problem[];
  /** Equal if the file's bytes are equal, ignoring its includes; empty if the file could not be read. */
  readonly digest: string;
  /** The files included so far, and their state. */
  readonly included: readonly FileStamp[];
}

/**
 * Reads a zone from a file, in slices, so that the thread is never blocked for long. A zone with an error is not
 * served, and all its errors are reported together.
 * @param unless serial of a zone that need not be read further, so the result has no zone or problems; null reads any
 * @param beforePacking runs when everything has been read and the text is no longer needed
 * @throws Error with the system's code if the file cannot be read; `ZoneTooLarge`
 */
export async function readZoneFile(
  path: string,
  origin: WireName,
  clock: Clock,
  unless: number | null = null,
  terms: ZoneFileTerms = {},
  beforePacking: () => void = () => undefined,
): Promise<ZoneFileResult> {
  return inSlices(readingZoneFile(path, origin, unless, terms, beforePacking), clock);
}

function* readingZoneFile(
  path: string,
  origin: WireName,
  unless: number | null,
  {
    bytes: most = Infinity,
    records: mostRecords = Infinity,
    share = Infinity,
    progress,
  }: ZoneFileTerms,
  beforePacking: () => void,
): Slices<ZoneFileResult> {
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  const builder = new ZoneBuilder(foldName(origin));
  const targets = new TargetCheck(foldName(origin));
  let left = most;
  let digest = '';
  const included: FileStamp[] = [];
  const read = (file: string): string => {
    if (statSync(file).size > left) throw new ZoneTooLarge(included);
    const bytes = readFileBytes(file, FILE_MAX);
    left -= bytes.length;
    if (file === path) digest = builtins.crypto().hash('sha256', bytes);
    const zero = bytes.indexOf(0);
    if (zero >= 0 && warnings.length < PROBLEMS_MAX) warnings.push(holdsZeros(bytes, zero, file));
    return textOf(bytes, file);
  };
  const records = parseOwned(read(path), {
    file: path,
    origin: printName(origin),
    include: (name, from) => {
      const file = resolve(dirname(from.file), name);
      included.push([file, fileStamp(file)]);
      return { file, text: readIncluded(read, file, from) };
    },
    problem: (problem) => {
      problems.push(problem);
      if (problems.length >= PROBLEMS_MAX) throw enough;
    },
  });
  let told = false;
  const strays: Stray[] = [];
  let count = 0;
  let size = 0;
  for (const { owner, type, class: rclass, ttl, data, place } of untilEnough(records)) {
    if (count === mostRecords) throw new ZoneTooLarge(included);
    if ((++count & RECORD_SLICE) === 0) {
      progress?.note(count, place.line);
      yield;
    }
    if (problems.length >= PROBLEMS_MAX) break;
    if (rclass !== CLASS.IN) {
      problems.push(mistake(place, `class ${className(rclass)} in a zone with class IN`));
      continue;
    }
    const wire = wireData(type, data);
    if (wire === null) {
      problems.push(mistake(place, `the data of ${typeName(type)} has more than 65535 bytes`));
      continue;
    }
    size += owner.length + RECORD_AROUND + wire.length;
    if (size > share) {
      problems.push(tooLarge(place, share));
      break;
    }
    const refusal = builder.add(owner, type, ttl, wire);
    if (type === TYPE.SOA && (refusal === 'outside' || refusal === 'soa-below-apex')) {
      if (strays.length >= PROBLEMS_MAX) strays.shift();
      strays.push({ owner, ttl, wire, place });
      continue;
    }
    if (refusal === null) targets.note(owner, type, wire, place);
    else {
      const { text, hint, harmless } = refusals[refusal];
      const told = mistake(
        place,
        `${printName(owner)} ${typeName(type)}: ${text(printName(origin))}`,
        hint,
      );
      if (!harmless) problems.push(told);
      else if (warnings.length < PROBLEMS_MAX) warnings.push(told);
    }
    if (!told && builder.hasSoa) {
      told = true;
      if (builder.serial === unless)
        return { packed: null, problems: [], warnings: [], digest, included };
    }
  }
  if (problems.length > 0) return { packed: null, problems, warnings, digest, included };
  // CoreDNS uses the last SOA record for the zone, even if its name is a different one. A zone without its own SOA and
  // without other records would be empty.
  const taken = !builder.hasSoa && builder.records > 0 ? strays.at(-1) : undefined;
  for (const stray of strays) {
    const { owner, ttl, wire, place } = stray;
    const isTaken = stray === taken;
    if (isTaken) builder.add(foldName(origin), TYPE.SOA, ttl, wire);
    const what = isTaken ? 'is used as the SOA record of the zone, which has none' : 'is left out';
    const text = `${printName(owner)} SOA: an SOA record belongs only at ${printName(origin)}; this one ${what}`;
    warnings.push(mistake(place, text));
  }
  if (!builder.hasSoa) {
    problems.push(
      new Problem({
        code: 'bad-zone',
        text: `file ${JSON.stringify(path)} has no SOA record for origin ${printName(origin)}`,
        hint: `Every zone begins with one: @ IN SOA ns.${printName(origin)} hostmaster.${printName(origin)} 1 7200 3600 1209600 300`,
        remedy: `Check the file: named-checkzone ${printName(origin)} ${path}`,
      }),
    );
    return { packed: null, problems, warnings, digest, included };
  }
  if (!builder.hasNs)
    warnings.push(
      mistake({ file: path, line: 1, column: 1 }, `${printName(origin)} has no NS record`),
    );
  progress?.hasRead();
  beforePacking();
  const packed = yield* builder.packing();
  const iterations = readHashParts(new ZoneData(packed))?.iterations ?? 0;
  if (iterations > ITERATIONS_MAX)
    warnings.push(
      mistake(
        { file: path, line: 1, column: 1 },
        `names are hashed ${iterations} times for NSEC3, but at most ${ITERATIONS_MAX} iterations are computed for a query, so denials have no proof`,
        'RFC 9276: sign the zone with 0 additional iterations.',
      ),
    );
  for (const { place, text, hint } of targets.oddities(packed)) {
    if (warnings.length >= PROBLEMS_MAX) break;
    warnings.push(mistake(place, text, hint));
  }
  return { packed, problems, warnings, digest, included };
}

/**
 * Decodes a file's text as UTF-8 or, if it is invalid, byte by byte like other servers do.
 * @throws Problem
 */
function textOf(bytes: Buffer, file: string): string {
  const mark = bytes.length < 2 ? 0 : bytes.readUInt16BE(0);
  if (mark === 0xfffe || mark === 0xfeff)
    throw mistake(
      { file, line: 1, column: 1 },
      'the file is UTF-16',
      `Save it as UTF-8: iconv -f UTF-16 -t UTF-8 ${file}`,
    );
  if (!isUtf8(bytes))
    return bytes.toString('latin1').replaceAll(/[\x80-\xff]/g, (char) => `\\${char.charCodeAt(0)}`);
  const text = bytes.toString('utf8');
  // Windows editors add a byte order mark.
  return text.startsWith('\uFEFF') ? text.slice(1) : text;
}

/**
 * Detects a file whose end was lost in a crash and now consists of zeros. Names that contain a zero are never queried.
 */
function holdsZeros(bytes: Buffer, at: number, file: string): Problem {
  let line = 1;
  let lineAt = 0;
  for (let end; (end = bytes.indexOf(LINE_FEED, lineAt)) >= 0 && end < at; lineAt = end + 1) line++;
  return mistake(
    { file, line, column: at - lineAt + 1 },
    'there is a zero byte here, which is read as part of a word',
    'Check that the file is complete. No client queries such a name.',
  );
}

const LINE_FEED = 0x0a;

/** An SOA record whose name is not that of the zone. */
interface Stray {
  readonly owner: WireName;
  readonly ttl: number;
  readonly wire: Uint8Array;
  readonly place: Place;
}

const writer = new MessageWriter(false);

/** Thrown once enough errors in this file have been reported. */
const enough = new Error('too many mistakes to list');

function* untilEnough<T>(records: Iterable<T>): Generator<T> {
  try {
    yield* records;
  } catch (error) {
    if (error !== enough) throw error;
  }
}

/** Returns record data in wire form without compression, or null if it does not fit into any message. */
function wireData(type: number, data: object): Uint8Array | null {
  writer.begin(0, 0);
  try {
    writeData(writer, type, data);
  } catch (error) {
    if (error instanceof MessageFull) return null;
    throw error;
  }
  return writer.take().subarray(12);
}

function mistake(place: Place, text: string, hint?: string): Problem {
  const where = `${place.file}:${place.line}:${place.column}`;
  return new Problem({ code: 'bad-zone', text: `${where}: ${text}`, place, hint });
}

function tooLarge(place: Place, share: number): Problem {
  return mistake(
    place,
    `the zone’s records up to here exceed ${share} bytes, the most memory that one zone may use in this server`,
    "The limit is a quarter of the container's memory limit above 95 MiB (resources.limits.memory), or 1 GiB. Check whether the range of a $GENERATE is too wide.",
  );
}

function readIncluded(read: (file: string) => string, file: string, from: Place): string {
  try {
    return read(file);
  } catch (error) {
    if (error instanceof ZoneTooLarge || error instanceof Problem) throw error;
    throw mistake(from, `$INCLUDE: cannot read ${file}: ${whyFailed(error)}`);
  }
}

const refusals: Readonly<
  Record<
    RecordRefusal,
    {
      readonly text: (origin: string) => string;
      readonly hint?: string;
      readonly harmless: boolean;
    }
  >
> = {
  outside: {
    text: (origin) => `is not in the zone ${origin} and is ignored`,
    hint: 'A name without a trailing dot is relative to the origin; with one, it is used unchanged.',
    harmless: true,
  },
  'second-soa': { text: () => 'there is already another SOA record', harmless: false },
  'soa-below-apex': {
    text: (origin) => `an SOA record belongs only at ${origin}`,
    harmless: false,
  },
  'alias-and-other': {
    text: () => 'a name with a CNAME record has no other records; this one is ignored',
    hint: 'RFC 2181 section 10.1: the alias applies to all types.',
    harmless: true,
  },
  'second-alias': {
    text: () => 'there is already another CNAME record; this one is ignored',
    harmless: true,
  },
  twice: { text: () => 'is there twice', harmless: true },
  'too-many': {
    text: () => `a name may have ${NAME_RECORDS_MAX} records`,
    hint: 'No reply has room for more, so use separate names.',
    harmless: false,
  },
};
