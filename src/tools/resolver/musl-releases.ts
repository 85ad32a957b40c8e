/** The differences between musl releases. */
import { Releases } from './releases.ts';

export interface MuslTraits {
  /**
   * True if addresses for one family are enough, regardless of the other's result. If there is no address, the result
   * is the first reply's error.
   */
  readonly halfIsEnough: boolean;
  /** True if truncated replies are retried over TCP, false if they are used as they arrived. */
  readonly tcp: boolean;
  /** The size of the receive buffer in bytes. */
  readonly buffer: number;
  /** A reply with more records than this, including the question, is not parsed. */
  readonly mostRecords: number;
  /**
   * True if addresses for both families are read from any reply. Later releases read only the requested family from
   * each, starting with IPv6.
   */
  readonly anyType: boolean;
  /** True if a name without addresses has a separate error code, and names that cannot be sent are skipped. */
  readonly nodata: boolean;
}

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
