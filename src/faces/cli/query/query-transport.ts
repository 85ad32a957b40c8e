/** Exchanges one message with a server over UDP, TCP, TLS (RFC 7858) or HTTPS (RFC 8484). */
import { createSocket } from 'node:dgram';
import { request } from 'node:https';
import { connect as connectTcp, type Socket, type TcpSocketConnectOpts } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { count } from '../../../server/base/counted.ts';
import { printSpan } from '../../../server/base/elapsed.ts';
import { isIP } from '../../../server/base/ip.ts';
import { Problem } from '../../../server/base/problem.ts';
import { whyFailed } from '../../../server/base/why-failed.ts';
import type { Exchange, Peer } from '../../../server/wire/exchange.ts';
import type { QueryOptions } from './query-draft.ts';

/** Bytes; limit of an HTTPS reply. */
const largestBody = 65_535;

export interface AnsweredExchange extends Exchange {
  readonly repliedMs: number;
  readonly reply: Uint8Array;
}

type TimedReply = Pick<AnsweredExchange, 'client' | 'sentMs' | 'repliedMs' | 'reply'>;

/**
 * Sends a query. Times are from `performance.now()`.
 * @throws Problem if there is no reply
 */
export async function exchange(
  query: Uint8Array,
  options: QueryOptions,
  server: string,
): Promise<AnsweredExchange> {
  const { transport: protocol, port } = options;
  const over = { udp: overUdp, tcp: overStream, tls: overStream, https: overHttps }[protocol];
  const sent = await over(query, options, server);
  return { protocol, server: { address: server, port }, query, ...sent };
}

const unknownPeer: Peer = { address: '', port: 0 };

function overUdp(message: Uint8Array, options: QueryOptions, server: string): Promise<TimedReply> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(isIP(server) === 6 ? 'udp6' : 'udp4');
    let left = options.tries;
    let sentMs = 0;
    let timer: NodeJS.Timeout | undefined;
    const finish = (run: () => void): void => {
      clearTimeout(timer);
      socket.close();
      run();
    };
    const fail = (why: string, remedy?: string): void =>
      finish(() => reject(noAnswer(server, options, why, remedy)));
    const send = (): void => {
      if (left-- === 0) {
        const tries = count(options.tries, 'try', 'tries');
        fail(
          `no reply in ${tries} of ${printSpan(options.timeoutMs)}`,
          'Try TCP: ndots query … +tcp',
        );
        return;
      }
      sentMs = performance.now();
      socket.send(message);
      timer = setTimeout(send, options.timeoutMs);
    };
    socket.on('error', (error) => fail(reason(error)));
    socket.on('message', (reply) => {
      const repliedMs = performance.now();
      // The id does not match, so the reply belongs to another query.
      if (reply[0] !== message[0] || reply[1] !== message[1]) return;
      const { address, port } = socket.address();
      finish(() => resolve({ client: { address, port }, sentMs, repliedMs, reply }));
    });
    const { source } = options;
    const connect = (): void =>
      // Connecting fails if there is no route to the server.
      socket.connect(options.port, server, (error?: Error | null) => {
        if (error === undefined || error === null) send();
        else fail(reason(error));
      });
    if (source === null) connect();
    else socket.bind({ address: source.host, port: source.port, exclusive: true }, connect);
  });
}

async function overStream(
  message: Uint8Array,
  options: QueryOptions,
  server: string,
): Promise<TimedReply> {
  let reply = new Uint8Array(0);
  const ends = await exchangeStream(message, options, server, (bytes) => {
    reply = bytes;
    return true;
  });
  return { ...ends, reply };
}

/**
 * Sends a message over TCP or TLS. Each received message is passed to `take`, which returns true after the last one.
 * While `take` runs, nothing is read and the timeout is paused.
 * @throws Problem if the last message does not arrive, and any errors from `take`
 */
