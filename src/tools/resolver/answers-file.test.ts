import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Problem } from '../../server/base/problem.ts';
import { answerBySpec, parseAnswerSpec } from './answer-spec.ts';
import { nextAnswer, parseAnswers } from './answers-file.ts';
import type { QueryToSend } from './network.ts';
import { labelOf } from './reply.ts';

const query: QueryToSend = {
  id: 7,
  name: 'WWW.example.com.',
  type: 'A',
  edns: null,
  ad: false,
  why: '',
};

function answer(
  words: string,
  changes: Partial<QueryToSend> = {},
  protocol: 'udp' | 'tcp' = 'udp',
) {
  return answerBySpec(parseAnswerSpec(words, 'test'), { ...query, ...changes }, protocol);
}

function problem(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof Problem) return error.message;
    throw error;
  }
  return 'no problem';
}

describe('the words that script an answer', () => {
  test('only addresses in the queried family are returned', () => {
    const both = '203.0.113.80 2001:db8::80';
    assert.deepEqual(
      answer(both)?.answer.map((record) => record.data),
      ['203.0.113.80'],
    );
    assert.deepEqual(
      answer(both, { type: 'AAAA' })?.answer.map((record) => record.data),
      ['2001:db8::80'],
    );
    assert.deepEqual(answer(both, { type: 'TXT' })?.answer, []);
  });

  test('no words at all are NODATA', () => {
    const reply = answer('');
    assert.equal(reply?.rcode, 'NOERROR');
    assert.equal(reply !== null && labelOf(reply), 'NODATA');
  });

  for (const rcode of ['NXDOMAIN', 'SERVFAIL', 'REFUSED', 'NOTIMP', 'FORMERR']) {
    test(`${rcode} is the reply code`, () => assert.equal(answer(rcode)?.rcode, rcode));
  }

  test('DROP means no reply', () => assert.equal(answer('DROP'), null));

  test('CNAME= puts an alias before the addresses, and rev after them', () => {
    const types = (words: string) => answer(words)?.answer.map((record) => record.type);
    assert.deepEqual(types('CNAME=web.example.net 203.0.113.80'), ['CNAME', 'A']);
    assert.deepEqual(types('rev CNAME=web.example.net 203.0.113.80'), ['A', 'CNAME']);
    assert.equal(answer('CNAME=web.example.net 203.0.113.80')?.answer[1]?.name, 'web.example.net.');
  });

  test('TC truncates over UDP only', () => {
    assert.equal(answer('TC 203.0.113.80')?.truncated, true);
    assert.equal(answer('TC 203.0.113.80', {}, 'tcp')?.truncated, false);
    assert.equal(answer('TC 203.0.113.80', {}, 'tcp')?.answer.length, 1);
  });

  test('a reply that is too large is truncated: to nothing, to a part, or not at all', () => {
    assert.equal(answer('n=40')?.truncated, true);
    assert.equal(answer('n=40')?.answer.length, 0);
    const part = answer('n=40 part')?.answer.length ?? 0;
    assert.ok(part > 20 && part < 40);
    assert.equal(answer('n=40 big')?.answer.length, 40);
    assert.equal(answer('n=40', { edns: { size: 1232, cookie: false } })?.answer.length, 40);
    assert.equal(answer('n=40', {}, 'tcp')?.answer.length, 40);
  });

  test('EDNSERR answers EDNS with FORMERR, and other queries normally', () => {
    assert.equal(
      answer('EDNSERR 203.0.113.80', { edns: { size: 1232, cookie: false } })?.rcode,
      'FORMERR',
    );
    assert.equal(answer('EDNSERR 203.0.113.80')?.answer.length, 1);
  });

  test('noaa, nora, nosoa, noopt, lc, lo and ttl= change the message', () => {
    const edns = { edns: { size: 1232, cookie: false } };
    assert.equal(answer('noaa')?.authoritative, false);
    assert.equal(answer('nora')?.recursionAvailable, false);
    assert.equal(answer('NXDOMAIN')?.negativeTtl, 30);
    assert.equal(answer('NXDOMAIN nosoa')?.negativeTtl, null);
    assert.equal(answer('203.0.113.80', edns)?.opt, true);
    assert.equal(answer('203.0.113.80 noopt', edns)?.opt, false);
    assert.equal(answer('lc')?.name, 'www.example.com.');
    assert.equal(answer('lo 203.0.113.80')?.answer[0]?.name, 'www.example.com.');
    assert.equal(answer('ttl=5 203.0.113.80')?.answer[0]?.ttl, 5);
  });

  test('an unknown word names the rule and lists the words', () => {
    assert.throws(
      () => parseAnswerSpec('NXDOMIAN', 'net.yaml: rule 3'),
      (error: unknown) =>
        error instanceof Problem &&
        error.message.startsWith('net.yaml: rule 3: "NXDOMIAN"') &&
        error.hint?.includes('NXDOMAIN') === true,
    );
  });

  test('numbers have bounds', () => {
    for (const word of ['n=-1', 'n=9999999', 'd=x', 'ttl=', 'd=1e9']) {
      assert.notEqual(
        problem(() => parseAnswerSpec(word, 'test')),
        'no problem',
        word,
      );
    }
  });
});

