/** Reads classic pcap files (draft-ietf-opsawg-pcap) in both byte orders, with microseconds or nanoseconds. */
import { PACKET_MAX, PacketFileReader } from './damage.ts';

const MAGIC = { MICRO: 0xa1b2c3d4, NANO: 0xa1b23c4d } as const;
const HEADER = 24;
const RECORD = 16;
/** In seconds. Packets after damage have times close to that of the last one before it. */
const NEAR_SECONDS = 86_400;

export function isPcap(first: Uint8Array): boolean {
  if (first.length < 4) return false;
  const view = new DataView(first.buffer, first.byteOffset, 4);
  return [view.getUint32(0, true), view.getUint32(0, false)].some(
    (word) => word === MAGIC.MICRO || word === MAGIC.NANO,
  );
}

export class PcapReader extends PacketFileReader {
  protected readonly unit = 'packet';
  protected readonly least: number = RECORD;
  protected readonly alignment = 1;
  /** Milliseconds per unit in a timestamp's second half, or 0 if the file header has not been read. */
  #fraction = 0;

  protected ended(): void {
    const { left, offset } = this.queue;
    if (this.#fraction === 0) this.remarks.add('the file ends inside its header');
    else if (left > 0)
      this.remarks.add('the file ends inside a packet, which is ignored', `byte ${offset}`);
  }

  protected read(): void {
    if (this.#fraction === 0 && this.queue.left >= HEADER) this.#begin();
    if (this.#fraction > 0) this.#records();
  }

  #begin(): void {
    const { queue } = this;
    const { view, at } = queue;
    const word = view.getUint32(at, true);
    this.little = word === MAGIC.MICRO || word === MAGIC.NANO;
    this.#fraction = view.getUint32(at, this.little) === MAGIC.NANO ? 1e-6 : 1e-3;
    // The upper bits describe a checksum at the end (FCS), which is not used.
    this.frame.link = view.getUint32(at + 20, this.little) & 0xffff;
    queue.at += HEADER;
  }

  #records(): void {
    const { queue, frame, little } = this;
    const { bytes, view } = queue;
    while (this.sound && queue.left >= RECORD) {
      const { at } = queue;
      const length = view.getUint32(at + 8, little);
      if (length > PACKET_MAX) {
        this.damaged();
        continue;
      }
      if (queue.left < RECORD + length) return;
      frame.number++;
      frame.timeMs =
        view.getUint32(at, little) * 1000 + view.getUint32(at + 4, little) * this.#fraction;
      frame.wireLength = view.getUint32(at + 12, little);
      frame.bytes = bytes;
      frame.start = at + RECORD;
      frame.end = at + RECORD + length;
      queue.at = frame.end;
      this.records++;
      this.take(frame);
    }
  }

  /** Like Wireshark, requires two consecutive records. */
  protected isPacketAt(at: number): boolean | null {
    if (!this.#isRecord(at)) return false;
    const { view } = this.queue;
    const next = at + RECORD + view.getUint32(at + 8, this.little);
    return next + RECORD > view.byteLength ? null : this.#isRecord(next);
  }

  #isRecord(at: number): boolean {
    const { view } = this.queue;
    const { little } = this;
    const length = view.getUint32(at + 8, little);
    const parts = view.getUint32(at + 4, little);
    const seconds = view.getUint32(at, little);
    const before = this.frame.timeMs / 1000;
    return (
      length > 0 &&
      length <= PACKET_MAX &&
      length <= view.getUint32(at + 12, little) &&
      view.getUint32(at + 12, little) <= PACKET_MAX &&
      parts * this.#fraction < 1000 &&
      (this.frame.number === 0 || Math.abs(seconds - before) < NEAR_SECONDS)
    );
  }
}
