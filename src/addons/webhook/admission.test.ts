import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '../../server/base/json-object.ts';
import { BadReview, readReview, reviewPod, type Mode } from './admission.ts';
import { annotations, type AdviceSources } from './dns-advice.ts';

const nobody: AdviceSources = {
  namespace: {},
  namespaceName: 'shop',
  measured: new Map(),
  ndots: null,
};

const pod = (
  said: Record<string, string> = {},
  spec: object = {},
  metadata: object = {},
): JsonObject => ({
  kind: 'Pod',
  metadata: { name: 'web-1', annotations: said, ...metadata },
  spec: { dnsPolicy: 'ClusterFirst', containers: [{ name: 'a' }], ...spec },
});

interface Answer {
  readonly allowed: boolean;
  readonly warnings?: readonly string[];
  readonly patch?: string;
}

/** Applies the patch to the pod, supporting only as much of RFC 6902's `add` as is needed. */
function admitted(
  object: JsonObject,
  sources: Partial<AdviceSources> = {},
  mode: Mode = 'enforce',
) {
  const review = { uid: 'u', namespace: 'shop', pod: object };
  const { body } = reviewPod(review, { ...nobody, ...sources }, mode);
  const { response } = JSON.parse(body) as { response: Answer };
  const after = structuredClone(object) as Record<string, never>;
  const steps = JSON.parse(Buffer.from(response.patch ?? 'W10=', 'base64').toString()) as {
    path: string;
    value: unknown;
  }[];
  for (const { path, value } of steps) {
    const keys = path
      .slice(1)
      .split('/')
      .map((key) => key.replaceAll('~1', '/'));
    const last = keys.pop()!;
    const at = keys.reduce<Record<string, never>>((inner, key) => inner[key]!, after) as Record<
      string,
      unknown
    >;
    if (Array.isArray(at)) at.push(value);
    else at[last] = value;
  }
  return {
    response,
    after: after as unknown as {
      spec: { dnsConfig?: object };
      metadata: { annotations?: Record<string, string> };
    },
  };
}

const configOf = (...args: Parameters<typeof admitted>): unknown =>
  admitted(...args).after.spec.dnsConfig;

describe('a pod gets', () => {
  test('the configuration in its annotations', () => {
    const said = {
      [annotations.ndots]: '2',
      [annotations.options]: 'timeout:1, single-request-reopen',
    };
    const { after } = admitted(pod(said));
    assert.deepEqual(after.spec.dnsConfig, {
      options: [
        { name: 'timeout', value: '1' },
        { name: 'single-request-reopen' },
        { name: 'ndots', value: '2' },
      ],
    });
    assert.equal(
      after.metadata.annotations?.[annotations.advice],
      'set timeout:1,single-request-reopen,ndots:2 (annotation)',
    );
  });

  test('otherwise that of its namespace, that measured for its workload, or the default', () => {
    const owned = pod(
      {},
      {},
      {
        labels: { 'pod-template-hash': '5d4f' },
        ownerReferences: [{ kind: 'ReplicaSet', name: 'web-5d4f', controller: true }],
      },
    );
    const measured = new Map([['shop/web', 3]]);
    const all = { namespace: { [annotations.ndots]: '2' }, measured, ndots: 4 };
    const ndots = (value: string): object => ({ options: [{ name: 'ndots', value }] });
    assert.deepEqual(configOf(owned, all), ndots('2'));
    assert.deepEqual(configOf(owned, { measured, ndots: 4 }), ndots('3'));
    assert.deepEqual(configOf(owned, { ndots: 4 }), ndots('4'));
    assert.equal(configOf(owned), undefined);
    assert.deepEqual(configOf(pod({ [annotations.ndots]: '1' }), all), ndots('1'));
  });

  test('no option that its own dnsConfig already has, and keeps the others', () => {
    const own = { dnsConfig: { searches: ['a.test'], options: [{ name: 'ndots', value: '7' }] } };
    const said = { [annotations.ndots]: '2', [annotations.options]: 'use-vc' };
    assert.deepEqual(configOf(pod(said, own)), {
      searches: ['a.test'],
      options: [{ name: 'ndots', value: '7' }, { name: 'use-vc' }],
    });
    assert.equal(admitted(pod({ [annotations.ndots]: '2' }, own)).response.patch, undefined);
  });

  for (const [what, object, sources] of [
    ['its dnsPolicy is Default', pod({}, { dnsPolicy: 'Default' }), {}],
    ['its dnsPolicy is None', pod({}, { dnsPolicy: 'None' }), {}],
    ['it is on the network of its host', pod({}, { hostNetwork: true }), {}],
    ['it says off', pod({ [annotations.dns]: 'off' }), {}],
    ['its namespace says off', pod(), { namespace: { [annotations.dns]: 'off' } }],
  ] as const)
    test(`nothing where ${what}`, () =>
      assert.equal(admitted(object, { ndots: 2, ...sources }).response.patch, undefined));

  test('only the annotation in advise mode', () => {
    const { after } = admitted(pod(), { ndots: 2 }, 'advise');
    assert.equal(after.spec.dnsConfig, undefined);
    assert.equal(after.metadata.annotations?.[annotations.advice], 'would set ndots:2 (default)');
  });

  for (const said of [
    { [annotations.ndots]: '16' },
    { [annotations.ndots]: '-1' },
    { [annotations.ndots]: 'two' },
    { [annotations.options]: 'a b\nnameserver 6.6.6.6' },
  ])
    test(`a warning, and is let in, with ${JSON.stringify(said)}`, () => {
      const { response } = admitted(pod(said), { ndots: 2 });
      assert.equal(response.allowed, true);
      assert.match(response.warnings![0]!, /^ndots: ndots\.dev\/dns-/);
      assert.equal(response.patch, undefined);
    });
});

test('any pod is admitted, and a second review changes nothing more', () => {
  const json = fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 3 }), { maxKeys: 4 });
  const any = fc.record(
    {
      metadata: fc.oneof(
        fc.jsonValue(),
        fc.record({ annotations: fc.oneof(json, fc.constant({ [annotations.ndots]: '2' })) }),
      ),
      spec: fc.oneof(
        fc.jsonValue(),
        fc.record({
          dnsConfig: fc.oneof(
            json,
            fc.record({ options: fc.array(fc.jsonValue({ maxDepth: 1 })) }),
          ),
        }),
      ),
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(any, fc.constantFrom<Mode>('advise', 'enforce'), (object, mode) => {
      const { body } = reviewPod(
        { uid: 'u', namespace: 'shop', pod: object as JsonObject },
        { ...nobody, ndots: 2 },
        mode,
      );
      assert.equal((JSON.parse(body) as { response: Answer }).response.allowed, true);
    }),
  );
  const once = admitted(pod({ [annotations.ndots]: '2' })).after;
  assert.equal(admitted(once as unknown as JsonObject).response.patch, undefined);
});

test('anything other than a review is rejected', () => {
  for (const text of [
    '',
    '{',
    '[]',
    '{}',
    '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1"}',
    '{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{}}',
  ])
    assert.throws(() => readReview(text), BadReview, text);
});