describe('the answers file', () => {
  const read = (value: unknown) => parseAnswers(value, 'net.yaml');
  const rcode = (value: unknown, server: string, name: string, type = 'A') =>
    nextAnswer(read(value), new Map(), server, name, type).rcode;

  test('the first rule that matches server, name and type answers', () => {
    const file = {
      rules: [
        { server: '10.96.0.11', name: '*', answer: 'REFUSED' },
        { name: 'a.example', type: 'aaaa', answer: 'SERVFAIL' },
        { name: '*.example', answer: 'NODATA' },
      ],
    };
    assert.equal(rcode(file, '10.96.0.11', 'a.example.', 'AAAA'), 'REFUSED');
    assert.equal(rcode(file, '10.96.0.10', 'A.Example.', 'AAAA'), 'SERVFAIL');
    assert.equal(rcode(file, '10.96.0.10', 'a.example.'), 'NOERROR');
    assert.equal(rcode(file, '10.96.0.10', 'example.'), 'NXDOMAIN');
    assert.equal(rcode(file, '10.96.0.10', 'other.'), 'NXDOMAIN');
  });

  test('a list gives one answer after the other, and repeats the last', () => {
    const script = read({ rules: [{ name: 'a', answer: ['DROP', 'SERVFAIL', '10.0.0.1'] }] });
    const counts = new Map();
    const next = () => nextAnswer(script, counts, '10.96.0.10', 'a.', 'A');
    assert.equal(next().drop, true);
    assert.equal(next().rcode, 'SERVFAIL');
    assert.deepEqual(next().addresses, ['10.0.0.1']);
    assert.deepEqual(next().addresses, ['10.0.0.1']);
  });

  test('an empty file answers NXDOMAIN to everything', () => {
    assert.equal(rcode({}, '10.96.0.10', 'a.'), 'NXDOMAIN');
  });

  const wrong: [string, unknown, RegExp][] = [
    ['a list', [], /must contain a mapping/],
    ['an unknown key', { rule: [] }, /unknown key "rule"/],
    ['rules that are no list', { rules: {} }, /"rules" must be a list/],
    [
      'a rule with an unknown key',
      { rules: [{ nme: 'a', answer: '' }] },
      /rule 1: unknown key "nme"/,
    ],
    ['a rule without an answer', { rules: [{ name: 'a' }] }, /rule 1: "answer" must be words/],
    ['an empty list of answers', { rules: [{ name: 'a', answer: [] }] }, /empty list/],
    ['a server that is no address', { rules: [{ server: 'dns', answer: '' }] }, /must be an IP/],
    ['a delay below zero', { delay: -1 }, /"delay"/],
    ['a closed server that is no address', { closed: ['dns'] }, /"closed" must list IP addresses/],
    ['null', null, /must contain a mapping/],
  ];
  for (const [what, value, text] of wrong) {
    test(`${what} is an error with its place`, () => {
      const message = problem(() => read(value));
      assert.match(message, /^net\.yaml/);
      assert.match(message, text);
    });
  }
});
