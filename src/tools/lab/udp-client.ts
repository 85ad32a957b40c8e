/** Sends plain UDP queries from a lab machine, using a given source port. */
import { createSocket, type Socket } from 'node:dgram';
import { inNetworkNamespace } from '../../server/runtime/network-namespace.ts';
import { isAddressType, typeNumber } from '../../server/wire/iana.ts';
import { readMessage, writeQuery } from '../../server/wire/message.ts';
import { printData } from '../../server/wire/print.ts';

export interface QueryResult {
  /** Milliseconds from the client's creation to the query. */
  readonly atMs: number;
  /** The reply's RCODE (0 for NOERROR), or null if there is no reply. */
  readonly rcode: number | null;
  readonly tookMs: number;
  /** The message as received. */
  readonly reply: Uint8Array | null;
  /** True if the question is spelled in the same way as in the query. */
  readonly sameSpelling: boolean;
}

export function addressesOf({ reply }: Pick<QueryResult, 'reply'>): readonly string[] {
  if (reply === null) return [];
  const { answer } = readMessage(reply);
  return answer
    .filter(({ type }) => isAddressType(type))
    .map(({ type, data }) => printData(type, data));
}

/** The number of bytes before the question. */
const HEAD = 12;

/** A socket in a machine's network that is connected to one server. */
export class UdpClient {
  readonly #socket: Socket;
  readonly #waiting = new Map<number, (reply: Buffer) => void>();
  readonly #server: string;
  readonly #began = performance.now();
  #id = 0;

  private constructor(socket: Socket, server: string) {
    this.#socket = socket;
    this.#server = server;
    socket.on('error', () => undefined);
    socket.on('message', (reply) => {
      if (reply.length >= 12) this.#waiting.get(reply.readUInt16BE(0))?.(reply);
    });
  }

  /** @param sourcePort 0: any */
  static async open(namespace: string, server: string, sourcePort = 0): Promise<UdpClient> {
    const socket = createSocket({
      type: 'udp4',
      lookup: (host, _options, done) => done(null, host, 4),
    });
    await inNetworkNamespace(
      namespace,
      () =>
        new Promise<void>((resolve, reject) => {
          socket.once('error', reject);
          socket.bind({ port: sourcePort, exclusive: true }, resolve);
        }),
    );
    return new UdpClient(socket, server);
  }

  /** Waits up to `waitMs` for the reply. */
  async ask(name: string, type = 'A', waitMs = 1000): Promise<QueryResult> {
    const id = (this.#id = (this.#id + 1) & 0xffff);
    const query = writeQuery({ id, name, type: typeNumber(type) ?? 1 });
    const sent = performance.now();
    const atMs = sent - this.#began;
    const reply = await new Promise<Buffer | null>((resolve) => {
      const timer = setTimeout(() => resolve(null), waitMs);
      this.#waiting.set(id, (bytes) => {
        clearTimeout(timer);
        resolve(bytes);
      });
      this.#socket.send(query, 53, this.#server);
    });
    this.#waiting.delete(id);
    return {
      atMs,
      rcode: reply === null ? null : reply.readUInt8(3) & 15,
      tookMs: performance.now() - sent,
      reply,
      sameSpelling:
        reply !== null && reply.subarray(HEAD, query.length).equals(query.subarray(HEAD)),
    };
  }

  close(): void {
    this.#socket.close();
  }
}

/** True if a server answers for a name when queried once over UDP. Without its objects, it would not. */
export async function dnsAnswers(
  namespace: string,
  server: string,
  name: string,
): Promise<boolean> {
  const client = await UdpClient.open(namespace, server);
  try {
    const { rcode } = await client.ask(name, 'A', 250);
    return rcode !== null && rcode !== 2;
  } finally {
    client.close();
  }
}
