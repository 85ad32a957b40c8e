import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE } from '../../../server/wire/iana.ts';
import { given, others, type Given } from '../../../../test/kit/given-answers.ts';
import { look } from '../../../../test/kit/story.ts';
import { diagnose } from '../diagnosis.ts';
import { everything } from '../part-diagnosis.ts';
import { captureVerdict } from './capture-verdict.ts';

function verdictOf(all: readonly Given[]): string {
  const [observed] = look(given(all), [], [everything]);
  return captureVerdict(observed!, diagnose(observed!));
}

/** Three queries. */
const thrice = (name: string, reply: Given['reply']): Given[] =>
  [0, 1, 2].map((nth): Given => ({ atMs: 1000 + nth * 20_000, name, reply: { ...reply } }));

test('a name that fails in every lookup is never “Not DNS”, however many other names are well', () => {
  const many = [...others(300), ...others(300, 'db.shop.svc.cluster.local.')];
  assert.match(verdictOf(many), /^Every query got a reply/);
  for (const rcode of [RCODE.SERVFAIL, RCODE.NXDOMAIN])
    for (const name of ['gone.example.net.', 'old.shop.svc.cluster.local.'])
      assert.doesNotMatch(
        verdictOf([...many, ...thrice(name, { rcode })]),
        /^Not DNS|^Every query/,
        `${name} ${rcode}`,
      );
});

test('slow lookups are never “Not DNS”', () => {
  const late = others(100, 'api.example.net.').map((each, nth): Given =>
    nth % 10 === 0 ? { ...each, reply: { tookMs: 1100 } } : each,
  );
  assert.doesNotMatch(verdictOf(late), /^Not DNS|^Every query/);
});
