import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { describe, test, type TestContext } from 'node:test';
import { Authority, type PemIdentity } from './certificates.ts';
import { makeLog } from '../../server/base/log.ts';
import { VirtualClock } from '../../server/base/virtual-clock.ts';
import type { ApiClient, ApiRequest } from '../../server/kube/api/client.ts';
import { statusFailure } from '../../server/kube/api/failure.ts';
import { ServingCertificate } from './serving-certificate.ts';

const DAY = 24 * 3600_000;
const host = 'hook.kube-system.svc';
const secretPath = '/api/v1/namespaces/kube-system/secrets/hook';
const configurationPath =
  '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/hook';

type Stored = Record<string, unknown> & {
  data?: Record<string, string>;
  webhooks?: { clientConfig: { caBundle?: string } }[];
};

/** An API server that stores these objects. `refuse` makes it reject the next changes to a path with a given status. */
class Objects implements ApiClient {
  readonly host = 'api';
  readonly of = new Map<string, Stored>();
  readonly refuse = new Map<string, number>();

  stream({ path, change, into, task }: ApiRequest): Promise<void> {
    const fail = (status: number): Promise<never> =>
      Promise.reject(statusFailure({ status, body: null, task, retryAfterMs: null }));
    const status = this.refuse.get(path);
    if (change !== undefined && status !== undefined) {
      this.refuse.delete(path);
      return fail(status);
    }
    if (change !== undefined) {
      const object = JSON.parse(change.body) as Stored;
      this.of.set(change.method === 'POST' ? secretPath : path, object);
    }
    const found = this.of.get(change?.method === 'POST' ? secretPath : path);
    if (found === undefined) return fail(404);
    into.push(Buffer.from(JSON.stringify(found)));
    return Promise.resolve();
  }

  close(): void {}
}

const pem = (objects: Objects, key: string): string =>
  Buffer.from(objects.of.get(secretPath)?.data?.[key] ?? '', 'base64').toString();

interface World {
  readonly clock: VirtualClock;
  readonly objects: Objects;
  readonly lines: string[];
  /** Certificates that were in use, newest last. */
  readonly identities: PemIdentity[];
}

/** A replica that manages its own certificate or, with `objects`, shares a Secret with another replica. */
function replica(
  t: TestContext,
  clock = new VirtualClock(Date.UTC(2026, 0, 1)),
  objects = new Objects(),
): World {
  const lines: string[] = [];
  const identities: PemIdentity[] = [];
  if (!objects.of.has(configurationPath)) {
    const service = { name: 'hook', namespace: 'kube-system' };
    objects.of.set(configurationPath, {
      metadata: { name: 'hook', uid: 'uid-of-hook' },
      webhooks: [
        { clientConfig: { service } as { caBundle?: string } },
        { clientConfig: { caBundle: 'of somebody else' } },
      ],
    });
  }
  const stop = new AbortController();
  const names = {
    namespace: 'kube-system',
    secret: 'hook',
    service: 'hook',
    configuration: 'hook',
  };
  const kept = new ServingCertificate({
    ...names,
    client: objects,
    clock,
    log: makeLog((line) => lines.push(line)),
    onIdentity: (identity) => identities.push(identity),
  }).run(stop.signal);
  t.after(async () => {
    stop.abort();
    await kept;
  });
  return { clock, objects, lines, identities };
}

const bundle = (objects: Objects): string =>
  Buffer.from(
    objects.of.get(configurationPath)!.webhooks![0]!.clientConfig.caBundle ?? '',
    'base64',
  ).toString();

