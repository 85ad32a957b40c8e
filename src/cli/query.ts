/** `ndots query`: one plain DNS query. */
import { readFileSync } from 'node:fs';
import { Problem } from '../base/problem.ts';
import { secureRandom } from '../base/random.ts';
import { parseAddress } from '../base/ip.ts';
import { FLAG, className, opcodeName, rcodeName, typeName } from '../wire/iana.ts';
import { readMessage, writeMessage, type DnsRecord, type Message } from '../wire/message.ts';
import { printData, printMessage } from '../wire/print.ts';
import { EXIT, type Command, type Io } from './command.ts';
import { parseQueryOptions, queryOptionNames, type QueryOptions } from './query-options.ts';
import { exchange } from './query-transport.ts';

const help = `ndots query: one plain DNS query, in dig's or doggo's spelling

  ndots query @10.96.0.10 kubernetes.default.svc.cluster.local
  ndots query MX example.com @tls://9.9.9.9 --short
  ndots query @https://cloudflare-dns.com/dns-query example.com AAAA -o json

Server   @IP  @IP:PORT  @udp:// @tcp:// @tls:// @https://HOST/PATH   (default: first of /etc/resolv.conf)
Words    NAME, TYPE (A, AAAA, MX, TYPE65280 …), CLASS; -x IP asks for the name of an address
dig      +short +tcp +dnssec +norecurse +noedns +bufsize=N +timeout=S +tries=N +ignore +cd +noad
         -t TYPE -q NAME -p PORT -c CLASS
doggo    -t TYPE -n SERVER --short --json --tcp --timeout 5s
Output   -o dig|short|json

The name is asked as it is: no search list. What a program would ask: ndots trace.
Exit codes: 0 an answer came, 1 it is NXDOMAIN or an error, 2 no answer came, 3 wrong usage.
`;

export const query: Command = {
  name: 'query',
  summary: "one plain DNS query, in dig's or doggo's spelling",
  help,
  options: queryOptionNames,
  run,
};

async function run(words: readonly string[], io: Io): Promise<number> {
  try {
    const options = parseQueryOptions(words);
    return await ask(options, io);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    io.err(`ndots query: ${error.print()}\n`);
    return error.code === 'usage' ? EXIT.usage : EXIT.failed;
  }
}

async function ask(options: QueryOptions, io: Io): Promise<number> {
  const server = options.server ?? firstServer();
  if (options.transport === 'udp' && parseAddress(server) === null) {
    throw new Problem({
      code: 'usage',
      text: `"${server}" is no IP address`,
      remedy: 'UDP and TCP servers are given by address; TLS and HTTPS servers may have a name.',
    });
  }
  const message = build(options);
  const start = performance.now();
  let bytes = await exchange(message, options, server);
  let reply = read(bytes, server);
  let via = options.transport;
  if ((reply.flags & FLAG.TC) !== 0 && via === 'udp' && !options.ignoreTruncation) {
    if (options.output === 'dig') io.out(';; Truncated, retrying over TCP.\n');
    via = 'tcp';
    bytes = await exchange(message, { ...options, transport: 'tcp' }, server);
    reply = read(bytes, server);
  }
  const tookMs = performance.now() - start;
  if (options.output === 'json')
    io.out(
      `${JSON.stringify(jsonOf(reply, options, server, via, tookMs, bytes.length), null, 2)}\n`,
    );
  else if (options.output === 'short') {
    for (const record of reply.answer) io.out(`${printData(record.type, record.data)}\n`);
  } else {
    io.out(printMessage(reply));
    io.out(
      `;; Query time: ${Math.round(tookMs)} msec\n;; SERVER: ${server}#${options.port}(${server}) (${via.toUpperCase()})\n;; MSG SIZE  rcvd: ${bytes.length}\n`,
    );
  }
  return reply.rcode === 0 ? EXIT.ok : EXIT.no;
}

function build(options: QueryOptions): Uint8Array {
  const name = options.name.endsWith('.') ? options.name : `${options.name}.`;
  const flags =
    (options.recursion ? FLAG.RD : 0) |
    (options.authenticData ? FLAG.AD : 0) |
    (options.checkingDisabled ? FLAG.CD : 0);
  const size = options.bufferSize ?? (options.dnssec ? 1232 : null);
  try {
    return writeMessage({
      // RFC 8484 section 4.1: over HTTPS the id is 0, so that caches work.
      id: options.transport === 'https' ? 0 : secureRandom.integer(0x10000),
      flags,
      rcode: 0,
      question: [{ name, type: options.type, class: options.class }],
      answer: [],
      authority: [],
      additional: [],
      edns:
        size === null ? null : { udpSize: size, version: 0, dnssecOk: options.dnssec, options: [] },
    });
  } catch (error) {
    throw new Problem({
      code: 'usage',
      text: `"${options.name}" is no domain name: ${String((error as Error).message)}`,
      cause: error,
    });
  }
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
