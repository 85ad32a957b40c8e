/** The rows in the table of answers. */
import assert from 'node:assert/strict';
import { FLAG, rcodeName, typeName } from '../../src/server/wire/iana.ts';
import type { DnsRecord, Message } from '../../src/server/wire/message.ts';
import { printData } from '../../src/server/wire/print.ts';
import type { Configuration } from './table.ts';

export interface Row {
  readonly name: string;
  readonly type: string;
  readonly result: string;
  readonly answer: readonly string[];
  readonly additional: readonly string[];
}

const suffix = '.svc.cluster.local.';

export function readRows({ rows }: Configuration): Row[] {
  return rows
    .trim()
    .split('\n')
    .map((line) => {
      const [asked = '', type = '', result = '', ...words] = line.trim().split(' ');
      const name = asked.replaceAll('~', suffix);
      const records = words
        .join(' ')
        .split(' | ')
        .filter((record) => record !== '')
        .map((record) => record.replaceAll('~', suffix).replaceAll('@', name));
      return {
        name,
        type,
        result,
        answer: records
          .filter((record) => !record.startsWith('+'))
          .map(withTtl)
          .sort(),
        additional: records
          .filter((record) => record.startsWith('+'))
          .map((record) => withTtl(record.slice(2)))
          .sort(),
      };
    });
}

function withTtl(record: string): string {
  const [owner, second, ...rest] = record.split(' ');
  return /^\d+$/.test(second!) ? record : [owner, '5', second, ...rest].join(' ');
}

function shown(records: readonly DnsRecord[], wanted: readonly string[]): string[] {
  return records
    .map(({ name, ttl, type, data }) => {
      const start = `${name} ${ttl} ${typeName(type)}`;
      return wanted.includes(`${start} *`) ? `${start} *` : `${start} ${printData(type, data)}`;
    })
    .sort();
}

/** Describes a reply in the table's terms. */
export function resultOf(reply: Message): string {
  const rcode = rcodeName(reply.rcode);
  return rcode === 'NOERROR' && reply.answer.length === 0 ? 'NODATA' : rcode;
}

/** Checks a reply against its row: result, records, flags, and an SOA record in negative replies. */
export function check(row: Row, reply: Message): void {
  assert.equal(resultOf(reply), row.result);
  assert.deepEqual(shown(reply.answer, row.answer), row.answer);
  assert.deepEqual(shown(reply.additional, []), row.additional);
  if (row.result === 'REFUSED') return;
  assert.notEqual(reply.flags & FLAG.AA, 0, 'AA is set');
  assert.equal(reply.flags & FLAG.RA, 0, 'RA is not set');
  const soa = row.result === 'NODATA' || row.result === 'NXDOMAIN' ? ['SOA'] : [];
  assert.deepEqual(
    reply.authority.map(({ type }) => typeName(type)),
    soa,
  );
}
