/**
 * A DNS server that answers from an answers file, on real sockets: `node scripted-server.ts SCRIPT.json LOG IP…`.
 * Started inside a network namespace by the tests of test/real; every query becomes one line of JSON in the log.
 */
import { createSocket } from 'node:dgram';
import { appendFileSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import packet from 'dns-packet';
import { answerBySpec } from '../../src/resolver/answer-spec.ts';
import { nextAnswer, parseAnswers, type RuleCounts } from '../../src/resolver/answers-file.ts';
import type { Protocol, Query } from '../../src/resolver/network.ts';
import { labelOf, type Reply } from '../../src/resolver/reply.ts';

const [scriptFile = '', log = '', ...listen] = process.argv.slice(2);
const script = parseAnswers(JSON.parse(readFileSync(scriptFile, 'utf8')), scriptFile);
const counts: RuleCounts = new Map();
const seen: { readonly port: number; readonly key: string; readonly at: number }[] = [];

function serve(
  bytes: Buffer,
  server: string,
  port: number,
  protocol: Protocol,
  send: (reply: Buffer) => void,
): void {
  const message = packet.decode(bytes);
  const question = message.questions?.[0];
  if (question === undefined) return;
  const opt = message.additionals?.find((record) => record.type === 'OPT') as
    | { udpPayloadSize: number; options: { code: number }[] }
    | undefined;
  const query: Query = {
    id: message.id ?? 0,
    name: `${question.name}.`,
    type: question.type,
    edns:
      opt === undefined
        ? null
        : { size: opt.udpPayloadSize, cookie: (opt.options ?? []).some((option) => option.code === 10) },
    ad: ((message.flags ?? 0) & packet.AUTHENTIC_DATA) !== 0,
    why: '',
  };
  const spec = nextAnswer(script, counts, server, query.name, query.type);
  const key = `${query.name} ${query.type}`;
  const now = performance.now();
  const raced = spec.race && seen.some((one) => one.port === port && one.key !== key && now - one.at <= 10);
  seen.push({ port, key, at: now });
  const reply = raced ? null : answerBySpec(spec, query, protocol);
  const edns = query.edns === null ? '' : `edns ${query.edns.size}${query.edns.cookie ? ' opt10' : ''}`;
  const row = [now, protocol, server, port, query.id, query.name, query.type, edns, query.ad ? 'ad' : '', reply === null ? 'DROP' : labelOf(reply)];
  appendFileSync(log, `${JSON.stringify(row)}\n`);
  if (reply === null) return;
  const out = encode(reply, query);
  setTimeout(() => send(out), spec.delayMs ?? script.delayMs);
}

const rcodeNumbers: Readonly<Record<string, number>> = { NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5 };

function encode(reply: Reply, query: Query): Buffer {
  const flags =
    (reply.authoritative ? packet.AUTHORITATIVE_ANSWER : 0) |
    (reply.recursionAvailable ? packet.RECURSION_AVAILABLE : 0) |
    (reply.truncated ? packet.TRUNCATED_RESPONSE : 0) |
    packet.RECURSION_DESIRED |
    (rcodeNumbers[reply.rcode] ?? 2);
  const bare = (name: string): string => name.replace(/\.$/, '');
  const soa = {
    type: 'SOA',
    name: bare(query.name),
    ttl: reply.negativeTtl ?? 0,
    data: { mname: 'ns', rname: 'root', serial: 1, refresh: 1, retry: 1, expire: 1, minimum: reply.negativeTtl ?? 0 },
  };
  return packet.encode({
    id: reply.id,
    type: 'response',
    flags,
    questions: [{ type: reply.type as 'A', name: bare(reply.name), class: 'IN' }],
    answers: reply.answer.map((record) => ({
      type: record.type,
      name: bare(record.name),
      ttl: record.ttl,
      data: record.type === 'CNAME' ? bare(record.data) : record.data,
    })) as never,
    authorities: (reply.negativeTtl === null ? [] : [soa]) as never,
    additionals: (reply.opt ? [{ type: 'OPT', name: '.', udpPayloadSize: 1232, flags: 0, options: [] }] : []) as never,
  });
}

for (const server of listen) {
  const socket = createSocket(server.includes(':') ? 'udp6' : 'udp4');
  socket.on('message', (bytes, from) => {
    serve(bytes, server, from.port, 'udp', (reply) => socket.send(reply, from.port, from.address));
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
        serve(bytes, server, connection.remotePort ?? 0, 'tcp', (reply) => {
          const framed = Buffer.alloc(2 + reply.length);
          framed.writeUInt16BE(reply.length, 0);
          reply.copy(framed, 2);
          connection.write(framed);
        });
      }
    });
  });
  await new Promise<void>((resolve) => tcp.listen(53, server, resolve));
}
process.stdout.write('ready\n');
