/** Classic pcap files (draft-ietf-opsawg-pcap): both byte orders, microseconds and nanoseconds. */
import { ByteQueue } from './byte-queue.ts';
import { emptyFrame, type CaptureReader, type Frame } from './frame.ts';
import type { Remarks } from './remarks.ts';

const MAGIC = { MICRO: 0xa1b2c3d4, NANO: 0xa1b23c4d } as const;
const HEADER = 24;
const RECORD = 16;
/** The longest packet that tcpdump writes (MAXIMUM_SNAPLEN); what claims more is no record. */
export const PACKET_MAX = 262_144;
/** So far behind a damaged place the next packet is looked for. */
export const SEARCH_MAX: number = 16 * 1024 * 1024;
/** Packets behind a damaged place are of times near the last one before it, seconds. */
const NEAR_SECONDS = 86_400;

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
  /** Where the damaged place begins behind which a packet is looked for; -1: there is none. */
  #damagedAt = -1;

  /** @param take gets each packet */
  constructor(take: (frame: Frame) => void, remarks: Remarks) {
    this.#take = take;
    this.#remarks = remarks;
  }

  get broken(): boolean {
    return this.#broken;
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
    else if (this.#damagedAt >= 0) this.#giveUp();
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
    if (this.#damagedAt >= 0 && !this.#findNext()) return;
    while (queue.left >= RECORD) {
      const { at } = queue;
      const length = view.getUint32(at + 8, little);
      if (length > PACKET_MAX) {
        this.#damagedAt = queue.offset;
        if (!this.#findNext()) return;
        continue;
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

  /** Looks for two records one behind the other, as Wireshark does. @returns whether they were found: else more has to come, or it is given up */
  #findNext(): boolean {
    const queue = this.#queue;
    const { view } = queue;
    while (queue.left >= RECORD) {
      if (queue.offset - this.#damagedAt > SEARCH_MAX) {
        this.#giveUp();
        return false;
      }
      const { at } = queue;
      if (this.#isRecord(at)) {
        const next = at + RECORD + view.getUint32(at + 8, this.#little);
        if (next + RECORD > view.byteLength) return false;
        if (this.#isRecord(next)) {
          this.#remarks.add(
            'what should be a packet is none: bytes were passed over up to the next one',
            `byte ${this.#damagedAt}`,
          );
          this.#damagedAt = -1;
          return true;
        }
      }
      queue.at++;
    }
    return false;
  }

  /** Whether what stands there may be the head of a packet. */
  #isRecord(at: number): boolean {
    const { view } = this.#queue;
    const little = this.#little;
    const length = view.getUint32(at + 8, little);
    const parts = view.getUint32(at + 4, little);
    const seconds = view.getUint32(at, little);
    const before = this.#frame.timeMs / 1000;
    return (
      length > 0 &&
      length <= PACKET_MAX &&
      length <= view.getUint32(at + 12, little) &&
      view.getUint32(at + 12, little) <= PACKET_MAX &&
      parts * this.#unit < 1000 &&
      (this.#frame.number === 0 || Math.abs(seconds - before) < NEAR_SECONDS)
    );
  }

  #giveUp(): void {
    this.#broken = true;
    this.#remarks.add(
      'what should be a packet is none: the file is damaged, and the rest of it was not read',
      `byte ${this.#damagedAt}`,
    );
  }
}
