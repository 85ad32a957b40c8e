/** Single exchanges of the control thread with other name servers: notifications and transfers. Queries of clients go by `Upstream`. */
import { createSocket } from 'node:dgram';
import { connect, isIP } from 'node:net';
import { printHostPort } from '../base/ip.ts';
import { Query } from '../wire/query.ts';
import { exchangeError, type Operation } from './exchange-failure.ts';
import { matchReply } from './match-reply.ts';

/** A name server to be asked. */
export interface RemoteServer {
  /** IP address. */
  readonly host: string;
  readonly port: number;
}

/** How long to try over UDP. */
export interface DatagramTerms {
  /** Local address to send from; empty: any. */
  readonly source: string;
  /** Wait for each try. */
  readonly timeoutMs: number;
  readonly tries: number;
}

/**
 * Sends a query over UDP and waits for the reply with its id, opcode and question; whatever else comes is passed over.
 * @throws Error when none comes in any of the tries
 */
export function askDatagram(
  message: Uint8Array,
  { host, port }: RemoteServer,
  { source, timeoutMs, tries }: DatagramTerms,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const socket = createSocket(isIP(host) === 6 ? 'udp6' : 'udp4');
    const query = new Query();
    query.read(message, 0, message.length);
    let left = tries;
    let timer: NodeJS.Timeout | undefined;
    const end = (run: () => void): void => {
      clearTimeout(timer);
      socket.removeAllListeners();
      socket.on('error', () => undefined);
      socket.close();
      run();
    };
    const where = printHostPort(host, port);
    const fail = (error: Error): void => end(() => reject(told(error, 'dial', `udp ${where}`)));
    const send = (): void => {
      if (left-- === 0) return fail(new Error(`no reply from ${where}`));
      socket.send(message);
      timer = setTimeout(send, timeoutMs);
      timer.unref();
    };
    socket.unref();
    socket.on('error', (error) => fail(error));
    socket.on('message', (reply) => {
      if (matchReply(query, query.id, reply, 0, reply.length) === 'stray') return;
      end(() => resolve(new Uint8Array(reply)));
    });
    const connected = (): void =>
      // Without a way to the server it is the connecting that fails.
      socket.connect(port, host, (error?: Error | null) => (error ? fail(error) : send()));
    if (source === '') connected();
    else socket.bind({ address: source, port: 0 }, connected);
  });
}

/** How long to wait over TCP. */
export interface StreamTerms {
  /** The longest time without anything new, milliseconds. */
  readonly idleMs: number;
  /** The longest time in all. */
  readonly totalMs: number;
  readonly signal: AbortSignal;
}

/**
 * Sends a message over TCP and hands each message that comes back to `take`, until that says that it was the last. Reading waits
 * while `take` does.
 * @throws Error of the connection, when it ends before the last message, or what `take` throws
 */
export async function askStream(
  message: Uint8Array,
  { host, port }: RemoteServer,
  { idleMs, totalMs, signal }: StreamTerms,
  take: (reply: Uint8Array) => boolean | Promise<boolean>,
): Promise<void> {
  const socket = connect({ host, port });
  let operation: Operation = 'dial';
  socket.once('connect', () => (operation = 'read'));
  socket.unref();
  const where = printHostPort(host, port);
  const stop = (): void => void socket.destroy(new Error('the server ends'));
  signal.addEventListener('abort', stop, { once: true });
  const limit = setTimeout(
    () => socket.destroy(new Error(`${where} takes longer than ${totalMs / 1000} s`)),
    totalMs,
  );
  limit.unref();
  socket.setTimeout(idleMs, () =>
    socket.destroy(new Error(`nothing came from ${where} for ${idleMs / 1000} s`)),
  );
  const framed = Buffer.allocUnsafe(2 + message.length);
  framed.writeUInt16BE(message.length, 0);
  framed.set(message, 2);
  socket.write(framed);
  let piece: Buffer = Buffer.alloc(0);
  try {
    for await (const chunk of socket as AsyncIterable<Buffer>) {
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
    throw new Error(`${where} closed the connection before the end`);
  } catch (error) {
    throw told(error, operation, `tcp ${where}`);
  } finally {
    clearTimeout(limit);
    signal.removeEventListener('abort', stop);
    socket.destroy();
  }
}

/** Errors of the system in the words that lines of the log have for them; others as they are. */
function told(error: unknown, operation: Operation, where: string): unknown {
  const ofSystem = error instanceof Error && 'syscall' in error;
  return ofSystem ? exchangeError(error, operation, where) : error;
}
