/** An HTTP/2 client that can break the rules. */
import { once } from 'node:events';
import { connect, type TLSSocket } from 'node:tls';
import { testCertificate } from './certificate.ts';

/** A frame (RFC 9113, section 4.1). `id` is its stream. */
export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly id: number;
  readonly payload: Buffer;
}

export function frame(
  type: number,
  flags: number,
  id: number,
  payload: Uint8Array = Buffer.alloc(0),
): Buffer {
  const header = Buffer.alloc(9);
  header.writeUIntBE(payload.length, 0, 3);
  header[3] = type;
  header[4] = flags;
  header.writeUInt32BE(id, 5);
  return Buffer.concat([header, payload]);
}

/** Builds a header block in which all fields are uncompressed and not indexed. */
export function literals(fields: readonly (readonly [string, string])[]): Buffer {
  const text = (value: string): Buffer => {
    const bytes = Buffer.from(value, 'latin1');
    if (bytes.length < 0x7f) return Buffer.concat([Buffer.of(bytes.length), bytes]);
    const prefix = [0x7f];
    let rest = bytes.length - 0x7f;
    for (; rest >= 0x80; rest >>= 7) prefix.push((rest & 0x7f) | 0x80);
    return Buffer.concat([Buffer.of(...prefix, rest), bytes]);
  };
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.of(0), text(name), text(value)]));
}

export function requestFields(
  method: string,
  path: string,
  more: readonly (readonly [string, string])[] = [],
): (readonly [string, string])[] {
  return [
    [':method', method],
    [':scheme', 'https'],
    [':authority', 'dns.example'],
    [':path', path],
    ...more,
  ];
}

/** The client preface (RFC 9113, section 3.4). */
export const preface: Buffer = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

/** An HTTP/2 client that sends arbitrary frames and returns what it receives frame by frame and record by record. */
export class Http2Client {
  readonly socket: TLSSocket;
  /** The number of frames in each TLS record. */
  readonly records: number[] = [];
  readonly #frames: Frame[] = [];
  #bytes = Buffer.alloc(0);
  #ended = false;
  #wake: (() => void) | null = null;

  private constructor(socket: TLSSocket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk]);
      let count = 0;
      while (this.#bytes.length >= 9) {
        const length = this.#bytes.readUIntBE(0, 3);
        if (this.#bytes.length < 9 + length) break;
        this.#frames.push({
          type: this.#bytes[3]!,
          flags: this.#bytes[4]!,
          id: this.#bytes.readUInt32BE(5),
          payload: Buffer.from(this.#bytes.subarray(9, 9 + length)),
        });
        this.#bytes = this.#bytes.subarray(9 + length);
        count++;
      }
      this.records.push(count);
      this.#wake?.();
    });
    const ended = (): void => {
      this.#ended = true;
      this.#wake?.();
    };
    socket.on('end', ended);
    socket.on('close', ended);
    socket.on('error', ended);
  }

  /** Connects without sending anything. */
  static async connect(port: number): Promise<Http2Client> {
    const socket = connect({ port, host: '127.0.0.1', ca: testCertificate, ALPNProtocols: ['h2'] });
    await once(socket, 'secureConnect');
    return new Http2Client(socket);
  }

  /** Connects, then sends the preface and `settings` (name, value). */
  static async open(
    port: number,
    settings: readonly (readonly [number, number])[] = [],
  ): Promise<Http2Client> {
    const client = await Http2Client.connect(port);
    const payload = Buffer.alloc(6 * settings.length);
    settings.forEach(([name, value], i) => {
      payload.writeUInt16BE(name, 6 * i);
      payload.writeUInt32BE(value, 6 * i + 2);
    });
    client.socket.write(Buffer.concat([preface, frame(4, 0, 0, payload)]));
    return client;
  }

  send(...frames: readonly Buffer[]): void {
    this.socket.write(Buffer.concat(frames));
  }

  /**
   * Returns the next frame of one of these types, or of any type if the list is empty. Returns null at the end or after
   * `waitMs`.
   */
  async next(types: readonly number[] = [], waitMs = 2000): Promise<Frame | null> {
    const end = performance.now() + waitMs;
    for (;;) {
      const at = this.#frames.findIndex(({ type }) => types.length === 0 || types.includes(type));
      if (at >= 0) return this.#frames.splice(at, 1)[0]!;
      const left = end - performance.now();
      if (this.#ended || left <= 0) return null;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  close(): void {
    this.socket.destroy();
  }
}
