/** What musl's releases do differently. */
import { Releases } from './releases.ts';

/** What one release of musl does differently from others. */
export interface MuslTraits {
  /**
   * Whether one family with an address is enough, whatever the other came to; without an address
   * the first reply's error is the result.
   */
  readonly halfIsEnough: boolean;
  /**
   * Whether truncated replies are fetched again over TCP; otherwise the truncated reply is used.
   */
  readonly tcp: boolean;
  /** Bytes of the receive buffer. */
  readonly buffer: number;
  /** A reply with more records than this, the question included, is not parsed at all. */
  readonly mostRecords: number;
  /**
   * Whether addresses of both families are taken from any reply; later releases take only the asked
   * family from each, IPv6 first.
   */
  readonly anyType: boolean;
  /**
   * Whether a name without an address has an error code of its own, and names that cannot be sent
   * are skipped.
   */
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
