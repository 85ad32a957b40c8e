/** `ndots query`: one plain DNS query. */
import { lookup } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { Problem } from '../base/problem.ts';
import { secureRandom } from '../base/random.ts';
import { parseAddress } from '../base/ip.ts';
import { FLAG, TYPE, className, opcodeName, rcodeName, typeName } from '../wire/iana.ts';
import { readMessage, writeMessage, type DnsRecord, type Message } from '../wire/message.ts';
import { printData, printRecord } from '../wire/print.ts';
import { EXIT, failure, type Command, type Io } from './command.ts';
import type { QueryOptions } from './query-draft.ts';
import { parseQueryOptions } from './query-options.ts';
import { printReply } from './query-print.ts';
import { exchange, exchangeStream } from './query-transport.ts';

export const query: Command = { name: 'query', run };

async function run(words: readonly string[], io: Io): Promise<number> {
  let worst: number = EXIT.ok;
  for (const options of parseQueryOptions(words)) {
    const code = await ask(options, io).catch((error: unknown) => failure('query', error, io));
    worst = Math.max(worst, code);
  }
  return worst;
}

async function ask(options: QueryOptions, io: Io): Promise<number> {
  const message = build(options);
  const server = await serverFor(options);
  if (options.showQuery && options.output === 'dig')
    io.out(printReply(readMessage(message), options.show));
  const start = performance.now();
  if (options.type === TYPE.AXFR || (options.type === TYPE.IXFR && options.transport !== 'udp'))
    return transfer(message, options, server, io);
  let bytes = await exchange(message, options, server.address);
  let reply = read(bytes, server.name);
  let via = options.transport;
  if ((reply.flags & FLAG.TC) !== 0 && via === 'udp' && !options.ignoreTruncation) {
    if (options.output === 'dig' && options.show.comments)
      io.out(';; Truncated, retrying over TCP.\n');
    via = 'tcp';
    bytes = await exchange(message, { ...options, transport: 'tcp' }, server.address);
    reply = read(bytes, server.name);
  }
  const tookMs = performance.now() - start;
  if (options.output === 'json')
    io.out(
      `${JSON.stringify(jsonOf(reply, options, server.name, via, tookMs, bytes.length), null, 2)}\n`,
    );
  else if (options.output === 'short') {
    for (const record of reply.answer) io.out(`${printData(record.type, record.data)}\n`);
  } else {
    io.out(printReply(reply, options.show));
    if (options.show.stats)
      io.out(`${serverLines(options, server, via, tookMs)};; MSG SIZE  rcvd: ${bytes.length}\n`);
  }
  return reply.rcode === 0 ? EXIT.ok : EXIT.no;
}

function serverLines(
  options: QueryOptions,
  { address, name }: Address,
  via: string,
  tookMs: number,
): string {
  return `;; Query time: ${Math.round(tookMs)} msec\n;; SERVER: ${address}#${options.port}(${name}) (${via.toUpperCase()})\n`;
}

/** A zone, record by record as it comes (RFC 5936, RFC 1995). */
async function transfer(
  message: Uint8Array,
  options: QueryOptions,
  server: Address,
  io: Io,
): Promise<number> {
  const start = performance.now();
  const document: object[] = [];
  let end: string | null = null;
  let serial: number | null = null;
  let records = 0;
  let size = 0;
  let messages = 0;
  await exchangeStream(message, options, server.address, (bytes) => {
    const reply = read(bytes, server.name);
    messages++;
    size += bytes.length;
    const serialOf = (record: DnsRecord | undefined): number | null =>
      record?.type === TYPE.SOA ? (record.data as { serial: number }).serial : null;
    if (reply.rcode !== 0) end = rcodeName(reply.rcode);
    else if (messages === 1 && serialOf(reply.answer[0]) === null) end = 'no SOA record';
    serial ??= serialOf(reply.answer[0]);
    records += reply.answer.length;
    if (options.output === 'json')
      document.push(
        jsonOf(
          reply,
          options,
          server.name,
          options.transport,
          performance.now() - start,
          bytes.length,
        ),
      );
    else
      for (const record of reply.answer)
        io.out(
          options.output === 'short'
            ? `${printData(record.type, record.data)}\n`
            : `${printRecord(record)}\n`,
        );
    const last = serialOf(reply.answer.at(-1)) === serial;
    // An IXFR of one SOA record says that nothing changed.
    return end !== null || (last && (records > 1 || options.type === TYPE.IXFR));
  });
  if (options.output === 'json') io.out(`${JSON.stringify(document, null, 2)}\n`);
  else if (end !== null) io.out(`; Transfer failed: ${String(end)}.\n`);
  if (options.output === 'dig' && options.show.stats)
    io.out(
      `${serverLines(options, server, options.transport, performance.now() - start)};; XFR size: ${records} records (messages ${messages}, bytes ${size})\n`,
    );
  return end === null ? EXIT.ok : EXIT.no;
}

interface Address {
  /** Where the query goes: an address, or for TLS and HTTPS a name. */
  readonly address: string;
  /** As it was given. */
  readonly name: string;
}

