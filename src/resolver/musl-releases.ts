/** What musl's releases do differently. */
import { Releases } from './releases.ts';

/** What one release of musl does differently from others. */
export interface MuslTraits {
  /** One family with an address is enough, whatever became of the other; the first reply's error is the lookup's. */
  readonly halfIsEnough: boolean;
  /** Truncated answers are fetched over TCP; without, what came is used. */
  readonly tcp: boolean;
  /** Bytes of the receive buffer. */
  readonly buffer: number;
  /** A reply with more records, the question included, is not read at all. */
  readonly mostRecords: number;
  /** Addresses of either family are taken from any reply; later only those asked for, IPv6 first. */
  readonly anyType: boolean;
  /** A name without an address has an error of its own, and names that cannot be sent are skipped. */
  readonly nodata: boolean;
}

/** The releases of musl, oldest first. */
export const muslReleases: Releases<MuslTraits> = new Releases<MuslTraits>(
  'musl',
  {
    halfIsEnough: true,
    tcp: false,
    buffer: 512,
    mostRecords: 64,
    anyType: true,
    nodata: false,
  },
  [
    ['1.1.24'],
    ['1.2.0'],
    ['1.2.1', { halfIsEnough: false }],
    ['1.2.2'],
    ['1.2.3'],
    ['1.2.4', { tcp: true, buffer: 768, anyType: false, nodata: true }],
    ['1.2.5', { buffer: 4800, mostRecords: Infinity }],
    ['1.2.6'],
  ],
);
