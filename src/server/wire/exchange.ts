/**
 * A query with its reply, and the lookup to which it belongs. Traces, dnstap and captures share this form. Only bytes
 * and times are stored, and everything else is decoded on demand.
 */
import { printBase64 } from './encoding.ts';
import { printOption } from './edns-print.ts';
import { className, FLAG, opcodeName, optionName, rcodeName, typeName } from './iana.ts';
import { readMessage, type DnsRecord, type Message } from './message.ts';
import { flagNames, printData } from './print.ts';
import type { Protocol } from './transports.ts';

/** One end of a conversation. */
export interface Peer {
  /** `''` if unknown. */
  readonly address: string;
  /** 0 if unknown. */
  readonly port: number;
}

export interface Exchange {
  readonly protocol: Protocol;
  readonly client: Peer;
  readonly server: Peer;
  /** Time of the query, in milliseconds on the lookup's or the capture's clock. */
  readonly sentMs: number;
  /** The whole message, without the length prefix used on a stream. */
  readonly query: Uint8Array;
  /** Time on the same clock, or null if there was no reply. */
  readonly repliedMs: number | null;
  readonly reply: Uint8Array | null;
}

/** One call by an application, and everything that its resolver sent for it, in order. */
export interface Lookup<E extends Exchange = Exchange> {
  /** As spelled by the application. */
  readonly name: string;
  /** Milliseconds on the same clock as the exchanges. */
  readonly startMs: number;
  readonly endMs: number;
  readonly exchanges: readonly E[];
}

/** A record in JSON form. */
export interface RecordDocument {
  readonly name: string;
  readonly type: string;
  readonly class: string;
  /** Seconds. */
  readonly ttl: number;
  /** In zone file format. */
  readonly data: string;
}

/** A message in JSON form, with standard mnemonics. */
export interface MessageDocument {
  readonly id: number;
  readonly opcode: string;
  readonly rcode: string;
  /** Those of the flags `qr`, `aa`, `tc`, `rd`, `ra`, `ad` and `cd` that are set. */
  readonly flags: readonly string[];
  readonly edns: {
    readonly udpSize: number;
    readonly version: number;
    readonly dnssecOk: boolean;
    readonly options: readonly { readonly name: string; readonly text: string }[];
  } | null;
  readonly question: readonly {
    readonly name: string;
    readonly type: string;
    readonly class: string;
  }[];
  readonly answer: readonly RecordDocument[];
  readonly authority: readonly RecordDocument[];
  readonly additional: readonly RecordDocument[];
  /** Bytes. */
  readonly size: number;
  /** The message in base64. */
  readonly wire: string;
}

/**
 * Converts a message to its JSON form.
 * @throws ReadError
 */
export function messageDocument(bytes: Uint8Array): MessageDocument {
  const message = readMessage(bytes);
  return {
    id: message.id,
    opcode: opcodeName((message.flags & FLAG.OPCODE) >> 11),
    rcode: rcodeName(message.rcode),
    flags: flagNames(message.flags),
    edns: ednsDocument(message),
    question: message.question.map((question) => ({
      name: question.name,
      type: typeName(question.type),
      class: className(question.class),
    })),
    answer: message.answer.map(recordDocument),
    authority: message.authority.map(recordDocument),
    additional: message.additional.map(recordDocument),
    size: bytes.length,
    wire: printBase64(bytes),
  };
}

function ednsDocument({ edns }: Message): MessageDocument['edns'] {
  if (edns === null) return null;
  const { udpSize, version, dnssecOk } = edns;
  const options = edns.options.map((option) => {
    const name = optionName(option.code);
    return {
      name,
      text: printOption(option)
        .slice(name.length + 1)
        .trim(),
    };
  });
  return { udpSize, version, dnssecOk, options };
}

function recordDocument(record: DnsRecord): RecordDocument {
  return {
    name: record.name,
    type: typeName(record.type),
    class: className(record.class),
    ttl: record.ttl,
    data: printData(record.type, record.data),
  };
}
