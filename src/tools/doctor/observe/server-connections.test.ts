import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServerConnections } from './server-connections.ts';

test('connections that are tried again after the last DNS message of a capture are silent', () => {
  const connections = new ServerConnections();
  const tried = (ports: string, times: readonly number[]): void => {
    for (const ms of times) connections.opening('10.42.3.31', '10.96.0.10', ports, ms);
  };
  tried('53114 53', [1500, 2500, 3500, 5500, 9500]);
  tried('53158 53', [3000, 4000, 5000, 7000, 11_000]);
  // This one may still be answered.
  tried('53200 53', [10_500]);
  const [pair] = connections.at(3100);
  assert.deepEqual([pair?.opened, pair?.silent], [3, 2]);
});
