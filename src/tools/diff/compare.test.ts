import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TYPE } from '../../server/wire/iana.ts';
import { compare, type Comparison, type ServedConfiguration } from './compare.ts';
import type { DiffQuestion, PrintedRecord, QueryOutcome } from './question.ts';

const query = (name: string, type: number = TYPE.A): DiffQuestion => ({
  name,
  type,
  class: 1,
  client: '10.244.0.9',
  address: '',
  port: 53,
  proto: 'udp',
  udpSize: 1232,
  dnssecOk: false,
});

const record = (data: string, ttl = 30, type = 'A'): PrintedRecord => ({
  name: 'a.',
  type,
  ttl,
  data,
});

const outcome = (changed: Partial<QueryOutcome> = {}): QueryOutcome => ({
  rcode: 'NOERROR',
  flags: ['ra'],
  answer: [record('192.0.2.1'), record('192.0.2.2')],
  authority: [],
  additional: [],
  upstreams: [],
  asked: 0,
  block: '.:53',
  plugin: 'kubernetes',
  ...changed,
});

/** A configuration that answers each question with a function of the time and of whether upstreams are silent. */
function served(
  answer: (question: DiffQuestion, state: { nowMs: number; silent: boolean }) => QueryOutcome,
): ServedConfiguration {
  const state = { nowMs: 0, silent: false };
  return {
    ask: (question) => Promise.resolve(answer(question, state)),
    pass: (ms) => {
      state.nowMs += ms;
      return Promise.resolve();
    },
    silence: (silent) => void (state.silent = silent),
    left: ['erratic'],
  };
}

const always = (changed: Partial<QueryOutcome> = {}): ServedConfiguration =>
  served(() => outcome(changed));

const kinds = ({ classes }: Comparison): readonly string[] => classes.map(({ kind }) => kind);

describe('two configurations', () => {
  test('that answer alike, with records in another order, have no difference', async () => {
    const other = always({ answer: [record('192.0.2.2'), record('192.0.2.1')] });
    const { classes, same, questions, left } = await compare(always(), other, [query('a.')]);
    assert.deepEqual([classes, same, questions, left], [[], 1, 1, ['erratic']]);
  });

  for (const [what, changed, kind] of [
    ['another address', { answer: [record('192.0.2.9')] }, 'answers'],
    ['another response code', { rcode: 'NXDOMAIN' }, 'answers'],
    ['a truncated reply', { flags: ['ra', 'tc'] }, 'answers'],
    ['another upstream', { upstreams: ['192.0.2.53'], asked: 1 }, 'upstreams'],
    ['another TTL', { answer: [record('192.0.2.1', 5), record('192.0.2.2')] }, 'ttls'],
    ['another flag', { flags: ['aa', 'ra'] }, 'ttls'],
  ] as const)
    test(`that differ in ${what}`, async () => {
      assert.deepEqual(kinds(await compare(always(), always(changed), [query('a.')])), [kind]);
    });

  test('are the same if only the records that fit into a truncated reply differ', async () => {
    const cut = { flags: ['ra', 'tc'] };
    const [before, after] = [always(cut), always({ ...cut, answer: [record('192.0.2.1')] })];
    assert.deepEqual(kinds(await compare(before, after, [query('a.')])), []);
  });

  test('that differ in the TTL of negative answers differ in TTLs, not in answers', async () => {
    const soa = (ttl: number): Partial<QueryOutcome> => ({
      rcode: 'NXDOMAIN',
      answer: [],
      authority: [record(`ns. host. 1 7200 1800 86400 ${ttl}`, 5, 'SOA')],
    });
    const result = await compare(always(soa(5)), always(soa(30)), [query('a.')]);
    assert.deepEqual(kinds(result), ['ttls']);
  });

  test('that differ only once the reply is cached are found in the second round', async () => {
    const after = served((_, { nowMs }) => outcome(nowMs > 0 ? { asked: 1 } : {}));
    const { classes } = await compare(always(), after, [query('a.')]);
    assert.deepEqual([classes[0]!.kind, classes[0]!.witness.moment], ['upstreams', 'again']);
  });

  test('that differ only while upstreams are silent are found by names with short TTLs', async () => {
    const after = served((_, { silent }) =>
      outcome(silent ? { rcode: 'SERVFAIL', answer: [] } : {}),
    );
    const questions = [query('a.'), query('short-1.')];
    const { classes } = await compare(always(), after, questions);
    assert.deepEqual(
      classes.map(({ witness }) => [witness.question.name, witness.moment]),
      [['short-1.', 'stale']],
    );
    assert.deepEqual((await compare(always(), after, questions, { later: false })).classes, []);
  });

  test('are described once for each kind of change, worst first, by the simplest names', async () => {
    const after = served(({ name }) =>
      name.startsWith('gone') ? outcome({ rcode: 'NXDOMAIN', answer: [] }) : outcome({ flags: [] }),
    );
    const names = ['gone-long.', 'gone.', 'kept.', ...'123456'.split('').map((n) => `gone-${n}.`)];
    const { classes } = await compare(
      always(),
      after,
      names.map((name) => query(name)),
    );
    assert.deepEqual(kinds({ classes } as Comparison), ['answers', 'ttls']);
    assert.equal(classes[0]!.witness.question.name, 'gone.');
    assert.deepEqual([classes[0]!.count, classes[0]!.names.length], [8, 5]);
  });

  test('that differ in several ways show the worst one for a question', async () => {
    const after = served((_, { nowMs }) =>
      outcome(nowMs === 0 ? { flags: [] } : { rcode: 'SERVFAIL', answer: [] }),
    );
    assert.deepEqual(kinds(await compare(always(), after, [query('a.')])), ['answers']);
  });
});
