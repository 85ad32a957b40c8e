/** Tests node caches that must not start. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { freePorts } from '../../../../test/kit/free-ports.ts';

const program = [
  ...process.execArgv.filter((word) => !word.startsWith('--test')),
  'src/faces/cli/main.ts',
];
const cluster = { KUBE_DNS_SERVICE_HOST: '127.0.0.1' };

interface Refusal {
  readonly code: number | null;
  readonly said: string;
  /** The Corefile afterwards. */
  readonly written: string | null;
}

/**
 * Starts a node cache that is expected to fail.
 * @param before the existing Corefile
 */
async function refusal(
  t: TestContext,
  flag: '-from-corefile' | '-basecorefile',
  text: string | null,
  env: NodeJS.ProcessEnv = cluster,
  before: string | null = null,
): Promise<Refusal> {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-node-cache-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const [base, out] = [join(directory, 'base'), join(directory, 'out')];
  if (text !== null) writeFileSync(base, text);
  if (before !== null) writeFileSync(out, before);
  const [port] = await freePorts(1);
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [
      ...[...program, 'node-cache', '-localip', '127.0.0.53', '-dns.port', String(port)],
      ...['-setupinterface=false', '-setupiptables=false', '-takeover', 'none'],
      ...['-metrics-listen-address', '127.0.0.1:0', flag, base, '-conf', out],
    ],
    { encoding: 'utf8', env: { ...process.env, ...env }, timeout: 10_000 },
  );
  const written = existsSync(out) ? readFileSync(out, 'utf8') : null;
  return { code: status, said: (stdout + stderr).replaceAll(directory, ''), written };
}

describe('a node cache', () => {
  test('without a block for the cluster DNS reports that, and does not serve', async (t) => {
    for (const before of [null, '', '# empty\n']) {
      const text = 'tls://.:853 {\n    forward . 192.0.2.1\n}\n';
      const { code, said, written } = await refusal(t, '-from-corefile', text, cluster, before);
      assert.equal(code, 1, said);
      assert.match(
        said,
        /^Failed to make \/out of \/base: none of its server blocks serves plain DNS \[no-cluster-block\]\n/,
      );
      assert.equal(written, before);
    }
  });

  test('with an empty template does not serve', async (t) => {
    for (const text of ['', '# nothing\n']) {
      const { code, said } = await refusal(t, '-basecorefile', text);
      assert.equal(code, 1, said);
      assert.match(
        said,
        /^Failed to make \/out of \/base: it holds no server block \[nothing-to-serve\]\n/,
      );
    }
  });

  test('whose Corefile is empty, without a template, does not serve', async (t) => {
    for (const before of ['', '# nothing\n']) {
      const { code, said } = await refusal(t, '-basecorefile', null, cluster, before);
      assert.equal(code, 1, said);
      assert.match(said, /^The Corefile \/out contains no server block \[nothing-to-serve\]$/m);
    }
  });

  test('without a known cluster DNS address reports that once', async (t) => {
    for (const env of [{ KUBE_DNS_SERVICE_HOST: undefined }, { KUBE_DNS_SERVICE_HOST: '' }])
      for (const [flag, text] of [
        ['-from-corefile', '.:53 {\n    kubernetes cluster.local\n}\n'],
        ['-basecorefile', 'a.test {\n    forward . __PILLAR__CLUSTER__DNS__\n}\n'],
      ] as const) {
        const { code, said, written } = await refusal(t, flag, text, env);
        assert.equal(code, 1, said);
        assert.match(said, /^Failed to make \/out of \/base: the cluster DNS address is unknown/);
        assert.match(said, /KUBE_DNS_SERVICE_HOST/);
        assert.doesNotMatch(said, /nil|WARNING/);
        assert.equal(written, null);
      }
  });
});