export async function exchangeStream(
  message: Uint8Array,
  options: QueryOptions,
  server: string,
  take: (reply: Uint8Array<ArrayBuffer>) => boolean | Promise<boolean>,
): Promise<Omit<TimedReply, 'reply'>> {
  const where = endsOf(server, options);
  const secure = options.transport === 'tls';
  const stream: Socket = secure
    ? connectTls({
        ...where,
        ...(isIP(server) === 0 ? { servername: server } : {}),
        ALPNProtocols: ['dot'],
      })
    : connectTcp(where);
  let isTaking = false;
  let sentMs = 0;
  stream.setTimeout(options.timeoutMs, () => {
    if (!isTaking) stream.destroy(new Error(`no answer within ${printSpan(options.timeoutMs)}`));
  });
  stream.once(secure ? 'secureConnect' : 'connect', () => {
    const framed = Buffer.alloc(2 + message.length);
    framed.writeUInt16BE(message.length, 0);
    framed.set(message, 2);
    sentMs = performance.now();
    stream.write(framed);
  });
  try {
    let pending = Buffer.alloc(0);
    for await (const chunk of chunksOf(stream, server, options)) {
      pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
      let at = 0;
      while (pending.length - at >= 2) {
        const end = at + 2 + pending.readUInt16BE(at);
        if (pending.length < end) break;
        isTaking = true;
        const isLast = await take(Uint8Array.from(pending.subarray(at + 2, end)));
        isTaking = false;
        if (isLast) {
          const client = { address: stream.localAddress ?? '', port: stream.localPort ?? 0 };
          return { client, sentMs, repliedMs: performance.now() };
        }
        at = end;
      }
      pending = pending.subarray(at);
      // Time spent in `take` does not count towards the server's timeout.
      stream.setTimeout(options.timeoutMs);
    }
  } finally {
    stream.on('error', () => {});
    stream.destroy();
  }
  throw noAnswer(server, options, 'the server closed the connection');
}

/** @throws Problem if the connection fails */
async function* chunksOf(
  stream: Socket,
  server: string,
  options: QueryOptions,
): AsyncGenerator<Buffer<ArrayBuffer>> {
  try {
    for await (const chunk of stream as AsyncIterable<Buffer<ArrayBuffer>>) yield chunk;
  } catch (error) {
    throw noAnswer(server, options, reason(error as Error));
  }
}

function overHttps(
  message: Uint8Array,
  options: QueryOptions,
  server: string,
): Promise<TimedReply> {
  return new Promise((resolve, reject) => {
    const sentMs = performance.now();
    const outgoing = request(
      {
        ...endsOf(server, options),
        path: options.path,
        method: 'POST',
        headers: {
          'content-type': 'application/dns-message',
          accept: 'application/dns-message',
          'content-length': message.length,
        },
        timeout: options.timeoutMs,
      },
      (response) => {
        const chunks: Buffer[] = [];
        let size = 0;
        response.on('data', (chunk: Buffer) => {
          size += chunk.length;
          if (size > largestBody)
            response.destroy(new Error('the body is larger than a DNS message'));
          else chunks.push(chunk);
        });
        response.on('error', (error) => reject(noAnswer(server, options, reason(error))));
        response.on('end', () => {
          if (response.statusCode === 200) {
            const repliedMs = performance.now();
            resolve({ client: unknownPeer, sentMs, repliedMs, reply: Buffer.concat(chunks) });
          } else
            reject(noAnswer(server, options, `HTTP status ${response.statusCode ?? 'unknown'}`));
        });
      },
    );
    outgoing.on('timeout', () =>
      outgoing.destroy(new Error(`no answer within ${printSpan(options.timeoutMs)}`)),
    );
    outgoing.on('error', (error) => reject(noAnswer(server, options, reason(error))));
    outgoing.end(message);
  });
}

/** The ends of a connection, with the local one if requested. */
function endsOf(host: string, { port, family, source }: QueryOptions): TcpSocketConnectOpts {
  const remote = { host, port, family: family ?? 0 };
  if (source === null) return remote;
  return {
    ...remote,
    localAddress: source.host,
    ...(source.port !== 0 && { localPort: source.port }),
  };
}

function reason(error: Error): string {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (code === 'EADDRNOTAVAIL' && syscall === 'bind')
    return 'this machine does not have the -b address';
  if (code === 'EADDRINUSE') return 'another program uses the -b port';
  if (code === 'EACCES' && syscall === 'bind') return 'ports below 1024 need root (-b)';
  if (code === 'ECONNREFUSED') return 'no server listens on that port';
  if (code === 'ENETUNREACH' || code === 'EHOSTUNREACH') return 'there is no route to that host';
  if (code === 'EADDRNOTAVAIL') return 'this machine has no address to send from';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'the server name does not resolve';
  return whyFailed(error);
}

function noAnswer(server: string, options: QueryOptions, why: string, remedy?: string): Problem {
  const where = `${server}#${options.port} (${options.transport.toUpperCase()})`;
  return new Problem({
    code: 'no-answer',
    text: `no answer from ${where}: ${why}`,
    remedy,
  });
}
