/**
 * A DNS server that answers from an answers file, on real sockets: `node scripted-server.ts SCRIPT.json LOG IP…`.
 * Started inside a network namespace by the tests of test/real; every query becomes one line of JSON in the log.
 */
import { createSocket, type Socket } from 'node:dgram';
import { appendFileSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { answerBySpec } from '../../src/resolver/answer-spec.ts';
import { replyBytes } from '../../src/resolver/reply-bytes.ts';
import { nextAnswer, parseAnswers, type RuleCounts } from '../../src/resolver/answers-file.ts';
import type { Protocol, Query } from '../../src/resolver/network.ts';
import { labelOf } from '../../src/resolver/reply.ts';
import { FLAG, OPTION, typeName } from '../../src/wire/iana.ts';
import { readMessage, type Message } from '../../src/wire/message.ts';

const [scriptFile = '', log = '', ...listen] = process.argv.slice(2);
const script = parseAnswers(JSON.parse(readFileSync(scriptFile, 'utf8')), scriptFile);
const counts: RuleCounts = new Map();
const seen: { readonly port: number; readonly key: string; readonly at: number }[] = [];

function serve(
  bytes: Buffer,
  server: string,
  port: number,
  protocol: Protocol,
  send: (reply: Buffer, from: string) => void,
  reset: () => void,
): void {
  let message: Message;
  try {
    message = readMessage(bytes);
  } catch {
    // musl 1.2.3 with `search .` sends such things; a real server does not answer them either.
    return;
  }
  const [question] = message.question;
  if (question === undefined) return;
  const { edns: opt } = message;
  const query: Query = {
    id: message.id,
    name: question.name,
    type: typeName(question.type),
    edns:
      opt === null
        ? null
        : {
            size: opt.udpSize,
            cookie: opt.options.some((option) => option.code === OPTION.COOKIE),
          },
    ad: (message.flags & FLAG.AD) !== 0,
    why: '',
  };
  const spec = nextAnswer(script, counts, server, query.name, query.type);
  const key = `${query.name} ${query.type}`;
  const now = performance.now();
  const raced =
    spec.race && seen.some((one) => one.port === port && one.key !== key && now - one.at <= 10);
  seen.push({ port, key, at: now });
  const reply = raced ? null : answerBySpec(spec, query, protocol);
  const edns =
    query.edns === null ? '' : `edns ${query.edns.size}${query.edns.cookie ? ' opt10' : ''}`;
  const resets = spec.reset && protocol === 'tcp';
  const row = [
    now,
    protocol,
    server,
    port,
    query.id,
    query.name,
    query.type,
    edns,
    query.ad ? 'ad' : '',
    resets ? 'RST' : reply === null ? 'DROP' : labelOf(reply),
  ];
  appendFileSync(log, `${JSON.stringify(row)}\n`);
  const delayMs = spec.delayMs ?? script.delayMs;
  if (resets) setTimeout(reset, delayMs);
  if (resets || reply === null) return;
  const out = Buffer.from(replyBytes(reply));
  setTimeout(() => send(out, spec.from ?? server), delayMs);
}

const sockets = new Map<string, Socket>();

for (const server of listen) {
  const socket = createSocket(server.includes(':') ? 'udp6' : 'udp4');
  sockets.set(server, socket);
  socket.on('message', (bytes, peer) => {
    const send = (reply: Buffer, from: string): void => {
      (sockets.get(from) ?? socket).send(reply, peer.port, peer.address);
    };
    serve(bytes, server, peer.port, 'udp', send, () => {});
  });
  await new Promise<void>((resolve) => socket.bind(53, server, resolve));
  if (script.noTcp.has(server)) continue;
  const tcp = createServer((connection) => {
    let pending = Buffer.alloc(0);
    connection.setNoDelay(true);
    connection.on('error', () => {});
    connection.on('data', (chunk: Buffer) => {
      pending = Buffer.concat([pending, chunk]);
      while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
        const length = pending.readUInt16BE(0);
        const bytes = pending.subarray(2, 2 + length);
        pending = pending.subarray(2 + length);
        const send = (reply: Buffer): void => {
          const framed = Buffer.alloc(2 + reply.length);
          framed.writeUInt16BE(reply.length, 0);
          reply.copy(framed, 2);
          connection.write(framed);
        };
        const reset = (): void => {
          connection.resetAndDestroy();
        };
        serve(bytes, server, connection.remotePort ?? 0, 'tcp', send, reset);
      }
    });
  });
  await new Promise<void>((resolve) => tcp.listen(53, server, resolve));
}
process.stdout.write('ready\n');
