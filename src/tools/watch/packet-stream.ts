/** The packets of a node as a pcapng stream. Nothing is captured while no reader is connected. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock, Timer } from '../../server/base/clock.ts';
import { StreamReaders, type StreamAccess } from '../../server/base/stream-readers.ts';
import type { TakePacket } from '../../server/runtime/packet-socket.ts';
import { TAP_STREAM } from '../../server/wire/dnstap.ts';
import { emptyFrame, LINK, type Frame } from '../capture/read/packets/frame.ts';
import { lossBlock, PcapngWriter } from '../capture/read/packets/pcapng.ts';

/** Packets are collected for this long before they are sent, milliseconds. */
const COLLECT_MS = 100;
/** The same in bytes. */
const COLLECT_BYTES = 256 * 1024;

/** A capture that has begun. */
export interface OpenCapture {
  /** Packets that came too fast. */
  dropped(): number;
  stop(): void;
}

/** The parts of a stream. */
export interface PacketStreamParts {
  readonly clock: Clock;
  readonly version: string;
  /** Begins to capture. @throws Problem */
  open(take: TakePacket): OpenCapture;
}

/** Captures while there are readers, and counts. */
export class PacketStream {
  /** Packets since the start that were captured for a reader. */
  packets = 0;
  readonly #parts: PacketStreamParts;
  readonly #readers: StreamReaders;
  readonly #writer: PcapngWriter;
  readonly #frame: Frame = { ...emptyFrame(), link: LINK.RAW };
  #blocks: Uint8Array[] = [];
  #bytes = 0;
  #messages = 0;
  /** Blocks before the packets that all readers have. */
  #heads = 0;
  #timer: Timer | null = null;
  #capture: OpenCapture | null = null;
  #droppedBefore = 0;

  constructor(parts: PacketStreamParts) {
    this.#parts = parts;
    const lost = (): number => this.dropped;
    this.#readers = new StreamReaders(
      {
        headers: { 'ndots-stream': TAP_STREAM, 'ndots-version': parts.version },
        get lost() {
          return lost();
        },
        watched: (on) => (on ? this.#begin() : this.#end()),
        opening: () => {
          this.#flush();
          return this.#writer.head(this.#heads);
        },
        again: () => this.#writer.head(this.#heads),
        leftOut: (packets) => lossBlock(packets, parts.clock.wall()),
        closing: () => null,
      },
      parts.clock,
    );
    this.#writer = new PcapngWriter((block) => this.#collect(block), `ndots ${parts.version}`);
    // A count of losses refers to an interface, also before the first packet.
    this.#writer.describe(this.#frame);
    this.#flush();
  }

  /** Packets that the kernel dropped. */
  get dropped(): number {
    return this.#droppedBefore + (this.#capture?.dropped() ?? 0);
  }

  get readers(): number {
    return this.#readers.connected;
  }

  /** Packets that were sent, for each reader. */
  get sent(): number {
    return this.#readers.sent;
  }

  /** Packets that a reader was too slow for. */
  get missed(): number {
    return this.#readers.missed;
  }

  /** Sends packets until the reader goes. */
  serve(request: IncomingMessage, response: ServerResponse, access: StreamAccess): void {
    this.#readers.serve(request, response, access);
  }

  close(): void {
    this.#flush();
    this.#readers.close();
  }

  #begin(): void {
    this.#capture = this.#parts.open((bytes, start, end, timeMs, port) => {
      const frame = this.#frame;
      frame.timeMs = timeMs;
      frame.bytes = bytes;
      frame.start = start;
      frame.end = end;
      frame.wireLength = end - start;
      frame.port = port;
      this.packets++;
      this.#messages++;
      this.#writer.packet(frame);
    });
  }

  #end(): void {
    this.#droppedBefore = this.dropped;
    this.#capture?.stop();
    this.#capture = null;
    this.#flush();
  }

  #collect(block: Uint8Array): void {
    this.#blocks.push(block);
    this.#bytes += block.length;
    if (this.#bytes >= COLLECT_BYTES) this.#flush();
    else this.#timer ??= this.#parts.clock.after(COLLECT_MS, () => this.#flush());
  }

  #flush(): void {
    this.#timer?.cancel();
    this.#timer = null;
    if (this.#blocks.length > 0) {
      const bytes = Buffer.concat(this.#blocks);
      this.#blocks = [];
      this.#bytes = 0;
      this.#readers.give(bytes, this.#messages);
      this.#readers.flush();
      this.#messages = 0;
    }
    this.#heads = this.#writer.heads;
  }
}
