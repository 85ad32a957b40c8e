import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Reading } from '../../capture/read/reading.ts';
import type { Diagnosis } from '../diagnosis.ts';
import { Observations } from '../observe/observations.ts';
import { SearchDomains } from '../../capture/pair/search-walk.ts';
import { captureHead } from './capture-head.ts';

test('the number of clients is not exact if there are more than are examined individually', () => {
  const observed = new Observations(new SearchDomains());
  observed.total.asked = 20;
  const reading = { totals: { firstMs: 0, lastMs: 60_000 } } as Reading;
  const diagnosis = { findings: [] } as unknown as Diagnosis;
  const head = (): string => captureHead(reading, observed, diagnosis, new Map());
  assert.match(head(), /^0 clients, 0 servers/m);
  observed.clients.leftOut = 7;
  assert.match(head(), /^more than 0 clients, 0 servers/m);
});
