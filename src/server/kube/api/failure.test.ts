import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { statusFailure } from './failure.ts';

const of404 = (body: unknown): string =>
  statusFailure({ status: 404, body, task: 'get services', retryAfterMs: null }).advice;

describe('meanings of a 404 from the API server', () => {
  test('a missing object is not an unserved kind', () => {
    const details = { name: 'kube-dnss', kind: 'services' };
    const message = 'services "kube-dnss" not found';
    assert.equal(of404({ kind: 'Status', reason: 'NotFound', message, details }), '');
  });

  test('a missing path is an unserved kind', () => {
    const message = 'the server could not find the requested resource';
    for (const body of [{ kind: 'Status', reason: 'NotFound', message, details: {} }, null])
      assert.match(of404(body), /does not serve this kind of object/);
  });
});
