/** Encodes a scripted reply. */
import type { ClientReply } from './reply.ts';
import { FLAG, TYPE, rcodeNumber, typeNumber } from '../../server/wire/iana.ts';
import { writeMessage } from '../../server/wire/message.ts';

/** Fields that the script leaves open get arbitrary values. */
export function replyBytes(reply: ClientReply): Uint8Array {
  const flags =
    FLAG.QR |
    FLAG.RD |
    (reply.authoritative ? FLAG.AA : 0) |
    (reply.recursionAvailable ? FLAG.RA : 0) |
    (reply.truncated ? FLAG.TC : 0);
  const minimum = reply.negativeTtl ?? 0;
  // The zone belongs to the name at the end of the alias chain.
  const alias = reply.answer.findLast(({ type }) => type === 'CNAME');
  const soa = {
    name: alias?.data ?? reply.name,
    type: TYPE.SOA,
    class: 1,
    ttl: minimum,
    data: {
      mname: 'ns.example.',
      rname: 'root.example.',
      serial: 1,
      refresh: 1,
      retry: 1,
      expire: 1,
      minimum,
    },
  };
  return writeMessage({
    id: reply.id,
    flags,
    rcode: rcodeNumber(reply.rcode) ?? 2,
    question: [{ name: reply.name, type: typeNumber(reply.type) ?? 1, class: 1 }],
    answer: reply.answer.map((record) => ({
      name: record.name,
      type: typeNumber(record.type) ?? 1,
      class: 1,
      ttl: record.ttl,
      data: record.type === 'CNAME' ? { target: record.data } : { address: record.data },
    })),
    authority: reply.negativeTtl === null ? [] : [soa],
    additional: [],
    edns: reply.opt ? { udpSize: 1232, version: 0, dnssecOk: false, options: [] } : null,
  });
}
