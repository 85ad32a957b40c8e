import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { KubeObject } from '../../../kube/store/objects.ts';
import { tell } from '../../../../../test/fuzz/cluster-answers.ts';
import { answererOf, replicatedCluster } from '../../../../../test/kit/replicated-cluster.ts';
import { external, namespace, pod, service, slice } from '../../../../../test/kit/kube-objects.ts';
import type { KubernetesAnswerer } from './answer.ts';

const names = ['web', 'db'];
const spaces = ['one', 'two'];
const place = fc
  .tuple(fc.constantFrom(...names), fc.constantFrom(...spaces))
  .map(([name, space]) => `${name}.${space}`);
const address = fc.constantFrom('10.0.0.1', '10.0.0.2', '10.0.0.3', 'fd00::1');

/** Objects with few different names and addresses, so that they meet, move and replace one another. */
const object: fc.Arbitrary<KubeObject> = fc.oneof(
  fc.constantFrom(...spaces).map(namespace),
  fc
    .tuple(place, fc.uniqueArray(address, { minLength: 1, maxLength: 2 }))
    .map(([at, ips]) => service(at, ips)),
  place.map((at) => service(at, 'None')),
  place.map((at) => external(at, 'web.one.svc.cluster.local')),
  fc
    .tuple(place, place, fc.array(address, { maxLength: 3 }))
    .map(([at, of, ips]) => ({ ...slice(at, ips), service: of.split('.')[0]! })),
  fc
    .tuple(place, address, fc.constantFrom('Running', 'Failed'), fc.boolean())
    .map(([at, ip, phase, terminating]) => pod(at, ip, { phase, terminating })),
);
const step = fc.record({ object, remove: fc.boolean() });

const questions = [
  ...names.flatMap((name) =>
    spaces.flatMap((space) =>
      ['', '10-0-0-1.', '_http._tcp.'].map(
        (prefix) => `${prefix}${name}.${space}.svc.cluster.local.`,
      ),
    ),
  ),
  ...spaces.map((space) => `${space}.svc.cluster.local.`),
  ...spaces.map((space) => `10-0-0-2.${space}.pod.cluster.local.`),
  '1.0.0.10.in-addr.arpa.',
  '3.0.0.10.in-addr.arpa.',
  '1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa.',
];

function answers(answerer: KubernetesAnswerer): string[] {
  return questions.flatMap((name) =>
    ['A', 'AAAA', 'SRV', 'PTR'].map((type) => `${name} ${type} ${tell(answerer, name, type)}`),
  );
}

test('after any changes, answers equal those of a freshly listed cluster', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const { source, cluster } = replicatedCluster([]);
      const lasting = answererOf(cluster, { pods: 'verified' });
      for (const { object: one, remove } of steps) {
        if (remove) source.remove(one);
        else source.put(one);
        // Done twice, so that replies are cached and then have to be invalidated in time.
        answers(lasting);
        answers(lasting);
      }
      const fresh = replicatedCluster(source.objects);
      assert.deepEqual(answers(lasting), answers(answererOf(fresh.cluster, { pods: 'verified' })));
    }),
    { numRuns: 60 },
  );
});

test('objects that were added and removed leave nothing behind', () => {
  fc.assert(
    fc.property(fc.array(object, { maxLength: 40 }), (objects) => {
      const { source, cluster } = replicatedCluster([]);
      for (const one of objects) source.put(one);
      for (const one of objects) source.remove(one);
      const { namespaces, services, slices } = cluster.sizes;
      assert.deepEqual([namespaces, services, slices, cluster.clients.size], [0, 0, 0, 0]);
    }),
    { numRuns: 100 },
  );
});
