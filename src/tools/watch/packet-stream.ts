/** A node's packets as a pcapng stream. Nothing is captured unless a reader is connected. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { every, type Clock, type Timer } from '../../server/base/clock.ts';
import { StreamReaders, type StreamAccess } from '../../server/base/stream-readers.ts';
import { timeOutPeer } from '../../server/runtime/peer-timeout.ts';
import type { TakePacket } from '../../server/runtime/packet-socket.ts';
import { TAP_PATH, TAP_STREAM } from '../../server/wire/dnstap.ts';
import { emptyFrame, LINK, type Frame } from '../capture/read/packets/frame.ts';
import { lossBlock, PcapngWriter } from '../capture/read/packets/pcapng.ts';

/** The time span over which packets are collected before sending them, in milliseconds. */
const COLLECT_MS = 100;
/** The number of bytes to collect before sending. */
const COLLECT_BYTES = 256 * 1024;

/** The interval at which a captured interface is checked, in milliseconds. */
export const PLACE_LOOK_MS = 2000;

export interface OpenCapture {
  dropped(): number;
  /** True once its interface or namespace no longer exists, or has been replaced by one with the same name. */
  isGone(): boolean;
  stop(): void;
}

export interface PacketStreamParts {
  readonly clock: Clock;
  readonly version: string;
  /** Starts capturing. @throws Problem */
  open(take: TakePacket): OpenCapture;
}

export class PacketStream {
  /** Packets captured for readers since the start. */
  packets = 0;
  readonly #parts: PacketStreamParts;
  readonly #readers: StreamReaders;
  readonly #writer: PcapngWriter;
  readonly #frame: Frame = { ...emptyFrame(), link: LINK.RAW };
  #blocks: Uint8Array[] = [];
  #bytes = 0;
  #messages = 0;
  /** Blocks that come before the packets and that all readers have received. */
  #heads = 0;
  #timer: Timer | null = null;
  #capture: OpenCapture | null = null;
  #look: Timer | null = null;
  #droppedBefore = 0;

  constructor(parts: PacketStreamParts) {
    this.#parts = parts;
    const lost = (): number => this.dropped;
    this.#readers = new StreamReaders(
      {
        path: TAP_PATH,
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
      timeOutPeer,
    );
    this.#writer = new PcapngWriter((block) => this.#collect(block), `ndots ${parts.version}`);
    // A loss count refers to an interface, even before the first packet.
    this.#writer.describe(this.#frame);
    this.#flush();
  }

  /** The number of packets the kernel dropped. */
  get dropped(): number {
    return this.#droppedBefore + (this.#capture?.dropped() ?? 0);
  }

  get readers(): number {
    return this.#readers.connected;
  }

  /** The number of packets sent, summed over readers. */
  get sent(): number {
    return this.#readers.sent;
  }

  /** The number of packets that readers were too slow to receive. */
  get missed(): number {
    return this.#readers.missed;
  }

  /** Sends packets until the reader disconnects. */
  serve(request: IncomingMessage, response: ServerResponse, access: StreamAccess): void {
    this.#readers.serve(request, response, access);
  }

  close(): void {
    this.#flush();
    this.#readers.close();
  }

  #begin(): void {
    const { clock, open } = this.#parts;
    this.#capture = open((bytes, start, end, timeMs, port) => {
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
    // A capture stays silent if its interface is gone. Readers that reconnect learn why, or get the new one.
    this.#look = every(clock, PLACE_LOOK_MS, () => {
      if (this.#capture?.isGone() === true) this.close();
    });
  }

  #end(): void {
    this.#look?.cancel();
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
