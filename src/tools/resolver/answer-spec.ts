/**
 * Parses words that script an answer: `203.0.113.80 2001:db8::80`, `NXDOMAIN`, `d=300 CNAME=web.example.net.`, `TC n=40
 * part` … (listed in docs/answers-file.md). A spec is parsed once and then produces a reply to each query.
 */
import { parseAddress } from '../../server/base/ip.ts';
import { Problem } from '../../server/base/problem.ts';
import type { QueryToSend } from './network.ts';
import type { SocketKind } from '../../server/wire/transports.ts';
import {
  nameBytes,
  optBytes,
  questionBytes,
  recordBytes,
  type Rcode,
  type ClientReply,
  type ReplyRecord,
} from './reply.ts';
import { isSendable } from './search-list.ts';

export interface AnswerSpec {
  readonly rcode: Rcode;
  readonly addresses: readonly string[];
  /** Generated addresses, on top of those listed. */
  readonly generated: number;
  readonly cname: string | null;
  readonly cnameLast: boolean;
  readonly drop: boolean;
  /** Sends no reply if the same source port sent another question within the last 10 ms. */
  readonly race: boolean;
  readonly formerrToEdns: boolean;
  readonly truncated: boolean;
  readonly part: boolean;
  readonly big: boolean;
  readonly delayMs: number | null;
  readonly authoritative: boolean;
  readonly recursionAvailable: boolean;
  readonly soa: boolean;
  readonly opt: boolean;
  /** Returns the question in lower case. */
  readonly lowerQuestion: boolean;
  /** Writes owner names in lower case, uncompressed. */
  readonly lowerOwners: boolean;
  readonly ttl: number;
  /** Over TCP, resets the connection instead of answering. */
  readonly reset: boolean;
  /** The question in the reply, or null to repeat the client's. */
  readonly question: string | null;
  /** The server whose address the reply comes from, or null for the one that was queried. */
  readonly from: string | null;
}

const plain: AnswerSpec = {
  rcode: 'NOERROR',
  addresses: [],
  generated: 0,
  cname: null,
  cnameLast: false,
  drop: false,
  race: false,
  formerrToEdns: false,
  truncated: false,
  part: false,
  big: false,
  delayMs: null,
  authoritative: true,
  recursionAvailable: true,
  soa: true,
  opt: true,
  lowerQuestion: false,
  lowerOwners: false,
  ttl: 30,
  reset: false,
  question: null,
  from: null,
};

export const nxdomain: AnswerSpec = { ...plain, rcode: 'NXDOMAIN' };

/** Limit on `n=`, because the message must fit into 65535 bytes. */
const mostAddresses = 2000;
/** The limit for `d=`. */
const longestDelayMs = 3_600_000;

const words: Readonly<Record<string, Partial<AnswerSpec>>> = {
  NODATA: {},
  NXDOMAIN: { rcode: 'NXDOMAIN' },
  SERVFAIL: { rcode: 'SERVFAIL' },
  REFUSED: { rcode: 'REFUSED' },
  NOTIMP: { rcode: 'NOTIMP' },
  FORMERR: { rcode: 'FORMERR' },
  DROP: { drop: true },
  RACE: { race: true },
  EDNSERR: { formerrToEdns: true },
  TC: { truncated: true },
  rev: { cnameLast: true },
  lo: { lowerOwners: true },
  part: { part: true },
  big: { big: true },
  noaa: { authoritative: false },
  nora: { recursionAvailable: false },
  nosoa: { soa: false },
  noopt: { opt: false },
  lc: { lowerQuestion: true },
  RST: { reset: true },
};

/**
 * @param where the rule is, for errors
 * @throws Problem
 */
export function parseAnswerSpec(text: string, where: string): AnswerSpec {
  let spec: AnswerSpec = plain;
  const addresses: string[] = [];
  for (const word of text.split(/\s+/).filter((part) => part !== '')) {
    const [key = '', value] = word.split(/=(.*)/s);
    if (Object.hasOwn(words, word)) spec = { ...spec, ...words[word] };
    else if (key === 'n') spec = { ...spec, generated: integer(value, mostAddresses, word, where) };
    else if (key === 'd') spec = { ...spec, delayMs: integer(value, longestDelayMs, word, where) };
    else if (key === 'ttl') spec = { ...spec, ttl: integer(value, 0x7fffffff, word, where) };
    else if (key === 'CNAME' && value !== undefined && value !== '') {
      const cname = value.endsWith('.') ? value : `${value}.`;
      if (!isSendable(cname)) {
        throw new Problem({
          code: 'bad-answer',
          text: `${where}: "${word}" is not a valid domain name`,
          hint: 'Labels have 1 to 63 bytes, names at most 255.',
        });
      }
      spec = { ...spec, cname };
    } else if (key === 'q' && value !== undefined && value !== '') {
      spec = { ...spec, question: value.endsWith('.') ? value : `${value}.` };
    } else if (key === 'from' && value !== undefined && parseAddress(value) !== null) {
      spec = { ...spec, from: value };
    } else if (parseAddress(word) !== null) addresses.push(word);
    else {
      throw new Problem({
        code: 'bad-answer',
        text: `${where}: "${word}" is neither an address nor a known word`,
        hint: `Known words: ${Object.keys(words).join(' ')} n=COUNT d=MS ttl=SECONDS CNAME=TARGET q=NAME from=SERVER`,
        remedy: 'docs/answers-file.md explains each.',
      });
    }
  }
  return { ...spec, addresses };
}

