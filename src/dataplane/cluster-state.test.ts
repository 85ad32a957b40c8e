import assert from 'node:assert/strict';
import { test } from 'node:test';
import { children, child, text } from '../kube/api/json-object.ts';
import { readManifests } from '../kube/manifests/manifest.ts';
import { manifestsState } from './cluster-state.ts';

test('an endpoint that is implied names its pod, and its host name below a headless service', () => {
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
