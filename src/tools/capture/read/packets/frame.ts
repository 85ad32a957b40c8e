/** Packets as a capture holds them, before anything in them is read. */

/**
 * One packet of a capture. A reader reuses one object, and the bytes are overwritten by what is
 * read next: who needs them for longer copies them.
 */
export interface Frame {
  /** As tcpdump and Wireshark count: from 1. */
  number: number;
  /** Milliseconds since 1970, with fractions. */
  timeMs: number;
  /** What the bytes begin with: one of `LINK`. */
  link: number;
  /** The packet is `bytes[start, end)`. */
  bytes: Uint8Array;
  start: number;
  end: number;
  /** Bytes that it had on the wire; more than are here if the capture cut it. */
  wireLength: number;
  /** Which interface of the capture; 0 where there is one. */
  port: number;
  /** What a file says of it besides (pcapng). */
  comment?: string;
}

/** Link types (LINKTYPE_ of pcap) that are understood. */
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

/** A frame to be filled. */
export function emptyFrame(): Frame {
  const bytes = new Uint8Array(0);
  return { number: 0, timeMs: 0, link: 0, bytes, start: 0, end: 0, wireLength: 0, port: 0 };
}

/** Takes a capture apart while it comes in. */
export interface CaptureReader {
  /** Whether what comes cannot be read any more, however much of it there is. */
  readonly broken: boolean;
  /** The next bytes, of any number. They may be reused afterwards. */
  push(bytes: Uint8Array): void;
  /** No more will come: what is left over is remarked upon. */
  end(): void;
}