function integer(value: string | undefined, most: number, word: string, where: string): number {
  if (value !== undefined && /^\d{1,10}$/.test(value) && Number(value) <= most)
    return Number(value);
  throw new Problem({
    code: 'bad-answer',
    text: `${where}: "${word}" needs a whole number from 0 to ${most}`,
  });
}

/** Null: no reply. */
export function answerBySpec(
  spec: AnswerSpec,
  asked: QueryToSend,
  protocol: SocketKind,
): ClientReply | null {
  if (spec.drop) return null;
  const query = spec.question === null ? asked : { ...asked, name: spec.question };
  const name = spec.lowerQuestion ? query.name.toLowerCase() : query.name;
  const head = {
    id: query.id,
    name,
    type: query.type,
    authoritative: spec.authoritative,
    recursionAvailable: spec.recursionAvailable,
    truncated: false,
    answer: [],
    negativeTtl: null,
    opt: spec.opt && query.edns !== null,
  };
  const base = questionBytes(query.name) + (head.opt ? optBytes : 0);
  if (spec.formerrToEdns && query.edns !== null) {
    return { ...head, rcode: 'FORMERR', opt: false, size: questionBytes(query.name) };
  }
  if (spec.truncated && protocol === 'udp') {
    return { ...head, rcode: spec.rcode, truncated: true, size: base, label: 'TC' };
  }
  const answer = recordsBySpec(spec, query);
  const size = base + sizeOf(answer, spec, query);
  const limit = query.edns?.size ?? 512;
  if (protocol === 'udp' && size > limit && !spec.big) {
    const fitting = spec.part ? fit(answer, limit - base, spec, query) : [];
    return {
      ...head,
      rcode: spec.rcode,
      truncated: true,
      answer: fitting,
      size: base + sizeOf(fitting, spec, query),
      label: 'TC(size)',
    };
  }
  const negative = answer.every((record) => record.type === 'CNAME') && spec.soa;
  return {
    ...head,
    rcode: spec.rcode,
    answer,
    negativeTtl: negative ? spec.ttl : null,
    size,
  };
}

function recordsBySpec(spec: AnswerSpec, query: QueryToSend): ReplyRecord[] {
  const spelled = (name: string): string => (spec.lowerOwners ? name.toLowerCase() : name);
  const owner = spelled(spec.cname ?? query.name);
  const wanted = query.type === 'A' ? 4 : query.type === 'AAAA' ? 16 : 0;
  const data = spec.addresses.filter((address) => parseAddress(address)?.length === wanted);
  for (let i = 1; i <= spec.generated && wanted !== 0; i++) data.push(generated(i, wanted));
  const records = data.map((address) => ({
    name: owner,
    type: query.type,
    ttl: spec.ttl,
    data: address,
  }));
  if (spec.cname === null) return records;
  const alias = { name: spelled(query.name), type: 'CNAME', ttl: spec.ttl, data: spec.cname };
  return spec.cnameLast ? [...records, alias] : [alias, ...records];
}

function generated(index: number, bytes: number): string {
  if (bytes === 16) return `2001:db8:97::${index.toString(16)}`;
  return `10.97.${index >> 8}.${index & 255}`;
}

function sizeOf(records: readonly ReplyRecord[], spec: AnswerSpec, query: QueryToSend): number {
  let size = 0;
  let targetWritten = false;
  for (const record of records) {
    const pointer = !spec.lowerOwners && (record.name === query.name || targetWritten);
    size += recordBytes(record, pointer);
    if (record.type === 'CNAME' || record.name !== query.name) targetWritten = true;
  }
  const empty = records.every((record) => record.type === 'CNAME') && spec.soa;
  return size + (empty ? soaBytes : 0);
}

/** The size of an SOA in the authority section, with a pointer, fixed part, two short names, and five numbers. */
const soaBytes = 2 + 10 + 2 * nameBytes('ns.dns.example.') + 20;

function fit(
  records: readonly ReplyRecord[],
  room: number,
  spec: AnswerSpec,
  query: QueryToSend,
): ReplyRecord[] {
  const taken: ReplyRecord[] = [];
  for (const record of records) {
    if (sizeOf([...taken, record], { ...spec, soa: false }, query) > room) break;
    taken.push(record);
  }
  return taken;
}
