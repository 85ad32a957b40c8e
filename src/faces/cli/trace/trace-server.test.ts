import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { runTrace, traceJson } from '../../../../test/kit/trace-command.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-server-'));
after(() => rmSync(directory, { recursive: true, force: true }));

function written(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

const examples = new URL('../../../../examples/', import.meta.url).pathname;
const cluster = join(examples, 'cluster');
const pod = ['--resolv-conf', join(examples, 'pod/resolv.conf')];
const internet = ['--answers', join(examples, 'pod/internet.yaml')];

const service = (name: string, address: string): string =>
  `apiVersion: v1\nkind: Service\nmetadata: {name: ${name}, namespace: shop}\nspec: {clusterIP: ${address}, ports: [{port: 80}]}\n`;

describe('trace --manifests: the cluster of the manifests answers', () => {
  const from = ['--manifests', cluster, ...pod];

  test('a service has the address in its manifest, and nothing is sent', async () => {
    const { result, totals, live } = await traceJson(['backend.critical-app', ...from]);
    assert.deepEqual(result.addresses, ['10.3.0.116']);
    assert.equal(totals.queries, 4);
    assert.equal(live, false);
  });

  test('a headless service has the addresses of its pods', async () => {
    const { result } = await traceJson(['db-0.db.shop', ...from]);
    assert.equal(result.addresses.length, 1);
  });

  test('the pod may be one in the manifests, and then queries in its own namespace', async () => {
    const words = ['--manifests', cluster, '--from', 'deploy/web'];
    const { result, from: whose } = await traceJson(['web', ...words]);
    assert.match(whose ?? '', /Deployment shop\/web/);
    assert.deepEqual(result.addresses.toSorted(), ['10.3.0.80', 'fd00:10:3::80']);
  });

  test('external names are answered by the answers file, or with NXDOMAIN without one', async () => {
    const twilio = await traceJson(['api.twilio.com', ...from, ...internet]);
    assert.deepEqual(twilio.result.addresses, ['192.0.2.10', '192.0.2.11']);
    assert.equal((await traceJson(['api.twilio.com', ...from])).result.code, 'EAI_NONAME');
  });

  test('a single file works, and the given cluster domain is used', async () => {
    const file = written('one.yaml', service('web', '10.3.0.9'));
    const words = ['--manifests', file, '--cluster-domain', 'corp.example', ...pod];
    const { result } = await traceJson(['web.shop.svc.corp.example.', ...words]);
    assert.deepEqual(result.addresses, ['10.3.0.9']);
  });

  test('waits for manifests that take more than a turn to read', async () => {
    const all = Array.from({ length: 2000 }, (_, i) =>
      service(`s-${i}`, `10.3.${i >> 8}.${i & 255}`),
    );
    const file = written('many.yaml', all.join('---\n'));
    const { result } = await traceJson(['s-1999.shop', '--manifests', file, ...pod]);
    assert.deepEqual(result.addresses, ['10.3.7.207']);
  });

  test('reports an error in a manifest once', async () => {
    const file = written(
      'odd.yaml',
      `${service('web', '10.3.0.9')}---\napiVersion: v1\nkind: Srevice\nmetadata: {name: web}\n`,
    );
    const { out, err } = await runTrace(['web.shop', '--manifests', file, ...pod]);
    assert.match(out, /10\.3\.0\.9/);
    assert.equal(err.match(/Srevice/g)?.length, 1, err);
  });

  test('without --from and --resolv-conf the client is a pod of the namespace, with a note', async () => {
    const words = ['backend.critical-app', '--manifests', cluster];
    const { result, conf, from: whose } = await traceJson(words);
    assert.deepEqual(result.addresses, ['10.3.0.116']);
    assert.equal(conf.search[0], 'default.svc.cluster.local');
    assert.match(whose ?? '', /^any pod in namespace default, /);
    const { err } = await runTrace(words);
    assert.match(err, /no --from POD was given, .*any pod in namespace default/);
    const shop = await traceJson(['web', '--manifests', cluster, '-n', 'shop']);
    assert.deepEqual(shop.result.addresses.toSorted(), ['10.3.0.80', 'fd00:10:3::80']);
  });

  test('with --from host the client is this machine', async () => {
    const { conf } = await traceJson(['web', '--manifests', cluster, '--from', 'host']);
    assert.doesNotMatch(conf.search.join(), /default\.svc/);
  });

  test('with --plan every name is NXDOMAIN', async () => {
    const { result } = await traceJson(['backend.critical-app', ...from, '--plan']);
    assert.equal(result.code, 'EAI_NONAME');
  });

  test('reports a missing directory, exit code 2', async () => {
    const { code, err } = await runTrace(['web', '--manifests', '/nowhere', ...pod]);
    assert.equal(code, 2);
    assert.match(err, /\/nowhere/);
  });
});

describe('trace --corefile: a server with this Corefile answers', () => {
  test('autopath avoids the search path queries', async () => {
    const corefile = written(
      'autopath.corefile',
      `.:53 {\n autopath @name\n kubernetes cluster.local {\n manifests ${cluster}\n }\n forward . 192.0.2.53\n}\n`,
    );
    const { totals, result } = await traceJson([
      'api.twilio.com',
      '--corefile',
      corefile,
      ...pod,
      ...internet,
    ]);
    assert.equal(totals.queries, 2);
    assert.ok(result.ok);
  });

  test('reports a Corefile that cannot be served with its place, exit code 2', async () => {
    const corefile = written('bad.corefile', '.:53 {\n forwrad . 192.0.2.53\n}\n');
    const { code, err } = await runTrace(['web', '--corefile', corefile, ...pod]);
    assert.equal(code, 2);
    assert.match(err, /bad\.corefile:2[^]*forwrad/);
  });

  test('with --manifests its objects replace those of any cluster', async () => {
    const corefile = written(
      'plain.corefile',
      '.:53 {\n kubernetes cluster.local\n forward . 192.0.2.53\n}\n',
    );
    const asked = written(
      'asks.corefile',
      '.:53 {\n kubernetes cluster.local {\n endpoint https://192.0.2.1\n }\n}\n',
    );
    for (const file of [corefile, asked]) {
      const words = ['backend.critical-app', '--manifests', cluster, '--corefile', file];
      for (const more of [[], pod, ['--from', 'deploy/web']]) {
        const { result } = await traceJson([...words, ...more]);
        assert.deepEqual(result.addresses, ['10.3.0.116'], `${file} ${more.join(' ')}`);
      }
    }
  });

  test('prints its warnings, also for a pod of manifests', async () => {
    const corefile = written('odd.corefile', '.:53 {\n cache {\n success 0\n }\n whoami\n}\n');
    const words = ['web', '--corefile', corefile, '--manifests', cluster, '--from', 'deploy/web'];
    const { err } = await runTrace(words);
    assert.equal(err.match(/success 0 is raised/g)?.length, 1, err);
  });

  test('prints its warnings', async () => {
    const corefile = written('odd.corefile', '.:53 {\n cache {\n success 0\n }\n whoami\n}\n');
    const { err } = await runTrace(['web', '--corefile', corefile, ...pod]);
    assert.equal(err.match(/success 0 is raised/g)?.length, 1, err);
  });
});
