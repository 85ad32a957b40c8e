/** The output of tools/release.ts, which krew installs and kubectl runs. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, mkdirSync, mkdtempSync, openSync } from 'node:fs';
import { readFileSync, readSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { parse } from 'yaml';
import { clusterPrograms, noApiServer } from '../kit/cluster/programs.ts';
import { noGo, pinnedGoProgram } from '../kit/go-program.ts';

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly version: string;
    readonly homepage: string;
    readonly shortDescription: string;
    readonly description: string;
    readonly caveats: string;
    readonly platforms: readonly {
      readonly selector: { readonly matchLabels: { readonly os: string; readonly arch: string } };
      readonly uri: string;
      readonly sha256: string;
      readonly bin: string;
      readonly files: readonly { readonly from: string; readonly to: string }[];
    }[];
  };
}

const url = 'https://dl.example.com/ndots/releases/download/v1';
/** `e_machine` for programs on these CPUs. */
const machines = { amd64: 62, arm64: 183 } as const;

describe('a release', () => {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-release-test-'));
  const out = join(directory, 'out');
  let offline = '';
  let manifest: Manifest;
  after(() => rmSync(directory, { recursive: true }));

  before(() => {
    const words = ['tools/release.ts', '--url', url, '--out', out, 'linux-amd64', 'linux-arm64'];
    const { status, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8' });
    if (/ENOTFOUND|EAI_AGAIN|ENETUNREACH|ECONNREFUSED|ENOTCACHED/.test(stderr))
      offline = 'the registry cannot be reached';
    else assert.equal(status, 0, stderr);
    if (offline === '') manifest = parse(readFileSync(join(out, 'ndots.yaml'), 'utf8')) as Manifest;
  });

  const unpacked = (arch: string): string => {
    const { uri } = manifest.spec.platforms.find(
      ({ selector }) => selector.matchLabels.arch === arch,
    )!;
    const to = join(directory, arch);
    mkdirSync(to, { recursive: true });
    const file = join(out, uri.slice(url.length + 1));
    assert.equal(spawnSync('tar', ['xzf', file, '-C', to]).status, 0);
    return to;
  };

  test('has a manifest that krew accepts', (t) => {
    if (offline !== '') return t.skip(offline);
    // The requirements are defined in sigs.k8s.io/krew/internal/index/validation.
    assert.equal(manifest.apiVersion, 'krew.googlecontainertools.github.com/v1alpha2');
    assert.equal(manifest.kind, 'Plugin');
    assert.match(manifest.metadata.name, /^[a-z][a-z0-9-]*$/);
    const { version, shortDescription, homepage, description, platforms } = manifest.spec;
    assert.match(version, /^v\d+\.\d+\.\d+$/);
    assert.match(homepage, /^https:\/\//);
    assert.match(shortDescription, /^[A-Z].{1,50}[^.\s]$/);
    assert.ok(description.split('\n').every((line) => line.length <= 80));
    assert.deepEqual(
      platforms.map(({ selector }) => selector.matchLabels),
      [
        { os: 'linux', arch: 'amd64' },
        { os: 'linux', arch: 'arm64' },
      ],
    );
    const sums = readFileSync(join(out, 'SHA256SUMS'), 'utf8');
    for (const { uri, sha256, bin, files } of platforms) {
      assert.ok(uri.startsWith(`${url}/`));
      const bytes = readFileSync(join(out, uri.slice(url.length + 1)));
      assert.equal(createHash('sha256').update(bytes).digest('hex'), sha256);
      assert.ok(sums.includes(`${sha256}  ${uri.slice(url.length + 1)}`));
      assert.equal(bin, 'bin/kubectl-ndots');
      assert.deepEqual(files, [{ from: 'ndots/*', to: '.' }]);
    }
  });

  for (const [arch, machine] of Object.entries(machines))
    test(`has the runtime and the foreign functions of ${arch}, licence and manual`, (t) => {
      if (offline !== '') return t.skip(offline);
      const root = join(unpacked(arch), 'ndots');
      for (const file of [
        'node_modules/node/bin/node',
        `node_modules/@koromix/koffi-linux-${arch === 'amd64' ? 'x64' : arch}/linux_${arch === 'amd64' ? 'x64' : arch}/koffi.node`,
      ]) {
        const head = Buffer.alloc(20);
        const descriptor = openSync(join(root, file), 'r');
        readSync(descriptor, head);
        closeSync(descriptor);
        assert.equal(head.readUInt16LE(18), machine, file);
      }
      for (const file of ['LICENSE', 'man/ndots.1', 'docs/problems.md', 'dist/faces/cli/main.js'])
        assert.ok(readFileSync(join(root, file)).length > 0, file);
    });

  test(
    'is installed by krew, called by kubectl without any other runtime, and removed',
    {
      skip:
        noApiServer() ?? noGo() ?? (process.arch === 'x64' ? false : 'installs the program of x64'),
    },
    async (t) => {
      if (offline !== '') return t.skip(offline);
      const links = join(directory, 'links');
      mkdirSync(links);
      symlinkSync(pinnedGoProgram('krew', 'test/kit/krew'), join(links, 'kubectl-krew'));
      const { kubectl } = await clusterPrograms();
      const env = {
        PATH: `${links}:${join(directory, 'krew/bin')}:/usr/bin:/bin`,
        HOME: directory,
        KREW_ROOT: join(directory, 'krew'),
        KREW_NO_UPGRADE_CHECK: '1',
      };
      const run = (...words: string[]): { readonly code: number | null; readonly text: string } => {
        const { status, stdout, stderr } = spawnSync(kubectl, words, { env, encoding: 'utf8' });
        return { code: status, text: stdout + stderr };
      };
      const { uri } = manifest.spec.platforms[0]!;
      const archive = join(out, uri.slice(url.length + 1));
      const installed = run(
        ...['krew', 'install', `--manifest=${join(out, 'ndots.yaml')}`, `--archive=${archive}`],
      );
      assert.equal(installed.code, 0, installed.text);
      assert.match(installed.text, /Installed plugin: ndots[^]*kubectl ndots trace/);

      assert.match(run('ndots', 'version').text, /^ndots-\d[^]*^UDP: batched/m);
      assert.match(run('ndots', '--help').text, /kubectl ndots trace/);
      assert.match(run('ndots', 'lint', '--explain', 'CF01').text, /CF01/);
      const cluster = join(
        directory,
        'krew/store/ndots',
        manifest.spec.version,
        'examples/cluster',
      );
      const traced = run(
        ...['ndots', 'trace', 'db', '--from', 'deploy/web', '--namespace', 'shop'],
        ...['--manifests', cluster],
      );
      assert.match(traced.text, /db\.shop\.svc\.cluster\.local\./);
      assert.equal(traced.code, 0, traced.text);

      // krew does not remove anything until it has an index, which `krew update` fetches from GitHub. An empty index is
      // enough.
      spawnSync('git', ['init', '-q', join(directory, 'krew/index/default')]);
      const removed = run('krew', 'uninstall', 'ndots');
      assert.equal(removed.code, 0, removed.text);
      assert.notEqual(run('ndots', 'version').code, 0);
    },
  );
});
