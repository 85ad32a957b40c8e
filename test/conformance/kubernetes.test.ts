import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { kubernetes } from '../../src/server/plugins/kubernetes/kubernetes.ts';
import { rcodeName } from '../../src/server/wire/iana.ts';
import { ApiServer } from '../kit/apiserver/server.ts';
import { elsewhere } from './elsewhere.ts';
import { objects, plurals } from './objects.ts';
import { check, readRows, resultOf } from './rows.ts';
import { serveCorefile, type Served } from './served.ts';
import { configurations } from './table.ts';

function mixed(name: string): string {
  return Array.from(name, (char, at) => (at % 2 === 0 ? char.toUpperCase() : char)).join('');
}

const directory = mkdtempSync(join(tmpdir(), 'ndots-conformance-'));
let api: ApiServer;

before(async () => {
  writeFileSync(
    join(directory, 'objects.json'),
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }),
  );
  api = await ApiServer.start();
  for (const object of objects) api.put(plurals[object.kind!]!, object);
});

after(async () => {
  await api.stop();
  rmSync(directory, { recursive: true });
});

const sources = [
  { title: 'a manifest directory', property: () => `manifests ${directory}` },
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
          served = await serveCorefile(corefile, [kubernetes, elsewhere], directory);
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

        test("the client's spelling is returned, and has no other effect", async () => {
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
