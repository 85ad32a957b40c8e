import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import type { JsonObject } from '../../server/base/json-object.ts';
import { Lead } from '../../../test/kit/check-lead.ts';

describe('objects that the API server refuses to change', () => {
  let lead: Lead;
  beforeEach(() => {
    lead = new Lead();
  });
  afterEach(() => lead.end());

  const check = (name: string, spec: object, metadata: object = {}): void =>
    lead.api.put('healthchecks', name, { metadata, spec } as unknown as JsonObject);
  const pod = (name: string, status: object, metadata: object = {}): void =>
    lead.api.put('pods', name, {
      metadata: { labels: { 'kh-run-uuid': `r-${name}`, healthcheck: 'dns' }, ...metadata },
      status,
    } as unknown as JsonObject);

  for (const status of [403, 500])
    test(`40 checks whose states are refused with ${status}: all others run when they are due`, async () => {
      for (let count = 0; count < 40; count++) check(`a-stuck-${count}`, {});
      for (let count = 0; count < 40; count++)
        check(`good-${count}`, { runInterval: '10s', timeout: '5s' });
      lead.api.refuses = /a-stuck/;
      lead.api.refusesWith = status;
      await lead.begin();
      await lead.clock.advance(60_000);
      const made = lead.api.count(/^POST pods/);
      assert.ok(made >= 40 * 5, `${made} pods in a minute, of 40 checks each 10 s`);
      const tried = lead.api.count(/^PATCH healthchecks\/status a-stuck/);
      assert.ok(tried <= 40 * 8, `${tried} changes that are refused`);
    });

  test('a pod that cannot be deleted does not stop the deletion of others', async () => {
    check('dns', { runInterval: '1h' });
    for (let count = 0; count < 5; count++)
      pod(
        `p${count}`,
        { phase: 'Succeeded' },
        { creationTimestamp: `2020-01-0${5 - count}T00:00:00Z` },
      );
    lead.api.refuses = /pods\/p1$/;
    lead.api.refusesWith = 403;
    await lead.begin();
    await lead.clock.advance(31_000);
    assert.deepEqual([...lead.runner.sweeper.deleted], [['completed', 3]]);
  });

  test('a pod that is being deleted is deleted once', async () => {
    check('dns', { runInterval: '1h' });
    for (let count = 0; count < 300; count++)
      pod(
        `p${count}`,
        { phase: 'Running' },
        { creationTimestamp: '2020-01-01T00:00:00Z', deletionTimestamp: '2020-01-01T01:00:00Z' },
      );
    pod('z-old', { phase: 'Running' }, { creationTimestamp: '2020-01-01T00:00:00Z' });
    await lead.begin();
    await lead.clock.advance(31_000);
    assert.equal(lead.api.count(/^DELETE pods/), 1);
  });
});
