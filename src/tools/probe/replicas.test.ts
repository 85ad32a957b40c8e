import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ApiClient } from '../../server/kube/api/client.ts';
import { statusFailure } from '../../server/kube/api/failure.ts';
import { findServers } from './replicas.ts';

/** An API server that returns these objects by path, and this status for any other path. */
function apiWith(objects: Readonly<Record<string, object>>, status = 404): ApiClient {
  return {
    host: 'api',
    close() {},
    async stream({ path, task, into }) {
      const object = objects[path];
      if (object === undefined)
        throw statusFailure({
          status,
          task,
          retryAfterMs: null,
          body: { reason: 'NotFound', message: 'not found', details: { name: path } },
        });
      into.push(Buffer.from(JSON.stringify(object)));
      await Promise.resolve();
    },
  };
}

const slices = '/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices';
const slice = {
  ports: [{ name: 'dns', port: 53 }],
  endpoints: [{ addresses: ['10.244.0.7'] }],
};
const choice = { namespace: 'kube-system', name: 'kube-dnss', labels: null };
const { signal } = new AbortController();

describe('the servers of a given service', () => {
  test('a missing service is an error, and no other server is queried instead', async () => {
    await assert.rejects(
      findServers(apiWith({ [slices]: { items: [] } }), choice, signal),
      /there is no service kube-system\/kube-dnss/,
    );
  });

  test('endpoints without a service are replicas, although its address is unknown', async () => {
    const api = apiWith({ [slices]: { items: [slice] } });
    const { vip, replicas, missing } = await findServers(api, choice, signal);
    assert.deepEqual([vip, replicas], [[], [{ host: '10.244.0.7', port: 53 }]]);
    assert.match(missing ?? '', /404/);
  });

  test('a service that cannot be read is reported, and its replicas are queried', async () => {
    const api = apiWith({ [slices]: { items: [] } }, 403);
    const { missing } = await findServers(api, choice, signal);
    assert.match(missing ?? '', /403/);
  });
});
