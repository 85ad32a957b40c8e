import assert from 'node:assert/strict';
import { test } from 'node:test';
import { conntrackStatistic } from './conntrack-statistics.ts';

/** Two CPUs, as printed by Linux 6.1. */
const text = `entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error  expect_new expect_create expect_delete search_restart
00000012  00000001 00000000 00000000 0000000a 00000000 00000000 00000000 00000000 0000000f 00000002 00000000 00000000  00000000 00000000 00000000 00000000
00000012  00000000 00000000 00000000 00000003 00000000 00000000 00000000 00000000 00000010 00000000 00000000 00000000  00000000 00000000 00000000 00000000
`;

test('adds up the hexadecimal connection tracking counters of all CPUs', () => {
  assert.equal(conntrackStatistic(text, 'insert_failed'), 31);
  assert.equal(conntrackStatistic(text, 'drop'), 2);
});

test('a column that the kernel lacks is 0', () => {
  assert.equal(conntrackStatistic(text, 'chaintoolong'), 0);
});
