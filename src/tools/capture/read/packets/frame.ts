/** A packet as a capture stores it, before it is parsed. */

/** A packet in a capture. Readers reuse the object and its bytes, so copy anything to be retained. */
export interface Frame {
  /** As in tcpdump and Wireshark, starting at 1. */
  number: number;
  /** Milliseconds since 1970, with fractions. */
  timeMs: number;
  /** The link type: one of `LINK`. */
  link: number;
  /** The packet is `bytes[start, end)`. */
  bytes: Uint8Array;
  start: number;
  end: number;
  /** Bytes on the wire, which are more than in `bytes` if the packet was truncated in the capture. */
  wireLength: number;
  /** The capture interface; 0 if there is only one. */
  port: number;
  comment?: string;
}

/** Supported link types (pcap's LINKTYPE_ values). */
export const LINK: {
  readonly NULL: 0;
  readonly ETHERNET: 1;
  readonly RAW_BSD: 12;
  readonly RAW_OPENBSD: 14;
  readonly RAW: 101;
  readonly LOOP: 108;
  readonly SLL: 113;
  readonly IPV4: 228;
  readonly IPV6: 229;
  readonly SLL2: 276;
} = {
  NULL: 0,
  ETHERNET: 1,
  RAW_BSD: 12,
  RAW_OPENBSD: 14,
  RAW: 101,
  LOOP: 108,
  SLL: 113,
  IPV4: 228,
  IPV6: 229,
  SLL2: 276,
} as const;

export function emptyFrame(): Frame {
  const bytes = new Uint8Array(0);
  return { number: 0, timeMs: 0, link: 0, bytes, start: 0, end: 0, wireLength: 0, port: 0 };
}

export interface RecordReader extends CaptureReader {
  /** The number of complete records so far, including those that are not packets. */
  readonly records: number;
}

/** Parses a capture as it arrives. */
export interface CaptureReader {
  /** True if the rest of the input cannot be read. */
  readonly broken: boolean;
  /** Adds any number of further bytes. The caller may reuse them. */
  push(bytes: Uint8Array): void;
  /** Ends the input and reports incomplete data. */
  end(): void;
}
