import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCorefile } from '../../server/corefile/parse.ts';
import { TYPE } from '../../server/wire/iana.ts';
import { witnesses } from './witnesses.ts';

/** Generates questions for two configurations, and limits how many there are. */

const { corefile } = parseCorefile({
  file: 'Corefile',
  text: '.:53 {\n forward . 192.0.2.53\n}\ncorp.example:5353 {\n forward . 192.0.2.54\n}\n',
  dnsPort: 53,
  env: {},
  directives: ['forward'],
  external: {},
  readFile: () => '',
  glob: () => [],
});

const places = [53, 5353].map((port) => ({ address: '', port }));

const asked = (count: number): ReturnType<typeof witnesses> =>
  witnesses({
    corefiles: [corefile],
    objects: [{ name: 'web.shop.svc.cluster.local.', types: [TYPE.A] }],
    clients: [],
    names: Array.from({ length: count }, (_, nth) => ({
      name: `n${nth}.example.net.`,
      types: [TYPE.A, TYPE.AAAA],
    })),
    places,
  });

test('beyond the limit, queries all names in the configurations and objects, and reports the rest', () => {
  const few = asked(10);
  assert.deepEqual(few.left, []);
  const many = asked(40_000);
  assert.equal(many.questions.length, 60_000);
  assert.equal(many.left.length, 1);
  const keys = new Set(many.questions.map((each) => JSON.stringify(each)));
  const own = few.questions.filter(({ name }) => !name.endsWith('.example.net.'));
  assert.deepEqual(
    own.filter((each) => !keys.has(JSON.stringify(each))),
    [],
  );
});
