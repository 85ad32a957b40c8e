import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../server/base/random.ts';
import { parseAnswers } from './answers-file.ts';
import { caresReleases } from './c-ares-releases.ts';
import { findClient } from './clients.ts';
import { planLookup, type LookupRun } from './run-lookup.ts';

/** Plans a lookup of api.example.com with four search domains. Every reply takes 20 ms. */
function plan(version: string, answers: object, seed: number): Promise<LookupRun> {
  return planLookup(
    {
      client: findClient(`c-ares@${version}`)!,
      name: 'api.example.com',
      families: [4, 6],
      addrConfig: false,
      settings: {
        resolvConf:
          'nameserver 10.96.0.10\nsearch shop.svc.k8s.lan svc.k8s.lan k8s.lan corp.example\noptions ndots:5\n',
        nsswitch: 'hosts: files dns\n',
        hosts: '',
        hostAliases: null,
        env: {},
        host: { hostname: 'mypod', addresses: ['10.244.0.10', 'fe80::1'], loopback: [4, 6] },
      },
      repeat: 1,
      limitMs: 60_000,
    },
    parseAnswers(answers, 'answers.json'),
    seededRandom(seed),
  );
}

const versions = caresReleases.versions.filter((version) => /^1\.(2[2-9]|3)/.test(version));

test('c-ares from 1.22 on uses one port for a walk, whether it reads the replies of a pair together or one by one', async () => {
  const rules = [
    { name: 'api.example.com.svc.k8s.lan.', answer: 'NODATA' },
    { name: 'api.example.com.', type: 'A', answer: '203.0.113.80' },
    { name: 'api.example.com.', type: 'AAAA', answer: 'NODATA' },
  ];
  assert.ok(versions.length > 20, `${versions.length}`);
  for (const version of versions)
    for (let seed = 1; seed <= 10; seed++) {
      const { trace, results } = await plan(version, { rules }, seed);
      assert.deepEqual(results[0]!.found.addresses, ['203.0.113.80']);
      assert.equal(trace.exchanges.length, 10);
      const ports = new Set(trace.exchanges.map(({ port }) => port));
      assert.equal(ports.size, 1, `c-ares ${version}, seed ${seed}`);
    }
});

test('an error that was read together with an answer is retried from the same port', async () => {
  const domain = 'api.example.com.shop.svc.k8s.lan.';
  for (const failing of ['A', 'AAAA']) {
    const rules = [
      { name: domain, type: failing, answer: ['SERVFAIL', 'NODATA'] },
      { name: domain, answer: 'NODATA' },
      { name: 'api.example.com.', answer: '203.0.113.80' },
    ];
    for (const version of ['1.33.1', '1.34.5', '1.34.7', '1.34.9'])
      for (let seed = 1; seed <= 10; seed++) {
        const { trace } = await plan(version, { rules }, seed);
        const asked = trace.exchanges.filter(({ name }) => name === domain);
        assert.equal(asked.length, 3, `c-ares ${version}, seed ${seed}, ${failing}`);
        const ports = new Set(asked.map(({ port }) => port));
        assert.equal(ports.size, 1, `c-ares ${version}, seed ${seed}, ${failing}`);
      }
  }
});