async function serverFor(options: QueryOptions): Promise<Address> {
  const name = options.server ?? firstServer();
  const { family } = options;
  const bytes = parseAddress(name.replace(/%.*/s, ''));
  if (bytes !== null) {
    const own = bytes.length === 4 ? 4 : 6;
    if (family !== null && family !== own)
      throw new Problem({
        code: 'usage',
        text: `${name} is an IPv${own} address, and -${family} is set`,
      });
    return { address: name, name };
  }
  // A certificate is checked against the name.
  if (options.transport === 'tls' || options.transport === 'https') return { address: name, name };
  try {
    return { address: (await lookup(name, { family: family ?? 0 })).address, name };
  } catch (error) {
    throw new Problem({
      code: 'no-server',
      text: `the server's own name does not resolve: ${name} (${(error as NodeJS.ErrnoException).code ?? 'unknown'})`,
      remedy: 'Name it by address: ndots query @10.96.0.10 NAME',
      cause: error,
    });
  }
}

function build(options: QueryOptions): Uint8Array {
  const name = options.name.endsWith('.') ? options.name : `${options.name}.`;
  const flags =
    ((options.opcode << 11) & FLAG.OPCODE) |
    (options.recursion ? FLAG.RD : 0) |
    (options.authenticData ? FLAG.AD : 0) |
    (options.checkingDisabled ? FLAG.CD : 0);
  // A size of 0 is dig's way to say: no EDNS. What needs EDNS brings it back.
  const wanted = options.dnssec || options.ednsVersion > 0 || options.ednsOptions.length > 0;
  const size = options.bufferSize || (wanted ? 1232 : null);
  try {
    return writeMessage({
      // RFC 8484 section 4.1: over HTTPS the id is 0, so that caches work.
      id: options.transport === 'https' ? 0 : secureRandom.integer(0x10000),
      flags,
      rcode: 0,
      question: [{ name, type: options.type, class: options.class }],
      answer: [],
      authority: options.serial === null ? [] : [startOf(name, options.serial)],
      additional: [],
      edns:
        size === null
          ? null
          : {
              udpSize: size,
              version: options.ednsVersion,
              dnssecOk: options.dnssec,
              options: options.ednsOptions,
            },
    });
  } catch (error) {
    throw new Problem({
      code: 'usage',
      text: `"${options.name}" is no domain name: ${String((error as Error).message)}`,
      cause: error,
    });
  }
}

/** The SOA that an IXFR query carries (RFC 1995 section 3). */
function startOf(name: string, serial: number): DnsRecord {
  const data = { mname: '.', rname: '.', serial, refresh: 0, retry: 0, expire: 0, minimum: 0 };
  return { name, type: TYPE.SOA, class: 1, ttl: 0, data };
}

function read(bytes: Uint8Array, server: string): Message {
  try {
    return readMessage(bytes);
  } catch (error) {
    throw new Problem({
      code: 'bad-reply',
      text: `${server} sent something that is no DNS message: ${String((error as Error).message)}`,
      cause: error,
    });
  }
}

function firstServer(): string {
  let text = '';
  try {
    text = readFileSync('/etc/resolv.conf', 'utf8');
  } catch {
    // Said below.
  }
  const server = /^nameserver\s+(\S+)/m.exec(text)?.[1];
  if (server === undefined) {
    throw new Problem({
      code: 'no-server',
      text: 'which server? /etc/resolv.conf names none',
      remedy: 'Name one: ndots query @10.96.0.10 NAME',
    });
  }
  return server;
}

function jsonOf(
  reply: Message,
  options: QueryOptions,
  server: string,
  via: string,
  tookMs: number,
  size: number,
): object {
  const flags = Object.entries({
    qr: FLAG.QR,
    aa: FLAG.AA,
    tc: FLAG.TC,
    rd: FLAG.RD,
    ra: FLAG.RA,
    ad: FLAG.AD,
    cd: FLAG.CD,
  })
    .filter(([, bit]) => (reply.flags & bit) !== 0)
    .map(([name]) => name);
  const records = (list: readonly DnsRecord[]): object[] =>
    list.map((record) => ({
      name: record.name,
      type: typeName(record.type),
      class: className(record.class),
      ttl: record.ttl,
      data: printData(record.type, record.data),
    }));
  return {
    apiVersion: 'ndots.dev/v1',
    kind: 'Reply',
    server,
    port: options.port,
    transport: via,
    tookMs: Math.round(tookMs * 10) / 10,
    size,
    id: reply.id,
    opcode: opcodeName((reply.flags & FLAG.OPCODE) >> 11),
    rcode: rcodeName(reply.rcode),
    flags,
    edns:
      reply.edns === null
        ? null
        : {
            udpSize: reply.edns.udpSize,
            version: reply.edns.version,
            dnssecOk: reply.edns.dnssecOk,
          },
    question: reply.question.map((question) => ({
      name: question.name,
      type: typeName(question.type),
      class: className(question.class),
    })),
    answer: records(reply.answer),
    authority: records(reply.authority),
    additional: records(reply.additional),
  };
}
