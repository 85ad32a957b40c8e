import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Problem } from '../../server/base/problem.ts';
import { parseResourceName } from './resource-name.ts';

describe("object names in kubectl's syntax", () => {
  const cases: [given: string, kind: string, name: string, namespace: string | null][] = [
    ['pod/web-0', 'Pod', 'web-0', null],
    ['po/web-0', 'Pod', 'web-0', null],
    ['pods/web-0', 'Pod', 'web-0', null],
    ['web-0', 'Pod', 'web-0', null],
    ['deploy/web', 'Deployment', 'web', null],
    ['Deployment/web', 'Deployment', 'web', null],
    ['deployment.apps/web', 'Deployment', 'web', null],
    ['deployments.v1.apps/web', 'Deployment', 'web', null],
    ['sts/db', 'StatefulSet', 'db', null],
    ['daemonset.apps/agent', 'DaemonSet', 'agent', null],
    ['rs/web-7d4b9c', 'ReplicaSet', 'web-7d4b9c', null],
    ['rc/old', 'ReplicationController', 'old', null],
    ['job.batch/once', 'Job', 'once', null],
    ['cj/nightly', 'CronJob', 'nightly', null],
    ['svc/web', 'Service', 'web', null],
    ['service/web', 'Service', 'web', null],
    ['deploy/shop/web', 'Deployment', 'web', 'shop'],
    ['pod/web.example', 'Pod', 'web.example', null],
  ];
  for (const [given, kind, name, namespace] of cases) {
    test(given, () => {
      const found = parseResourceName(given);
      assert.deepEqual([found.of.kind, found.name, found.namespace], [kind, name, namespace]);
    });
  }

  for (const [given, text] of [
    ['deplyo/web', /Did you mean deploy\/web\?/],
    ['deployment.batch/web', /is not a pod/],
    ['configmap/web', /is not a pod/],
    ['deploy/', /is not a pod/],
    ['deploy/Web', /is not a pod/],
    ['a/b/c/d', /is not a pod/],
    ['', /is not a pod/],
  ] as const) {
    test(`"${given}" is rejected`, () => {
      assert.throws(
        () => parseResourceName(given),
        (error: unknown) =>
          error instanceof Problem && error.code === 'usage' && text.test(error.print()),
      );
    });
  }
});
