/** Encodes a model's query, and decodes a server's bytes into the reply that models use. */
import type { QueryToSend } from './network.ts';
import type { Rcode, ClientReply, ReplyRecord } from './reply.ts';
import { FLAG, OPTION, rcodeName, typeName, typeNumber } from '../../server/wire/iana.ts';
import { readMessage, writeQuery, type DnsRecord } from '../../server/wire/message.ts';
import { printData } from '../../server/wire/print.ts';

/** A fixed client cookie. Cookies in replies are not checked here. */
const clientCookie = Uint8Array.of(110, 100, 111, 116, 115, 0, 0, 1);

/** Encodes one question, with RD set. */
export function queryBytes(query: QueryToSend): Uint8Array {
  const cookie = { code: OPTION.COOKIE, data: clientCookie };
  return writeQuery({
    id: query.id,
    name: query.name,
    type: typeNumber(query.type) ?? 1,
    flags: FLAG.RD | (query.ad ? FLAG.AD : 0),
    edns:
      query.edns === null
        ? null
        : {
            udpSize: query.edns.size,
            version: 0,
            dnssecOk: false,
            options: query.edns.cookie ? [cookie] : [],
          },
  });
}

/** Throws if the bytes are not a reply with a question. */
export function readReply(bytes: Uint8Array): ClientReply {
  const message = readMessage(bytes);
  const [question] = message.question;
  if (question === undefined) throw new Error('a reply without a question');
  const soa = message.authority.find((record) => typeName(record.type) === 'SOA');
  const minimum = (soa?.data as { minimum?: number } | undefined)?.minimum;
  return {
    id: message.id,
    name: question.name,
    type: typeName(question.type),
    rcode: rcodeName(message.rcode) as Rcode,
    authoritative: (message.flags & FLAG.AA) !== 0,
    recursionAvailable: (message.flags & FLAG.RA) !== 0,
    truncated: (message.flags & FLAG.TC) !== 0,
    answer: message.answer.map(recordOf),
    negativeTtl: soa === undefined ? null : Math.min(soa.ttl, minimum ?? soa.ttl),
    opt: message.edns !== null,
    size: bytes.length,
    bytes,
  };
}

function recordOf(record: DnsRecord): ReplyRecord {
  const data = printData(record.type, record.data);
  return { name: record.name, type: typeName(record.type), ttl: record.ttl, data };
}
