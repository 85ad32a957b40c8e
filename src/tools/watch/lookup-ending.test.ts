import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endingOf, type JudgedQuery } from './lookup-ending.ts';

const NXDOMAIN = 3;
const A = 1;

const REFUSED = 5;
const AAAA = 28;

const replied = (
  name: string,
  rcode: number,
  answers: number,
  more: Partial<JudgedQuery> = {},
): JudgedQuery => ({
  name,
  type: A,
  ending: 'answered',
  protocol: 'udp',
  rcode,
  answers,
  ...more,
});

test('a lookup has failed if its program went on after another server denied the name', () => {
  const queries = [
    replied('api.svc.cluster.local.', NXDOMAIN, 0),
    replied('api.svc.cluster.local.', 0, 1),
    replied('api.cluster.local.', NXDOMAIN, 0),
  ];
  assert.equal(endingOf(queries).ending, 'no-such-name');
  assert.equal(endingOf(queries.slice(0, 2)).ending, 'answered');
});

for (const [what, overTcp, ending] of [
  ['refused', { rcode: REFUSED, answers: 0 }, 'error'],
  ['lost', { rcode: -1, answers: 0, ending: 'lost' }, 'lost'],
  ['still waiting at the end', { rcode: -1, answers: 0, ending: 'open' }, 'waiting'],
  ['answered', { rcode: 0, answers: 100 }, 'answered'],
] as const)
  test(`a truncated reply does not answer a lookup whose query over TCP was ${what}`, () => {
    const cut = replied('large.example.', 0, 3, { truncated: true });
    const other = replied('large.example.', 0, 0, { type: AAAA });
    const again = replied('large.example.', 0, 0, { protocol: 'tcp', ...overTcp });
    assert.equal(endingOf([cut, again]).ending, ending);
    assert.equal(endingOf([cut, other, again]).ending, ending);
    const { truncated: _, ...plain } = cut;
    assert.equal(endingOf([{ ...plain, replyFlags: 0x8380 }, again]).ending, ending);
  });

test('a truncated reply answers a lookup whose program did not send a query over TCP', () => {
  const cut = replied('large.example.', 0, 3, { truncated: true });
  assert.equal(endingOf([cut]).ending, 'answered');
  const otherName = replied('other.example.', 0, 3, { protocol: 'tcp' });
  assert.equal(endingOf([otherName, cut]).ending, 'answered');
});

test('a truncated reply does not answer a lookup whose connection for the whole reply failed', () => {
  const cut = replied('large.example.', 0, 3, { truncated: true, tcpFailed: true });
  const other = replied('large.example.', 0, 0, { type: AAAA });
  assert.equal(endingOf([cut]).ending, 'error');
  assert.equal(endingOf([cut, other]).ending, 'error');
  assert.equal(endingOf([cut, replied('large.example.', 0, 3)]).ending, 'answered');
});
