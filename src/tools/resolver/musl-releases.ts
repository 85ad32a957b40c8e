/** The differences between musl releases. */
import { Releases } from './releases.ts';

/** The behaviour of a musl release. */
export interface MuslTraits {
  /**
   * True if addresses for one family are enough, whatever the other's result. Without any address, the first reply's
   * error is the result.
   */
  readonly halfIsEnough: boolean;
  /** True if truncated replies are retried over TCP; otherwise the truncated reply is used. */
  readonly tcp: boolean;
  /** The size of the receive buffer in bytes. */
  readonly buffer: number;
  /** A reply with more records than this, counting the question, is not parsed. */
  readonly mostRecords: number;
  /**
   * True if addresses of both families are read from any reply. Later releases read only the requested family from
   * each, IPv6 first.
   */
  readonly anyType: boolean;
  /** True if a name without addresses has its own error code, and names that cannot be sent are skipped. */
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
