/**
 * An upstream on loopback whose replies depend only on the query, so that the results of two servers are comparable.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { FLAG, TYPE, rcodeNumber, typeNumber } from '../../../src/server/wire/iana.ts';
import {
  readMessage,
  writeMessage,
  type DnsRecord,
  type Message,
} from '../../../src/server/wire/message.ts';
import { parseName } from '../../../src/server/wire/name.ts';
import { kindOf } from '../../../src/server/wire/record/table.ts';
import { Words } from '../../../src/server/wire/record-words.ts';

/** `IP:PORT` of the upstreams that `startUpstreams` starts. */
export const upstreams: readonly string[] = ['127.0.0.53:5300', '127.0.0.54:5300'];

/** @returns a function that stops them */
export async function startUpstreams(): Promise<() => void> {
  const stops = await Promise.all(
    upstreams.map((at) => startUpstream(at.split(':')[0]!, Number(at.split(':')[1]))),
  );
  return () => stops.forEach((stop) => stop());
}

/** Listens on one address and port over both UDP and TCP. */
async function startUpstream(address: string, port: number): Promise<() => void> {
  const udp = createSocket('udp4');
  udp.on('message', (bytes, from) => {
    const reply = replyTo(bytes, true);
    if (reply !== null) udp.send(reply, from.port, from.address);
  });
  await once(udp.bind(port, address), 'listening');
  const tcp = createServer((socket) => {
    let held = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      held = Buffer.concat([held, chunk]);
      while (held.length >= 2 && held.length >= 2 + held.readUInt16BE(0)) {
        const size = held.readUInt16BE(0);
        const reply = replyTo(held.subarray(2, 2 + size), false);
        held = held.subarray(2 + size);
        if (reply === null) continue;
        const length = Buffer.alloc(2);
        length.writeUInt16BE(reply.length);
        socket.write(Buffer.concat([length, reply]));
      }
    });
    socket.on('error', () => undefined);
  });
  await once(tcp.listen(port, address), 'listening');
  return () => {
    udp.close();
    tcp.close();
  };
}

function replyTo(bytes: Uint8Array, isUdp: boolean): Uint8Array | null {
  let query: Message;
  try {
    query = readMessage(bytes);
  } catch {
    return null;
  }
  const [asked] = query.question;
  if (asked === undefined) return null;
  const made = answerTo(query);
  const message = (sections: Pick<Message, 'answer' | 'authority' | 'additional'>, tc: number) =>
    writeMessage({
      ...sections,
      id: query.id,
      flags:
        FLAG.QR | (query.flags & (FLAG.RD | FLAG.CD | FLAG.OPCODE)) | FLAG.RA | made.flags | tc,
      rcode: made.rcode,
      question: query.question,
      edns:
        query.edns === null
          ? null
          : {
              udpSize: 1232,
              version: 0,
              dnssecOk: query.edns.dnssecOk,
              options: made.options,
            },
    });
  const whole = message(made, 0);
  const room = isUdp ? Math.max(512, query.edns?.udpSize ?? 512) : 65_535;
  return whole.length <= room
    ? whole
    : message({ answer: [], authority: [], additional: [] }, FLAG.TC);
}

type Made = Pick<Message, 'answer' | 'authority' | 'additional' | 'rcode' | 'flags'> & {
  readonly options: readonly { readonly code: number; readonly data: Uint8Array }[];
};

