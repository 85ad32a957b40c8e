import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endingOf, type JudgedQuery } from './lookup-ending.ts';

const NXDOMAIN = 3;
const A = 1;

const replied = (name: string, rcode: number, answers: number): JudgedQuery => ({
  name,
  type: A,
  ending: 'answered',
  rcode,
  answers,
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
