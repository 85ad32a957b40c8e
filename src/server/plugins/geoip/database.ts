/** Address databases in MaxMind's format, read with `mmdb-lib`. */
import { Reader } from 'mmdb-lib';
import decoder from 'mmdb-lib/lib/decoder.js';
import { FILE_MAX, readFileBytes } from '../../base/read-file.ts';

/** The location of an address. Smaller databases, such as those for countries, omit many fields. */
export interface City {
  readonly city?: NamedPlace;
  readonly country?: NamedPlace & {
    readonly iso_code?: string;
    readonly is_in_european_union?: boolean;
  };
  readonly continent?: NamedPlace & { readonly code?: string };
  readonly subdivisions?: readonly { readonly iso_code?: string }[];
  readonly location?: {
    readonly latitude?: number;
    readonly longitude?: number;
    readonly time_zone?: string;
  };
  readonly postal?: { readonly code?: string };
}

interface NamedPlace {
  /** Indexed by language. */
  readonly names?: Readonly<Record<string, string>>;
}

export interface NetworkRecord {
  readonly autonomous_system_number?: number | bigint;
  readonly autonomous_system_organization?: string;
}

/** The kinds of data in a database, which can include both. */
export interface Provides {
  readonly city: boolean;
  readonly asn: boolean;
}

/** Thrown if the file is not a database, or has no data for this plugin. The message is the same as CoreDNS's. */
export class DatabaseError extends Error {
  override readonly name = 'DatabaseError';
}

/**
 * Reads a database into memory that all threads share, because the largest ones would not fit more than once.
 * @throws Error with the system's code
 */
export function readDatabase(path: string): Uint8Array<SharedArrayBuffer> {
  const bytes = readFileBytes(path, FILE_MAX.database, (size) =>
    Buffer.from(new SharedArrayBuffer(size)),
  );
  return new Uint8Array(bytes.buffer as unknown as SharedArrayBuffer, 0, bytes.length);
}

/** Maximum number of decoded records to cache; most clients are in only a few networks. */
const CACHE_MAX = 4096;

/** A database in MaxMind's format (mmdb). */
export class Database {
  readonly provides: Provides;
  readonly #reader: Reader<never>;

  /** @throws DatabaseError */
  constructor(bytes: Uint8Array<SharedArrayBuffer>) {
    this.#reader = open(bytes);
    this.provides = providesOf(this.#reader.metadata.databaseType);
    // Only an actual lookup shows whether the records can be read.
    this.lookup('127.0.0.1');
  }

  /**
   * Returns the database record for an address, or null if there is none.
   * @throws DatabaseError if the file is corrupt
   */
  lookup(address: string): (City & NetworkRecord) | null {
    if (this.#reader.metadata.ipVersion === 4 && address.includes(':')) return null;
    try {
      return this.#reader.get(address);
    } catch (error) {
      throw new DatabaseError(
        `the MaxMind DB file's data section contains bad data: ${String(error)}`,
      );
    }
  }
}

/** Maximum number of entries in a list or map; real databases have a few dozen. */
const ENTRIES_MAX = 4096;
const MAP = 7;
const LIST = 11;

interface Decoding {
  decodeByType(type: number, offset: number, size: number): unknown;
}

/**
 * The library allocates a list of the size given in the file before it reads the items. A single corrupt byte could
 * cost 128 MiB per query, or seconds for a walk through the whole database.
 */
const decoding = (decoder.default as unknown as { readonly prototype: Decoding }).prototype;
const { decodeByType } = decoding;
decoding.decodeByType = function bounded(type, offset, size) {
  if ((type === MAP || type === LIST) && size > ENTRIES_MAX)
    throw new Error(`${size} entries, but at most ${ENTRIES_MAX} are allowed`);
  return decodeByType.call(this, type, offset, size);
};

function open(bytes: Uint8Array<SharedArrayBuffer>): Reader<never> {
  const known = new Map<string | number, unknown>();
  const cache = {
    get: (key: string | number): unknown => known.get(key),
    set(key: string | number, record: unknown): void {
      if (known.size >= CACHE_MAX) known.clear();
      known.set(key, record);
    },
  };
  let reader: Reader<never>;
  try {
    reader = new Reader<never>(Buffer.from(bytes.buffer, 0, bytes.length), { cache });
  } catch {
    throw new DatabaseError('error opening database: invalid MaxMind DB file');
  }
  const { nodeCount, searchTreeSize, databaseType, ipVersion } = reader.metadata;
  const sound =
    nodeCount > 0 &&
    searchTreeSize + 16 <= bytes.length &&
    typeof databaseType === 'string' &&
    (ipVersion === 4 || ipVersion === 6);
  if (!sound) throw new DatabaseError('error opening database: invalid MaxMind DB file');
  return reader;
}

const places =
  /^(?:GeoLite2|GeoIP2)-(?:City|Country|Enterprise)(?:-|$)|^GeoIP2-Precision-City$|^GeoIP-(?:City|Enterprise)-Redacted-US$|^DBIP-(?:City-Lite|Country-Lite|Country|Location)|compat=(?:City|Enterprise)\)$/;
const networks = /^(?:GeoLite2-ASN|GeoIP2-ISP|GeoIP2-Precision-ISP)$|compat=GeoLite2-ASN\)$/;
const others = /^GeoIP2?-(?:Anonymous-Plus|Anonymous-IP|Connection-Type|Domain)$/;

function providesOf(type: string): Provides {
  const provides = { city: places.test(type), asn: networks.test(type) };
  if (provides.city || provides.asn) return provides;
  throw new DatabaseError(
    others.test(type)
      ? 'database does not provide any supported schema (city, asn)'
      : `geoip2: reader does not support the ${JSON.stringify(type)} database type`,
  );
}
