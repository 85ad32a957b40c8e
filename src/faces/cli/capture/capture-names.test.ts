import assert from 'node:assert/strict';
import { test } from 'node:test';
import { namingOf } from './capture-names.ts';

test('an unknown address has no name: a log has no server, and dnstap need not have one', () => {
  const name = namingOf(new Map(), null);
  assert.equal(name({ address: '', port: 0 }), '-');
  assert.equal(name({ address: '0.0.0.0', port: 53 }), '-');
  assert.equal(name({ address: '10.96.0.10', port: 53 }), '10.96.0.10:53');
});
