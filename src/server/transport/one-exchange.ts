/**
 * One-off exchanges with other name servers, such as NOTIFY, transfers and checks. Client queries use `Upstream`
 * instead.
 */
import { createSocket } from 'node:dgram';
import { connect } from 'node:net';
import { printSpan } from '../base/elapsed.ts';
import { errorCode } from '../base/error-code.ts';
import { isIP, printHostPort } from '../base/ip.ts';
import { Query } from './query.ts';
import { exchangeError, type Operation } from './upstream/exchange-failure.ts';
import { matchReply } from './upstream/match-reply.ts';
import { oneATurn } from './one-a-turn.ts';
import { ExchangeError } from './upstream/upstream-exchange.ts';

export interface RemoteServer {
  /** IP address. */
  readonly host: string;
  readonly port: number;
}

/** Source address, timeout and number of attempts over UDP. */
export interface DatagramTerms {
  /** Local address to send from; empty: any. */
  readonly source: string;
  /** Local port to send from, which no other socket may use at the same time. 0 means any port. */
  readonly sourcePort?: number;
  /** Timeout for each try, in milliseconds. */
  readonly timeoutMs: number;
  readonly tries: number;
  /** If true, the socket does not keep the process alive. */
  readonly isBackground?: boolean;
}

/** One of several queries sent from one socket. */
export interface DatagramExchange {
  readonly message: Uint8Array;
  /** Called each time the query is sent, including retries. */
  sending(): void;
  /**
   * Called with a reply whose id, opcode and question match. Its bytes are overwritten afterwards.
   * @returns true if the reply is accepted
   */
  take(reply: Uint8Array): boolean;
}

/**
 * Sends a query over UDP and waits for a reply with the same id, opcode and question, ignoring other messages.
 * @throws Error if there is none after all attempts
 */
export async function askDatagram(
  message: Uint8Array,
  server: RemoteServer,
  terms: DatagramTerms,
): Promise<Uint8Array> {
  let found: Uint8Array | null = null;
  const sending = (): void => undefined;
  const take = (reply: Uint8Array): boolean => {
    found = new Uint8Array(reply);
    return true;
  };
  await askDatagrams([{ message, sending, take }], server, { isBackground: true, ...terms });
  return found!;
}

/**
 * Sends several queries over UDP from one socket, retries those without a reply, and waits for all of them.
 * @throws ExchangeError if some still have no reply at the end; `timeout` after all attempts
 */
export function askDatagrams(
  exchanges: readonly DatagramExchange[],
  { host, port }: RemoteServer,
  { source, sourcePort = 0, timeoutMs, tries, isBackground = false }: DatagramTerms,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(isIP(host) === 6 ? 'udp6' : 'udp4');
    const waiting = new Map(exchanges.map((exchange) => [exchange, queryOf(exchange.message)]));
    let left = tries;
    let timer: NodeJS.Timeout | undefined;
    let ended = false;
    const end = (run: () => void): void => {
      if (ended) return;
      ended = true;
      clearTimeout(timer);
      socket.removeAllListeners();
      socket.on('error', () => undefined);
      socket.close();
      run();
    };
    const where = printHostPort(host, port);
    const fail = (error: Error): void => end(() => reject(told(error, 'dial', `udp ${where}`)));
    const send = (): void => {
      if (left-- === 0) return fail(new ExchangeError('timeout', `no reply from ${where}`));
      for (const { message, sending } of waiting.keys()) {
        sending();
        // The system reports only once that no program listens on the port. If the next datagram is sent first, its
        // sender receives the report.
        socket.send(message, (error) => {
          if (error !== null && !passing.has(errorCode(error))) fail(error);
        });
      }
      timer = setTimeout(send, timeoutMs);
      if (isBackground) timer.unref();
    };
    if (isBackground) socket.unref();
    socket.on('error', (error) => fail(error));
    socket.on('message', (reply) => {
      for (const [exchange, query] of waiting) {
        if (matchReply(query, query.id, reply, 0, reply.length) === 'stray') continue;
        if (exchange.take(reply)) waiting.delete(exchange);
        break;
      }
      if (waiting.size === 0) end(resolve);
    });
    const connected = (): void =>
      // Without a route to the server, connecting fails.
      socket.connect(port, host, (error?: Error | null) => (error ? fail(error) : send()));
    if (source === '' && sourcePort === 0) connected();
    else
      socket.bind(
        { port: sourcePort, exclusive: true, ...(source === '' ? {} : { address: source }) },
        connected,
      );
  });
}

function queryOf(message: Uint8Array): Query {
  const query = new Query();
  query.read(message, 0, message.length);
  return query;
}

/** Transient send failures, after which another attempt may succeed. */
const passing: ReadonlySet<string> = new Set(['EAGAIN', 'ENOBUFS', 'ENOMEM']);

export interface StreamTerms {
  /** Maximum time without any new data, in milliseconds. */
  readonly idleMs: number;
  readonly totalMs: number;
  readonly signal: AbortSignal;
}

/**
 * Sends messages over TCP and passes each received message to `take` until it returns true for the last one. Nothing is
 * read while `take` is running.
 * @throws the connection's Error if it closes before the last message, or any error thrown by `take`
 */
export async function askStream(
  messages: readonly Uint8Array[],
  { host, port }: RemoteServer,
  { idleMs, totalMs, signal }: StreamTerms,
  take: (reply: Uint8Array) => boolean | Promise<boolean>,
): Promise<void> {
  const socket = connect({ host, port });
  let operation: Operation = 'dial';
  socket.once('connect', () => (operation = 'read'));
  const where = printHostPort(host, port);
  const stop = (): void => void socket.destroy(new Error('the server ends'));
  signal.addEventListener('abort', stop, { once: true });
  const limit = setTimeout(() => {
    const what = operation === 'dial' ? 'no connection to' : 'an incomplete reply from';
    socket.destroy(new ExchangeError('timeout', `${what} ${where} in ${printSpan(totalMs)}`));
  }, totalMs);
  socket.setTimeout(idleMs, () =>
    socket.destroy(new ExchangeError('timeout', `no reply from ${where} for ${printSpan(idleMs)}`)),
  );
  for (const message of messages) {
    const framed = Buffer.allocUnsafe(2 + message.length);
    framed.writeUInt16BE(message.length, 0);
    framed.set(message, 2);
    socket.write(framed);
  }
  let piece: Buffer = Buffer.alloc(0);
  try {
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      // Even if thirty servers are sending at full speed, each gets its turn, and so does all other work.
      await new Promise<void>(oneATurn);
      piece = piece.length === 0 ? chunk : Buffer.concat([piece, chunk]);
      let at = 0;
      while (piece.length - at >= 2) {
        const end = at + 2 + piece.readUInt16BE(at);
        if (piece.length < end) break;
        if (await take(piece.subarray(at + 2, end))) return;
        at = end;
      }
      piece = piece.subarray(at);
    }
    throw new ExchangeError('closed', `${where} closed the connection before the end`);
  } catch (error) {
    throw told(error, operation, `tcp ${where}`);
  } finally {
    clearTimeout(limit);
    signal.removeEventListener('abort', stop);
    socket.destroy();
  }
}

/** Describes system errors in the words used in log lines. Other errors are left unchanged. */
function told(error: unknown, operation: Operation, where: string): unknown {
  const ofSystem = error instanceof Error && 'syscall' in error;
  return ofSystem ? exchangeError(error, operation, where) : error;
}
