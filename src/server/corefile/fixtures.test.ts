import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { describe, test } from 'node:test';

import { directory, readFixture } from '../../../test/corefiles/read.ts';
import { printCorefile } from './print.ts';

const fixtures = readdirSync(directory).filter((name) => name.endsWith('.corefile'));
const names = (file: string): string[][] =>
  readFixture(file, ['proxy']).corefile.blocks.map(({ directives }) =>
    directives.map(({ name }) => name),
  );

describe('Corefiles of real clusters', () => {
  for (const file of fixtures.filter((name) => name !== 'story-datadog-3.corefile')) {
    test(`${file} is parsed without a problem`, () => {
      const { problems, corefile } = readFixture(file, ['proxy']);
      assert.deepEqual(
        problems.map(({ message }) => message),
        [],
      );
      assert.ok(corefile.blocks.length > 0);
      assert.match(printCorefile(corefile), /^\S+ \{\n/);
    });
  }

  test('kubeadm: one block for the root with ten directives', () => {
    const { corefile } = readFixture('kubeadm.corefile');
    const [block] = corefile.blocks;
    assert.equal(corefile.blocks.length, 1);
    assert.deepEqual(
      block!.keys.map(({ zone, port, scheme }) => [scheme, zone, port]),
      [['dns', '.', 53]],
    );
    assert.equal(block!.directives.length, 10);
    const kubernetes = block!.directives.find(({ name }) => name === 'kubernetes')!;
    assert.deepEqual(
      kubernetes.args.map(({ text }) => text),
      ['cluster.local', 'in-addr.arpa', 'ip6.arpa'],
    );
    assert.deepEqual(
      kubernetes.block!.map(({ name, args }) => [name.text, ...args.map(({ text }) => text)]),
      [
        ['pods', 'insecure'],
        ['fallthrough', 'in-addr.arpa', 'ip6.arpa'],
        ['ttl', '30'],
      ],
    );
  });

  test('k3s: *.override without a file is only a warning, *.server adds a block', () => {
    const { corefile, warnings } = readFixture('k3s.corefile');
    assert.deepEqual(
      warnings.map(({ message }) => message),
      ['No files matching import glob pattern: k3s-custom/*.override'],
    );
    assert.deepEqual(
      corefile.blocks.map(({ keys }) => keys[0]!.zone),
      ['.', 'home.example.'],
    );
    assert.equal(corefile.files.length, 2);
    assert.equal(corefile.blocks[1]!.place.line, 2);
    assert.match(corefile.blocks[1]!.place.file, /k3s-custom\/home\.server$/);
  });

  test('AKS: an override is a directive in the block that imports it', () => {
    assert.deepEqual(names('aks.corefile')[0]!.at(-3), 'log');
    assert.deepEqual(names('aks.corefile')[1]!.includes('rewrite'), true);
  });

  test('node-local: a } indented like the directives closes the block', () => {
    assert.deepEqual(
      readFixture('node-local-dns.corefile').corefile.blocks.map(({ keys }) => keys[0]!.text),
      ['cluster.local:53', 'in-addr.arpa:53', 'ip6.arpa:53', '.:53'],
    );
  });

  test('the incident with force_tcp as a directive: it is unknown', () => {
    const { problems, corefile } = readFixture('story-datadog-3.corefile', ['proxy']);
    assert.equal(problems.length, 1);
    assert.match(
      problems[0]!.message,
      /story-datadog-3\.corefile:8 - Error during parsing: Unknown directive 'force_tcp'$/,
    );
    assert.deepEqual(
      corefile.blocks[1]!.directives.map(({ name }) => name),
      ['proxy', 'cache'],
    );
  });
});
