/** Sends queries over a single socket to a server on loopback. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { readMessage, writeMessage, type Message } from '../../src/server/wire/message.ts';
import { typeNumber } from '../../src/server/wire/iana.ts';

const TRIES = 3;
const WAIT_MS = 3000;

/** Queries may be concurrent. */
export class Asker {
  readonly #socket: Socket;
  readonly #port: number;
  readonly #waiting = new Map<number, (reply: Message) => void>();
  #id = 1;
  /** The number of retries that were needed because no reply arrived. */
  repeats = 0;

  private constructor(socket: Socket, port: number) {
    this.#socket = socket;
    this.#port = port;
    socket.on('message', (bytes) => {
      const id = bytes.readUInt16BE(0);
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      waiting?.(readMessage(bytes));
    });
    socket.on('error', () => undefined);
  }

  static async to(port: number): Promise<Asker> {
    const socket = createSocket('udp4');
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    return new Asker(socket, port);
  }

  /** Sends `NAME TYPE` with EDNS and a 4096-byte limit, and retries if there is no reply. */
  async ask(name: string, type: string): Promise<Message> {
    for (let tries = 0; tries < TRIES; tries++) {
      const reply = await this.#once(name, type);
      if (reply !== null) return reply;
      this.repeats++;
    }
    throw new Error(`127.0.0.1:${this.#port} does not answer ${name} ${type}`);
  }

  close(): void {
    this.#socket.close();
  }

  #once(name: string, type: string): Promise<Message | null> {
    const id = (this.#id = (this.#id + 1) & 0xffff);
    const question = [{ name, type: typeNumber(type)!, class: 1 }];
    const edns = { udpSize: 4096, version: 0, dnssecOk: false, options: [] };
    const sections = { answer: [], authority: [], additional: [] };
    const bytes = writeMessage({ id, flags: 0x0100, rcode: 0, question, ...sections, edns });
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        resolve(null);
      }, WAIT_MS);
      this.#waiting.set(id, (reply) => {
        clearTimeout(timer);
        resolve(reply);
      });
      this.#socket.send(bytes, this.#port, '127.0.0.1');
    });
  }
}
