/** A ring buffer written by kernel programs (BPF_MAP_TYPE_RINGBUF, Linux 5.8). */
import { libc, SystemError } from './libc.ts';
import { createMap, MAP_KIND } from './bpf.ts';
import type { Descriptor } from './descriptor.ts';

const PAGE = 4096;
/** Flags in a record's length field (<linux/bpf.h>). */
const BUSY = 0x8000_0000;
const DISCARDED = 0x4000_0000;
const HEADER = 8;
/** Bytes that are read before the kernel may reuse them, because telling it requires a 64-bit number. */
const RELEASED_AT_ONCE = 32 * 1024;

/** Reads the records that programs wrote. The owner must close it. */
export class BpfRing {
  readonly map: Descriptor;
  readonly #size: number;
  readonly #consumer: { readonly address: number; readonly positions: BigUint64Array };
  readonly #producer: { readonly address: number };
  /** The lower half of the producer's position, which is enough because the ring is smaller than 4 GiB. */
  readonly #written: Uint32Array;
  readonly #data: Uint8Array;
  readonly #lengths: Uint32Array;
  #at = 0;
  /** The position up to which the kernel may reuse the ring. */
  #released = 0;
  #open = true;

  /** @param size bytes, a power of two and a multiple of a page */
  constructor(size: number) {
    this.#size = size;
    this.map = createMap(MAP_KIND.RING, { key: 0, value: 0, entries: size });
    const { fd } = this.map;
    // The data area is mapped twice in a row, so no record is split at the end.
    const [consumer, producer] = [
      libc().mapDescriptor(fd, 0, PAGE, true),
      libc().mapDescriptor(fd, PAGE, PAGE + 2 * size, false),
    ];
    if (consumer === null || producer === null) {
      const error = new SystemError('mmap', libc().errno());
      this.map.close();
      throw error;
    }
    this.#consumer = {
      address: consumer.address,
      positions: new BigUint64Array(consumer.buffer, 0, 1),
    };
    this.#producer = { address: producer.address };
    this.#written = new Uint32Array(producer.buffer, 0, 1);
    this.#data = new Uint8Array(producer.buffer, PAGE);
    this.#lengths = new Uint32Array(producer.buffer, PAGE);
  }

  /** Passes each record to `take`. The bytes are valid only during the call. */
  drain(take: (bytes: Uint8Array, at: number, length: number) => void): void {
    if (!this.#open) return;
    const end = this.#at + ((Atomics.load(this.#written, 0) - this.#at) >>> 0);
    while (this.#at < end) {
      const place = this.#at & (this.#size - 1);
      const length = Atomics.load(this.#lengths, place >> 2);
      if ((length & BUSY) !== 0) break;
      const size = length & 0x3fff_ffff;
      if ((length & DISCARDED) === 0) take(this.#data, place + HEADER, size);
      this.#at += (size + HEADER + 7) & ~7;
    }
    if (this.#at - this.#released < RELEASED_AT_ONCE) return;
    this.#released = this.#at;
    Atomics.store(this.#consumer.positions, 0, BigInt(this.#at));
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    libc().unmap(this.#consumer.address, PAGE);
    libc().unmap(this.#producer.address, PAGE + 2 * this.#size);
    this.map.close();
  }
}
