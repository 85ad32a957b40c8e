import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { kubernetes } from '../../src/plugins/kubernetes/kubernetes.ts';
import { FLAG, rcodeName, typeName } from '../../src/wire/iana.ts';
import type { DnsRecord, Message } from '../../src/wire/message.ts';
import { printData } from '../../src/wire/print.ts';
import { ApiServer } from '../kit/apiserver/server.ts';
import { elsewhere } from './elsewhere.ts';
import { objects, plurals } from './objects.ts';
import { serveCorefile, type Served } from './served.ts';
import { configurations, type Configuration } from './table.ts';

interface Row {
  readonly name: string;
  readonly type: string;
  readonly result: string;
  readonly answer: readonly string[];
  readonly additional: readonly string[];
}

const suffix = '.svc.cluster.local.';

function readRows({ rows }: Configuration): Row[] {
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

/** `OWNER TTL TYPE DATA`. */
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

function resultOf(reply: Message): string {
  const rcode = rcodeName(reply.rcode);
  return rcode === 'NOERROR' && reply.answer.length === 0 ? 'NODATA' : rcode;
}

function check(row: Row, reply: Message): void {
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

/** Every second letter in upper case. */
function mixed(name: string): string {
  return Array.from(name, (char, at) => (at % 2 === 0 ? char.toUpperCase() : char)).join('');
}

const folder = mkdtempSync(join(tmpdir(), 'ndots-conformance-'));
let api: ApiServer;

before(async () => {
  writeFileSync(
    join(folder, 'objects.json'),
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }),
  );
  api = await ApiServer.start();
  for (const object of objects) api.put(plurals[object.kind!]!, object);
});

after(async () => {
  await api.stop();
  rmSync(folder, { recursive: true });
});

const sources = [
  { title: 'a manifest folder', property: () => `manifests ${folder}` },
  { title: 'an API server', property: () => `endpoint ${api.url}` },
];

for (const { title: source, property } of sources) {
  describe(`from ${source}`, () => {
    for (const configuration of configurations) {
      describe(configuration.title, () => {
        let served: Served;

        before(async () => {
          const lines = [property(), ...configuration.properties].join('\n');
          const corefile = `.:53 {\nkubernetes ${configuration.zones} {\n${lines}\n}\nelsewhere\n}`;
          served = await serveCorefile(corefile, [kubernetes, elsewhere], folder);
          assert.deepEqual(
            served.log.filter((line) => /WARNING|ERROR/.test(line)),
            [],
          );
        });

        after(() => served[Symbol.asyncDispose]());

        for (const row of readRows(configuration)) {
          test(`${row.name} ${row.type} is ${row.result}`, async () => {
            check(row, await served.ask(row.name, row.type));
          });
        }

        test('every name exists for all types or for none', async () => {
          const names = new Set(readRows(configuration).map(({ name }) => name));
          for (const name of names) {
            const found = new Set<boolean>();
            for (const type of [
              'A',
              'AAAA',
              'SRV',
              'TXT',
              'NS',
              'SOA',
              'CNAME',
              'PTR',
              'MX',
              'HTTPS',
              'ANY',
            ]) {
              const { rcode } = await served.ask(name, type);
              found.add(rcodeName(rcode) === 'NXDOMAIN');
            }
            assert.equal(found.size, 1, name);
          }
        });

        test("the client's spelling comes back, and changes nothing else", async () => {
          for (const row of readRows(configuration)) {
            const name = mixed(row.name);
            const reply = await served.ask(name, row.type);
            assert.equal(resultOf(reply), row.result, `${name} ${row.type}`);
            assert.equal(reply.question[0]?.name, name);
            assert.equal(reply.answer.length, row.answer.length);
            for (const record of reply.answer) {
              if (record.name.toLowerCase() === row.name) assert.equal(record.name, name);
            }
            for (const { name: owner } of reply.authority) assert.ok(name.endsWith(owner), owner);
          }
        });
      });
    }
  });
}
