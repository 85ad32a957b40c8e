/**
 * Simulates all upstreams. Answers depend only on the name and type, so a changed answer means that the path has
 * changed.
 */
import { hashBytes } from './name-hash.ts';
import type { DiffQuestion } from './question.ts';
import { FLAG, RCODE, TYPE } from '../../server/wire/iana.ts';
import { writeMessage, type DnsRecord } from '../../server/wire/message.ts';

/** Longer than any usual cache limit, so that limits become visible. */
const TTL_SECONDS = 7200;
/** Names with this prefix are answered with a short TTL. */
const SHORT_SECONDS = 20;

/** Name prefixes for which upstreams reply with something other than records. */
export const marks = {
  nxdomain: 'nx-',
  nodata: 'nodata-',
  servfail: 'servfail-',
  refused: 'refused-',
  onlyIPv4: 'v4-',
  large: 'large-',
  alias: 'alias-',
  short: 'short-',
  /** An alias for the rest of the name. */
  to: 'to-',
} as const;

/**
 * Private-use types for which upstreams fail with SERVFAIL or REFUSED, regardless of the name. NXDOMAIN depends on the
 * name and not on the type.
 */
export const failingTypes: ReadonlyMap<number, number> = new Map([
  [65_282, 2],
  [65_283, 5],
]);

/**
 * Builds an upstream's reply to a question.
 * @param room the largest message it may send; longer ones are truncated and have TC set
 */
export function scriptedReply(
  question: Pick<DiffQuestion, 'name' | 'type' | 'class'> & { readonly id: number },
  room: number,
): Uint8Array {
  const name = question.name.toLowerCase();
  const rcode = failingTypes.get(question.type) ?? rcodeOf(name);
  const answer = rcode === 0 ? recordsOf(question.name, name, question.type) : [];
  const ttl = name.startsWith(marks.short) ? SHORT_SECONDS : TTL_SECONDS;
  const authority = answer.length === 0 && (rcode === 0 || rcode === 3) ? [soaOf(name)] : [];
  const message = (records: readonly DnsRecord[], tc: number): Uint8Array =>
    writeMessage({
      id: question.id,
      flags: FLAG.QR | FLAG.RD | FLAG.RA | tc,
      rcode,
      question: [{ name: question.name, type: question.type, class: question.class }],
      answer: records.map((record) => ({ ...record, ttl })),
      authority: tc === 0 ? authority : [],
      additional: [],
      edns: null,
    });
  const whole = message(answer, 0);
  return whole.length <= room ? whole : message([], FLAG.TC);
}

function rcodeOf(name: string): number {
  if (name.startsWith(marks.nxdomain)) return RCODE.NXDOMAIN;
  if (name.startsWith(marks.servfail)) return RCODE.SERVFAIL;
  return name.startsWith(marks.refused) ? RCODE.REFUSED : RCODE.NOERROR;
}

function recordsOf(owner: string, name: string, type: number): DnsRecord[] {
  const record = (kind: number, data: object): DnsRecord => ({
    name: owner,
    type: kind,
    class: 1,
    ttl: TTL_SECONDS,
    data,
  });
  if (name.startsWith(marks.nodata)) return [];
  const isAlias = name.startsWith(marks.alias);
  if ((isAlias || name.startsWith(marks.to)) && type !== TYPE.CNAME) {
    const target = isAlias ? 'target.example.net.' : name.slice(marks.to.length);
    return [record(TYPE.CNAME, { target }), ...recordsOf(target, target, type)];
  }
  const hash = hashBytes(name);
  const [a, b] = hash;
  switch (type) {
    case TYPE.A: {
      const count = name.startsWith(marks.large) ? 60 : 1;
      return Array.from({ length: count }, (_, index) =>
        record(TYPE.A, { address: `198.18.${a}.${(b + index) & 255}` }),
      );
    }
    case TYPE.AAAA:
      return name.startsWith(marks.onlyIPv4)
        ? []
        : [record(TYPE.AAAA, { address: `2001:db8::${(a * 256 + b + 1).toString(16)}` })];
    case TYPE.PTR:
      return [record(TYPE.PTR, { target: `host-${a}-${b}.example.net.` })];
    default:
      return [];
  }
}

function soaOf(name: string): DnsRecord {
  const labels = name.split('.');
  const zone = labels.length > 3 ? labels.slice(-3).join('.') : name;
  return {
    name: zone === '' ? '.' : zone,
    type: TYPE.SOA,
    class: 1,
    ttl: TTL_SECONDS,
    data: {
      mname: 'ns.example.net.',
      rname: 'hostmaster.example.net.',
      serial: 1,
      refresh: 7200,
      retry: 900,
      expire: 86_400,
      minimum: TTL_SECONDS,
    },
  };
}
