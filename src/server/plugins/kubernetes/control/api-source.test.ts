import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { systemClock } from '../../../base/clock.ts';
import { makeLog } from '../../../base/log.ts';
import { seededRandom } from '../../../base/random.ts';
import { ownVersion } from '../../../engine/contract/own-version.ts';
import { SharedRegistry } from '../../../metrics/shared-registry.ts';
import { everything } from '../../../../../test/kit/apiserver/rig.ts';
import { apiSource } from './api-source.ts';

test("requests name the server's version", async (t) => {
  const api = createServer();
  t.after(() => api.close());
  api.listen(0, '127.0.0.1');
  await once(api, 'listening');
  const asked = once(api, 'request') as Promise<[IncomingMessage]>;
  const source = apiSource(
    {
      manifests: null,
      manifestMemory: 0,
      apiserverMemory: null,
      endpoint: `http://127.0.0.1:${(api.address() as AddressInfo).port}`,
      tls: null,
      kubeconfig: null,
      snapshot: null,
      limits: { perSecond: 0, burst: 0, inFlight: 0 },
      wanted: everything,
      podNames: false,
      clientNames: false,
      outside: false,
    },
    {
      clock: systemClock,
      random: seededRandom(1),
      log: makeLog(() => undefined),
      metrics: new SharedRegistry(() => undefined),
      env: {},
    },
  );
  source.start({ changes: () => undefined, synced: () => undefined });
  const [{ headers }] = await asked;
  await source.stop();
  const agent = headers['user-agent'] ?? '';
  assert.ok(agent.includes(`ndots/${ownVersion()} (`), agent);
});
