import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { printed, start } from '../kit/child.ts';
import { noImages } from '../kit/image.ts';
import { imageForTests, ended } from '../kit/image-suite.ts';

/** The steps of deploy/Dockerfile, really run, and what comes of them, started as the kubelet starts CoreDNS. */

const corefile = `
.:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        manifests /etc/coredns/objects
    }
    prometheus :9153
    cache 30
}
`;

const { dependencies, optionalDependencies } = JSON.parse(
  readFileSync('package.json', 'utf8'),
) as Record<'dependencies' | 'optionalDependencies', object>;
const needed = Object.keys({ ...dependencies, ...optionalDependencies });

const service = `
apiVersion: v1
kind: Service
metadata: {name: backend, namespace: shop}
spec: {clusterIP: 10.3.0.116, ports: [{port: 80}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
`;

describe('the image', { skip: noImages() ?? false }, () => {
  const built = imageForTests('deploy/Dockerfile', {
    '/etc/coredns/Corefile': corefile,
    '/etc/coredns/objects/shop.yaml': service,
  });

  const run = (words: readonly string[]): ReturnType<typeof ended> => ended(words, 20_000);

  test('holds what is needed to run and nothing to build with, and batched UDP works', (t) => {
    const of = built(t);
    if (of === null) return;
    const { text } = run(of.container(['find /ndots -type f'], ['sh', '-c']));
    const modules = text.matchAll(/^\/ndots\/node_modules\/(@[^/\n]+\/)?([^/\n]+)\//gm);
    const names = new Set([...modules].map(([, scope = '', name]) => `${scope}${name}`));
    for (const name of needed) assert.ok(names.delete(name), name);
    for (const name of names) assert.match(name, /^@koromix\/koffi-linux-/);
    assert.match(text, /^\/ndots\/examples\/Corefile$/m);
    assert.doesNotMatch(text, /^\/ndots\/(src|tools|test)\/|^\/ndots\/dist\/.*\.ts$/m);
    assert.match(run(of.container(['version'])).text, /^ndots-\S+\n.*\nUDP: batched /);
    const heap = ['-p', 'v8.getHeapStatistics().heap_size_limit / 1024 / 1024'];
    assert.equal(Math.round(Number(run(of.container(heap, ['node'])).text)), 198);
  });

  test('ndots and coredns are on PATH, and /coredns is where the manifests of CoreDNS look', (t) => {
    const of = built(t);
    if (of === null) return;
    for (const program of ['ndots', 'coredns', '/coredns']) {
      const { code, text } = run(of.container(['-version'], [program]));
      assert.match(text, /^ndots-\S+\n/, program);
      assert.equal(code, 0, program);
    }
  });

  test('what lint and doctor find is explained from within', (t) => {
    const of = built(t);
    if (of === null) return;
    for (const [verb, code] of [
      ['lint', 'CF01'],
      ['doctor', 'ND3001'],
    ] as const) {
      const { text } = run(of.container([verb, '--explain', code], ['ndots']));
      assert.match(text, new RegExp(code));
      assert.ok(text.length > 300, text);
    }
  });

  for (const [what, command] of [
    ['with the arguments of CoreDNS', null],
    ['with the command and arguments of CoreDNS', ['/coredns']],
  ] as const) {
    test(`${what} it answers on port 53 without root, and SIGTERM ends it`, async (t) => {
      const of = built(t);
      if (of === null) return;
      const words = of.container(['-conf', '/etc/coredns/Corefile'], command);
      const child = start('ndots', words);
      t.after(() => child.stop());
      await printed(child, /^ndots-\d/m, 20_000);
      const asked = ['backend.shop.svc.cluster.local', '+short', '+time=2', '+tries=1'];
      for (const way of ['+notcp', '+tcp']) {
        const { text } = run(of.beside('dig', '@127.0.0.1', ...asked, way));
        assert.equal(text.trim(), '10.3.0.116', child.output());
      }
      for (const [port, path] of [
        [8080, 'health'],
        [8181, 'ready'],
        [9153, 'metrics'],
      ] as const) {
        const script = `process.stdout.write(String((await fetch('http://127.0.0.1:${port}/${path}')).status))`;
        const { text } = run(of.beside(process.execPath, '--input-type=module', '-e', script));
        assert.equal(text, '200', path);
      }
      assert.doesNotMatch(child.output(), /WARNING|ERROR/);
      child.signal('SIGTERM');
      assert.equal(await child.exitCode, 0);
    });
  }
});
