/**
 * A DNS server whose answers, including faults, come from an answers file. It plays the part of the internet and of
 * faulty upstreams.
 */
import { createSocket, type Socket } from 'node:dgram';
import { createServer, type Server, type Socket as Connection } from 'node:net';
import { answerBySpec } from '../resolver/answer-spec.ts';
import { nextAnswer, type RuleCounts, type Script } from '../resolver/answers-file.ts';
import type { QueryToSend } from '../resolver/network.ts';
import type { SocketKind } from '../../server/wire/transports.ts';
import { replyBytes } from '../resolver/reply-bytes.ts';
import { labelOf } from '../resolver/reply.ts';
import { FLAG, OPTION, typeName } from '../../server/wire/iana.ts';
import { readMessage, type Message } from '../../server/wire/message.ts';

/** A query and how the server handled it. */
export interface ServedQuery {
  readonly atMs: number;
  readonly protocol: SocketKind;
  /** The server address that received the query. */
  readonly server: string;
  readonly clientPort: number;
  readonly query: QueryToSend;
  /** `203.0.113.80`, `NXDOMAIN`, `DROP`, `RST`. */
  readonly answer: string;
}

export interface ScriptedServer {
  /** Switches to another script, starting with the next query. */
  follow(script: Script): void;
  close(): void;
}

/** On addresses in the current network namespace. */
const port = 53;

/**
 * Listens on port 53 of each address over UDP and TCP. Sockets are opened in the caller's network namespace, before the
 * first `await`.
 * @param served called for each query
 * @returns when all sockets are bound
 */
export async function serveScript(
  first: Script,
  addresses: readonly string[],
  served: (query: ServedQuery) => void = () => undefined,
): Promise<ScriptedServer> {
  let script = first;
  let counts: RuleCounts = new Map();
  const recent: { readonly port: number; readonly key: string; readonly at: number }[] = [];
  const sockets = new Map<string, Socket>();
  const listeners: Server[] = [];

  const take = (
    bytes: Buffer,
    from: { readonly protocol: SocketKind; readonly server: string; readonly clientPort: number },
    send: (reply: Buffer, from: string) => void,
    reset: () => void,
  ): void => {
    let message: Message;
    try {
      message = readMessage(bytes);
    } catch {
      // With `search .`, musl 1.2.3 sends malformed queries, which real servers do not answer either.
      return;
    }
    const query = queryOf(message);
    if (query === null) return;
    const { protocol, server, clientPort } = from;
    const spec = nextAnswer(script, counts, server, query.name, query.type);
    const key = `${query.name} ${query.type}`;
    const now = performance.now();
    const isNear = (at: number): boolean => now - at <= 10;
    const raced =
      spec.race &&
      recent.some((one) => one.port === clientPort && one.key !== key && isNear(one.at));
    while (recent.length > 0 && !isNear(recent[0]!.at)) recent.shift();
    recent.push({ port: clientPort, key, at: now });
    const reply = raced ? null : answerBySpec(spec, query, protocol);
    const resets = spec.reset && protocol === 'tcp';
    const answer = resets ? 'RST' : reply === null ? 'DROP' : labelOf(reply);
    served({ atMs: now, protocol, server, clientPort, query, answer });
    const delayMs = spec.delayMs ?? script.delayMs;
    if (resets) setTimeout(reset, delayMs);
    if (resets || reply === null) return;
    const out = Buffer.from(replyBytes(reply));
    setTimeout(() => send(out, spec.from ?? server), delayMs);
  };

  const bound: Promise<void>[] = [];
  for (const server of addresses) {
    // The custom lookup is synchronous, so the socket is created immediately, in this namespace.
    const socket = createSocket({
      type: server.includes(':') ? 'udp6' : 'udp4',
      lookup: (host, _options, done) => done(null, host, server.includes(':') ? 6 : 4),
    });
    sockets.set(server, socket);
    socket.on('error', () => undefined);
    socket.on('message', (bytes, peer) => {
      const send = (reply: Buffer, from: string): void => {
        (sockets.get(from) ?? socket).send(reply, peer.port, peer.address);
      };
      take(bytes, { protocol: 'udp', server, clientPort: peer.port }, send, () => undefined);
    });
    bound.push(
      new Promise((resolve) => socket.bind({ port, address: server, exclusive: true }, resolve)),
    );
  }
  const accepting = addresses.filter((server) => !script.noTcp.has(server));
  // If there is no host name, it immediately listens on all addresses in this namespace.
  const hosts = accepting.length === addresses.length ? [undefined] : accepting;
  for (const host of addresses.length === 0 ? [] : hosts) {
    const listener = createServer((connection) => {
      const server = (connection.localAddress ?? '').replace(/^::ffff:/, '');
      const clientPort = connection.remotePort ?? 0;
      serveConnection(connection, (bytes, send) => {
        take(bytes, { protocol: 'tcp', server, clientPort }, send, () => {
          connection.resetAndDestroy();
        });
      });
    });
    listeners.push(listener);
    const where = { port, exclusive: true, ...(host === undefined ? {} : { host }) };
    bound.push(new Promise((resolve) => listener.listen(where, resolve)));
  }
  await Promise.all(bound);
  return {
    follow(next) {
      script = next;
      counts = new Map();
    },
    close() {
      for (const socket of sockets.values()) socket.close();
      for (const listener of listeners) listener.close();
    },
  };
}

/** Serves a connection on which each message is preceded by its length (RFC 1035, section 4.2.2). */
function serveConnection(
  connection: Connection,
  take: (bytes: Buffer, send: (reply: Buffer) => void) => void,
): void {
  let pending = Buffer.alloc(0);
  connection.setNoDelay(true);
  connection.on('error', () => undefined);
  connection.on('data', (chunk: Buffer) => {
    pending = Buffer.concat([pending, chunk]);
    while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
      const end = 2 + pending.readUInt16BE(0);
      const bytes = pending.subarray(2, end);
      pending = pending.subarray(end);
      take(bytes, (reply) => {
        const length = Buffer.alloc(2);
        length.writeUInt16BE(reply.length);
        if (connection.writable) connection.write(Buffer.concat([length, reply]));
      });
    }
  });
}

function queryOf(message: Message): QueryToSend | null {
  const [question] = message.question;
  if (question === undefined) return null;
  const { edns } = message;
  return {
    id: message.id,
    name: question.name,
    type: typeName(question.type),
    edns:
      edns === null
        ? null
        : {
            size: edns.udpSize,
            cookie: edns.options.some((option) => option.code === OPTION.COOKIE),
          },
    ad: (message.flags & FLAG.AD) !== 0,
    why: '',
  };
}
