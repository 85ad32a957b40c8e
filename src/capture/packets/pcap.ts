/** Classic pcap files (draft-ietf-opsawg-pcap): both byte orders, microseconds and nanoseconds. */
import { ByteQueue } from './byte-queue.ts';
import { emptyFrame, type CaptureReader, type Frame } from './frame.ts';
import type { Remarks } from './remarks.ts';

const MAGIC = { MICRO: 0xa1b2c3d4, NANO: 0xa1b23c4d } as const;
const HEADER = 24;
const RECORD = 16;
/** The longest packet that tcpdump writes (MAXIMUM_SNAPLEN); what claims more is no record. */
export const PACKET_MAX = 262_144;

/** Whether a file begins so. */
export function isPcap(first: Uint8Array): boolean {
  if (first.length < 4) return false;
  const view = new DataView(first.buffer, first.byteOffset, 4);
  return [view.getUint32(0, true), view.getUint32(0, false)].some(
    (word) => word === MAGIC.MICRO || word === MAGIC.NANO,
  );
}

/** Reads pcap. */
export class PcapReader implements CaptureReader {
  readonly #queue = new ByteQueue();
  readonly #frame = emptyFrame();
  readonly #take: (frame: Frame) => void;
  readonly #remarks: Remarks;
  #little = true;
  /** What the second half of a time counts, in milliseconds. */
  #unit = 0;
  #broken = false;

  /** @param take gets each packet */
  constructor(take: (frame: Frame) => void, remarks: Remarks) {
    this.#take = take;
    this.#remarks = remarks;
  }

  push(bytes: Uint8Array): void {
    if (this.#broken) return;
    const queue = this.#queue;
    queue.push(bytes);
    if (this.#unit === 0 && queue.left >= HEADER) this.#begin();
    if (this.#unit > 0) this.#records();
  }

  end(): void {
    const { left, offset } = this.#queue;
    if (this.#broken) return;
    if (this.#unit === 0) this.#remarks.add('the file ends within its header');
    else if (left > 0)
      this.#remarks.add('the file ends within a packet, which is left out', `byte ${offset}`);
  }

  #begin(): void {
    const queue = this.#queue;
    const { view, at } = queue;
    const word = view.getUint32(at, true);
    this.#little = word === MAGIC.MICRO || word === MAGIC.NANO;
    this.#unit = view.getUint32(at, this.#little) === MAGIC.NANO ? 1e-6 : 1e-3;
    // The upper bits say whether frames end with a checksum (FCS), which nothing here looks at.
    this.#frame.link = view.getUint32(at + 20, this.#little) & 0xffff;
    queue.at += HEADER;
  }

  #records(): void {
    const queue = this.#queue;
    const frame = this.#frame;
    const little = this.#little;
    const { bytes, view } = queue;
    while (queue.left >= RECORD) {
      const { at } = queue;
      const length = view.getUint32(at + 8, little);
      if (length > PACKET_MAX) {
        this.#broken = true;
        this.#remarks.add(
          'what should be a packet is none: the file is damaged, and the rest of it was not read',
          `byte ${queue.offset}`,
        );
        return;
      }
      if (queue.left < RECORD + length) return;
      frame.number++;
      frame.timeMs =
        view.getUint32(at, little) * 1000 + view.getUint32(at + 4, little) * this.#unit;
      frame.wireLength = view.getUint32(at + 12, little);
      frame.bytes = bytes;
      frame.start = at + RECORD;
      frame.end = at + RECORD + length;
      queue.at = frame.end;
      this.#take(frame);
    }
  }
}
