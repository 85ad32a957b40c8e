import assert from 'node:assert/strict';
import { test } from 'node:test';
import { children, child, text } from '../../../server/base/json-object.ts';
import type { ApiClient } from '../../../server/kube/api/client.ts';
import { readManifests } from '../../../server/kube/manifests/manifest-file.ts';
import { apiObjects, manifestsState } from './cluster-state.ts';

test('a derived endpoint has the name of its pod, and its host name below a headless service', () => {
  const { manifests } = readManifests(
    `
apiVersion: v1
kind: Service
metadata: { name: db, namespace: default }
spec: { clusterIP: None, selector: { app: db }, ports: [{ port: 5432 }] }
---
apiVersion: v1
kind: Pod
metadata: { name: db-0, namespace: default, labels: { app: db } }
spec: { hostname: first, subdomain: db, containers: [] }
---
apiVersion: v1
kind: Pod
metadata: { name: other, namespace: default, labels: { app: db } }
spec: { containers: [] }
`,
    'objects.yaml',
  );
  const { slices } = manifestsState(manifests, (problem) => assert.fail(problem.print()));
  const endpoints = slices.flatMap((slice) => children(slice, 'endpoints'));
  assert.deepEqual(
    endpoints
      .map((one) => [text(child(one, 'targetRef'), 'name'), one['hostname']])
      .toSorted(([a], [b]) => String(a).localeCompare(String(b))),
    [
      ['db-0', 'first'],
      ['other', undefined],
    ],
  );
});

test('a malformed list is reported, and no rules are made from part of a cluster', async () => {
  let pages = 0;
  const client: ApiClient = {
    host: 'api.test',
    async stream({ query, into }) {
      pages++;
      const items = Array.from({ length: Number(query?.['limit']) }, () => ({}));
      into.push(Buffer.from(JSON.stringify({ metadata: { continue: 'more' }, items })));
    },
    close: () => undefined,
  };
  await assert.rejects(
    apiObjects(client, new AbortController().signal),
    /"list services" has more than 200000 objects/,
  );
  assert.equal(pages, 400);
});