function answerTo(query: Message): Made {
  const { name, type } = query.question[0]!;
  const [label = '', ...rest] = name.toLowerCase().split('.');
  const zone = rest.length > 1 ? rest.join('.') : '.';
  const below = (first: string): string => (zone === '.' ? `${first}.` : `${first}.${zone}`);
  const soa = `${zone} 90 SOA ${below('ns')} ${below('host')} 5 7200 3600 86400 40`;
  const none: Made = { answer: [], authority: [], additional: [], rcode: 0, flags: 0, options: [] };
  const denial = (rcode: string): Made => ({
    ...none,
    rcode: rcodeNumber(rcode)!,
    authority: records([soa], name),
  });
  switch (label) {
    case 'nx':
      return denial('NXDOMAIN');
    case 'nodata':
      return denial('NOERROR');
    case 'nxbare':
      return { ...none, rcode: 3 };
    case 'servfail':
      return { ...none, rcode: 2 };
    case 'refused':
      return { ...none, rcode: 5, options: [{ code: 15, data: Buffer.from([0, 18, 110, 111]) }] };
    case 'referral':
      return {
        ...none,
        authority: records(
          [`${zone} 60 NS ${below('ns1')}`, `${zone} 60 NS ${below('ns2')}`],
          name,
        ),
        additional: records([`${below('ns1')} 60 A 192.0.2.51`], name),
      };
    case 'cname':
    case 'loop':
      if (type === TYPE.CNAME || type === 255 || label === 'loop')
        return {
          ...none,
          answer: records([`${name} 120 CNAME ${label === 'loop' ? name : below('a')}`], name),
        };
      return {
        ...none,
        answer: records([`${name} 120 CNAME ${below('a')}`, ...lines(below('a'), type, 60)], name),
      };
    case 'dname':
      return {
        ...none,
        answer: records(
          [
            `${zone} 80 DNAME example.net.`,
            `${name} 80 CNAME dname.example.net.`,
            ...lines('dname.example.net.', type, 60),
          ],
          name,
        ),
      };
    case 'v4':
      return type === TYPE.A
        ? { ...none, answer: records(lines(name, type, 70), name) }
        : denial('NOERROR');
    case 'v6':
      return type === TYPE.AAAA
        ? { ...none, answer: records(lines(name, type, 70), name) }
        : denial('NOERROR');
    case 'echo': {
      const options =
        query.edns?.options.map(
          ({ code, data }) => `${code}=${Buffer.from(data).toString('hex')}`,
        ) ?? [];
      const edns =
        query.edns === null
          ? 'none'
          : `v${query.edns.version} do=${query.edns.dnssecOk} [${options.join(' ')}]`;
      const text = `${name} type=${type} flags=${query.flags} edns=${edns}`;
      return {
        ...none,
        answer: records([`${name} 0 TXT ${JSON.stringify(text.slice(0, 250))}`], name),
      };
    }
    case 'big':
      return { ...none, answer: records(many(name, type, 40), name) };
    case 'huge':
      return { ...none, answer: records(many(name, type, 400), name) };
    case 'ttl0':
      return { ...none, answer: records(lines(name, type, 0), name) };
    case 'short':
      return { ...none, answer: records(lines(name, type, 3), name) };
    case 'extra':
      return {
        ...none,
        answer: records(lines(name, type, 50), name),
        authority: records([`${zone} 60 NS ${below('ns1')}`], name),
        additional: records(
          [`${below('ns1')} 60 A 192.0.2.51`, `${below('ns1')} 60 AAAA 2001:db8::51`],
          name,
        ),
      };
    case 'signed':
      return {
        ...none,
        flags: FLAG.AD,
        answer: records(
          query.edns?.dnssecOk === true
            ? [
                ...lines(name, type, 50),
                `${name} 50 RRSIG A 13 2 50 20380101000000 20200101000000 4711 ${zone} AAAA`,
              ]
            : lines(name, type, 50),
          name,
        ),
      };
    case 'ad':
      return { ...none, flags: FLAG.AD, answer: records(lines(name, type, 50), name) };
    case 'aa':
      return { ...none, flags: FLAG.AA, answer: records(lines(name, type, 50), name) };
    case 'opt':
      return {
        ...none,
        answer: records(lines(name, type, 50), name),
        options: [
          { code: 15, data: Buffer.from([0, 4]) },
          { code: 10, data: Buffer.alloc(16, 7) },
          ...(query.edns?.options.filter(({ code }) => code === 8) ?? []),
        ],
      };
    default:
      return {
        ...none,
        answer: records(lines(name, type, 300), name),
        ...(lines(name, type, 300).length === 0 ? { authority: records([soa], name) } : {}),
      };
  }
}

/** The records for a name and type, which never change. */
function lines(name: string, type: number, ttl: number): string[] {
  const key = Buffer.from(name.toLowerCase()).reduce((sum, byte) => (sum * 31 + byte) % 251, 7);
  const [, ...rest] = name.toLowerCase().split('.');
  const zone = rest.length > 1 ? rest.join('.') : '.';
  const below = (first: string): string => (zone === '.' ? `${first}.` : `${first}.${zone}`);
  const at = `${name} ${ttl}`;
  const of: Readonly<Record<number, readonly string[]>> = {
    [TYPE.A]: Array.from({ length: 1 + (key % 3) }, (_, index) => `${at} A 192.0.2.${key + index}`),
    [TYPE.AAAA]: [`${at} AAAA 2001:db8::${key.toString(16)}`],
    [TYPE.MX]: [`${at} MX 10 ${below('mail')}`, `${at} MX 20 ${below('Mail2')}`],
    [TYPE.TXT]: [`${at} TXT "text ${key}" "more"`],
    [TYPE.NS]: [`${at} NS ${below('ns1')}`],
    [TYPE.SOA]: [`${at} SOA ${below('ns')} ${below('host')} 5 7200 3600 86400 40`],
    [TYPE.SRV]: [`${at} SRV 1 2 ${key} ${below('a')}`],
    [TYPE.PTR]: [`${at} PTR a.example.org.`],
    257: [`${at} CAA 0 issue "ca.test"`],
    35: [`${at} NAPTR 10 20 "u" "sip" "!^.*$!sip:a@b!" ${below('a')}`],
    65: [`${at} HTTPS 1 ${below('a')} alpn=h2 ipv4hint=192.0.2.5`],
    13: [`${at} HINFO "cpu" "os"`],
  };
  return [...(of[type] ?? (type === 255 ? [...of[TYPE.A]!, ...of[TYPE.MX]!] : []))];
}

function many(name: string, type: number, count: number): string[] {
  if (type === TYPE.A)
    return Array.from(
      { length: count },
      (_, index) => `${name} 60 A 10.1.${index >> 8}.${index & 255}`,
    );
  if (type === TYPE.AAAA)
    return Array.from(
      { length: count },
      (_, index) => `${name} 60 AAAA 2001:db8::${index.toString(16)}`,
    );
  return Array.from({ length: count }, (_, index) => `${name} 60 TXT "line ${index}"`);
}

function records(text: readonly string[], origin: string): DnsRecord[] {
  return text.map((line) => {
    const [owner, ttl, type, ...words] = line.match(/"[^"]*(?:\\"[^"]*)*"|\S+/g)!;
    const number = typeNumber(type!)!;
    const data = kindOf(number)!.parse(new Words(words, parseName(origin)));
    return { name: owner!, type: number, class: 1, ttl: Number(ttl), data };
  });
}
