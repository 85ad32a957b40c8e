/** Code shared by the pcap and pcapng readers for input, byte order, and resynchronising after damage. */
import { ByteQueue } from './byte-queue.ts';
import { emptyFrame, type Frame, type RecordReader } from './frame.ts';
import type { Remarks } from './remarks.ts';

/** The longest packet that tcpdump writes (MAXIMUM_SNAPLEN). Anything longer indicates damage. */
export const PACKET_MAX = 262_144;
/** The number of bytes to search for the next packet after damage. */
const SEARCH_MAX = 16 * 1024 * 1024;

/** Reads a file format that consists of units, which are records in pcap and blocks in pcapng. */
export abstract class PacketFileReader implements RecordReader {
  protected readonly queue: ByteQueue = new ByteQueue();
  protected readonly frame: Frame = emptyFrame();
  protected readonly take: (frame: Frame) => void;
  protected readonly remarks: Remarks;
  protected little = true;
  protected abstract readonly unit: 'packet' | 'block';
  protected abstract readonly least: number;
  /** Units start at multiples of this many bytes. */
  protected abstract readonly alignment: number;
  records: number = 0;
  #broken = false;
  /** The offset of the damage, or -1 if there is none. */
  #damagedAt = -1;

  constructor(take: (frame: Frame) => void, remarks: Remarks) {
    this.take = take;
    this.remarks = remarks;
  }

  get broken(): boolean {
    return this.#broken;
  }

  push(bytes: Uint8Array): void {
    if (this.#broken) return;
    this.queue.push(bytes);
    this.read();
  }

  end(): void {
    if (this.#broken) return;
    if (this.#damagedAt >= 0) this.#giveUp();
    else this.ended();
  }

  protected abstract read(): void;
  /** Adds remarks about the rest once the file has ended. */
  protected abstract ended(): void;
  /** True if a packet's unit starts at `at` in the queue, or null if more bytes are needed. */
  protected abstract isPacketAt(at: number): boolean | null;

  /** Called if no unit starts where one should. */
  protected damaged(): void {
    this.#damagedAt = this.queue.offset;
    this.queue.at += this.alignment;
  }

  /** @returns true if the next unit can be read, or false while searching for a packet after damage */
  protected get sound(): boolean {
    return this.#damagedAt < 0 || this.#findNext();
  }

  #findNext(): boolean {
    const { queue } = this;
    while (queue.left >= this.least) {
      if (queue.offset - this.#damagedAt > SEARCH_MAX) {
        this.#giveUp();
        return false;
      }
      const found = this.isPacketAt(queue.at);
      if (found === null) return false;
      if (found) {
        const next = this.unit === 'packet' ? 'one' : 'packet';
        this.#remark(`bytes were skipped up to the next ${next}`);
        this.#damagedAt = -1;
        return true;
      }
      queue.at += this.alignment;
    }
    return false;
  }

  #giveUp(): void {
    this.#broken = true;
    this.#remark('the file is damaged, so the rest was not read');
  }

  #remark(consequence: string): void {
    this.remarks.add(`a ${this.unit} is malformed: ${consequence}`, `byte ${this.#damagedAt}`);
  }
}
