import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { child, type JsonObject } from '../../server/base/json-object.ts';
import { Lead } from '../../../test/kit/check-lead.ts';

const MIB = 1024 * 1024;

describe('large objects', () => {
  let lead: Lead;
  beforeEach(() => {
    lead = new Lead();
  });
  afterEach(() => lead.end());

  const put = (resource: string, name: string, object: object, namespace = 'team'): void =>
    lead.api.put(resource, name, { ...object, metadata: { namespace } } as unknown as JsonObject);
  const large = (characters: number): object => ({
    spec: {
      runInterval: '1h',
      podSpec: { spec: { containers: [{ args: ['x'.repeat(characters)] }] } },
    },
  });
  const small = { spec: { runInterval: '1h', timeout: '5m' } };
  const names = (): string[] => [...lead.watch.checks()].map(({ name }) => name);

  test('skips and reports a check of more than a megabyte, and runs the others', async () => {
    put('healthchecks', 'huge', large(1.2 * MIB));
    put('healthchecks', 'dns', small);
    await lead.begin();
    assert.deepEqual(names(), ['dns']);
    assert.equal(lead.watch.numbers.leftOut, 1);
    assert.match(lead.lines.join('\n'), /healthchecks team\/huge is skipped/);
    lead.api.remove('healthchecks', 'huge');
    await lead.clock.advance(100);
    assert.equal(lead.watch.numbers.leftOut, 0);
  });

  test('a namespace full of large checks leaves room for other namespaces', async () => {
    for (let count = 0; count < 40; count++)
      put('healthchecks', `large-${count}`, large(0.9 * MIB), 'greedy');
    for (let count = 0; count < 200; count++) put('healthchecks', `dns-${count}`, small);
    await lead.begin();
    assert.equal(names().filter((name) => name.startsWith('dns-')).length, 200);
    assert.ok(lead.watch.numbers.bytes < 12 * MIB);
    assert.ok(lead.watch.numbers.leftOut >= 27);
    const told = lead.lines.filter((line) => line.includes('is skipped'));
    assert.equal(told.length, 1, told.join('\n'));
  });

  test('the state of a skipped check stays; that of a deleted one does not', async () => {
    put('khchecks', 'huge', large(1.2 * MIB));
    put('khstates', 'huge', { spec: { OK: true } });
    await lead.begin();
    await lead.clock.advance(31_000);
    assert.equal(lead.api.count(/^DELETE khstates/), 0);
    lead.api.remove('khchecks', 'huge');
    await lead.clock.advance(31_000);
    assert.equal(lead.api.count(/^DELETE khstates huge/), 1);
  });

  test('limits errors found in a state like reported ones', async () => {
    const errors = Array.from({ length: 700 }, (_, index) => `${index} ${'e'.repeat(1900)}`);
    put('healthchecks', 'dns', { ...small, status: { ok: false, errors } });
    await lead.begin();
    const [check] = [...lead.watch.checks()];
    assert.equal(check?.state.errors.length, 5);
    assert.equal(check.state.errors.at(-1), 'and 696 more errors');
    await lead.clock.advance(5000);
    const status = child(lead.api.get('healthchecks', 'dns')!, 'status');
    assert.ok(JSON.stringify(status).length < 9000);
  });

  test('a check that kubectl applied is not stored twice', async () => {
    const annotations = {
      'kubectl.kubernetes.io/last-applied-configuration': 'x'.repeat(0.9 * MIB),
    };
    lead.api.put('healthchecks', 'dns', small as unknown as JsonObject, annotations);
    await lead.begin();
    assert.ok(lead.watch.numbers.bytes < 5000);
  });
});