describe('the certificate of the webhook', () => {
  test('is created for 90 days by a CA that the API server receives, and other webhooks stay unchanged', async (t) => {
    const { clock, objects, identities } = replica(t);
    await clock.advance(100);
    const certificate = new X509Certificate(identities.at(-1)!.cert);
    assert.equal(certificate.checkHost(host), host);
    assert.equal(Math.round((certificate.validToDate.getTime() - clock.wall()) / DAY), 90);
    assert.ok(certificate.verify(new X509Certificate(bundle(objects)).publicKey));
    assert.equal(
      objects.of.get(configurationPath)!.webhooks![1]!.clientConfig.caBundle,
      'of somebody else',
    );
  });

  test('is stored even without a configuration that calls the webhook, which is logged once', async (t) => {
    const { clock, objects, lines, identities } = replica(t);
    objects.of.delete(configurationPath);
    await clock.advance(2 * DAY);
    assert.equal(identities.length, 1);
    assert.equal(
      lines.filter((line) => line.includes('the API server does not call this webhook yet')).length,
      1,
    );
  });

  test('is owned by the configuration, so that both are deleted together, unless others created the Secret', async (t) => {
    const { clock, objects } = replica(t);
    const ownersOf = ({ of }: Objects): unknown =>
      ((of.get(secretPath)?.['metadata'] ?? {}) as { ownerReferences?: unknown }).ownerReferences;
    await clock.advance(1000);
    const [apiVersion, kind] = ['admissionregistration.k8s.io/v1', 'MutatingWebhookConfiguration'];
    assert.deepEqual(ownersOf(objects), [{ apiVersion, kind, name: 'hook', uid: 'uid-of-hook' }]);
    const given = new Objects();
    given.of.set(secretPath, {
      ...objects.of.get(secretPath)!,
      metadata: { name: 'hook', labels: { 'app.kubernetes.io/managed-by': 'team' } },
    });
    await replica(t, clock, given).clock.advance(61_000);
    assert.equal(ownersOf(given), undefined);
  });

  test('is renewed 30 days before it expires, by the same CA, which stays trusted', async (t) => {
    const begin = Date.UTC(2026, 0, 1);
    const { clock, objects } = replica(t, new VirtualClock(begin));
    await clock.advance(100);
    const authority = bundle(objects);
    const first = pem(objects, 'tls.crt');
    for (const days of [59, 61]) {
      const later = replica(t, new VirtualClock(begin + days * DAY), objects);
      await later.clock.advance(100);
      assert.equal(later.identities.at(-1)!.cert === first, days === 59);
      assert.equal(bundle(objects), authority);
    }
    const certificate = new X509Certificate(pem(objects, 'tls.crt'));
    assert.ok(certificate.validToDate.getTime() > begin + 150 * DAY);
  });

  test('two replicas without a certificate create one, and both serve it', async (t) => {
    const first = replica(t);
    const second = replica(t, first.clock, first.objects);
    await first.clock.advance(120_000);
    assert.equal(first.identities.at(-1)!.cert, second.identities.at(-1)!.cert);
    assert.equal(first.identities.at(-1)!.cert, pem(first.objects, 'tls.crt'));
  });

  test('that another replica creates at the same time is used within a second, not overwritten', async (t) => {
    const objects = new Objects();
    objects.refuse.set('/api/v1/namespaces/kube-system/secrets', 409);
    const { clock, identities } = replica(t, new VirtualClock(Date.UTC(2026, 0, 1)), objects);
    await clock.advance(100);
    assert.equal(identities.length, 0);
    const other = replica(t, clock, objects);
    await clock.advance(1000);
    assert.equal(identities.at(-1)?.cert, other.identities[0]!.cert);
  });

  for (const [what, broken] of [
    ['that is no certificate', { 'tls.crt': 'eA==', 'tls.key': 'eA==' }],
    ['without a key', { 'tls.key': '' }],
    ['whose authority is gone', { 'ca.crt': '' }],
  ] as const)
    test(`${what} is recreated within a minute`, async (t) => {
      const { clock, objects, identities } = replica(t);
      await clock.advance(100);
      Object.assign(objects.of.get(secretPath)!.data!, broken);
      await clock.advance(61_000);
      const certificate = new X509Certificate(pem(objects, 'tls.crt'));
      assert.equal(identities.at(-1)!.cert, certificate.toString());
      assert.ok(certificate.verify(new X509Certificate(bundle(objects)).publicKey));
    });

  test('that expired while no replica ran is recreated, with its CA', async (t) => {
    const clock = new VirtualClock(Date.UTC(2026, 0, 1));
    const { objects } = replica(t, clock);
    const old = Authority.make('old', 10 * DAY, clock.wall() - 20 * DAY);
    const server = old.issue(host, [host], new Date(clock.wall() - DAY), clock.wall() - 20 * DAY);
    const encode = (text: string): string => Buffer.from(text).toString('base64');
    await clock.advance(100);
    Object.assign(objects.of.get(secretPath)!.data!, {
      'ca.crt': encode(old.identity.cert),
      'ca.key': encode(old.identity.key),
      'tls.crt': encode(server.cert),
      'tls.key': encode(server.key),
    });
    await clock.advance(61_000);
    assert.notEqual(bundle(objects), old.identity.cert);
    const certificate = new X509Certificate(pem(objects, 'tls.crt'));
    assert.ok(certificate.verify(new X509Certificate(bundle(objects)).publicKey));
    assert.ok(certificate.validToDate.getTime() > clock.wall() + 80 * DAY);
  });

  test('a CA that is removed from the configuration is restored', async (t) => {
    const { clock, objects } = replica(t);
    await clock.advance(100);
    const authority = bundle(objects);
    objects.of.get(configurationPath)!.webhooks![0]!.clientConfig.caBundle = '';
    await clock.advance(61_000);
    assert.equal(bundle(objects), authority);
  });

  test('that cannot be stored is logged once a minute, and retried every five seconds', async (t) => {
    const objects = new Objects();
    const { clock, lines, identities } = replica(
      t,
      new VirtualClock(Date.UTC(2026, 0, 1)),
      objects,
    );
    objects.refuse.set('/api/v1/namespaces/kube-system/secrets', 403);
    await clock.advance(100);
    assert.match(
      lines.join('\n'),
      /must allow create on secrets.*the webhook does not serve requests until then/,
    );
    await clock.advance(5000);
    assert.equal(identities.length, 1);
    assert.match(lines.join('\n'), /works again/);
  });
});
