import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { gather } from '../src/tools/lint/gather.ts';
import { lint, type LintReport } from '../src/tools/lint/lint.ts';
import { rules } from '../src/tools/lint/plugins/lint-rules.ts';
import { directiveNames, external, loadPlugins } from '../src/server/plugins/order.ts';
import { helmTemplate, noHelm } from './kit/helm.ts';
import { lintTexts } from './kit/lint-text.ts';

const printed = ({ findings }: LintReport): readonly string[] =>
  findings.map(({ code, spot, text }) => `${spot.file}:${spot.line} ${code} ${text}`);

const linted = (path: string): Promise<LintReport> =>
  lint({
    given: gather([path]),
    plugins: { directives: directiveNames, external, load: loadPlugins },
    rules,
    target: null,
  });

describe('the linter finds nothing in', () => {
  for (const path of [
    'examples',
    'examples/Corefile',
    'examples/dns64/Corefile',
    'examples/protection/Corefile',
    'examples/skydns/Corefile',
    'examples/zones/Corefile',
    'examples/cluster',
    'examples/plan/cluster.yaml',
    'deploy',
    'deploy/cluster-dns/Corefile',
    'deploy/node-cache/Corefile',
    'deploy/node-cache/node-local-dns.yaml',
    'deploy/kubeadm/ndots.yaml',
    'deploy/check/workload.yaml',
    'deploy/helm/ndots/values.yaml',
    'deploy/monitoring/rules.yaml',
    'deploy/monitoring/dashboard.json',
  ])
    test(path, async () => assert.deepEqual(printed(await linted(path)), []));

  const skip = noHelm();
  for (const [what, values] of Object.entries({
    'its values as they are': {},
    'the node cache': { service: { clusterIP: '10.96.0.10' }, nodeCache: { enabled: true } },
    'a check and the webhook': { check: { enabled: true }, webhook: { enabled: true } },
  }))
    test(`the chart with ${what}`, { skip: skip ?? false }, async () => {
      const report = await lintTexts({
        files: { 'chart.yaml': helmTemplate(values) },
        live: false,
      });
      assert.deepEqual(printed(report), []);
    });
});

test('suppressed findings of the examples have a reason', () => {
  for (const name of ['dns64', 'protection', 'skydns'])
    assert.match(
      readFileSync(`examples/${name}/Corefile`, 'utf8'),
      /# ndots:ignore CF31 because \w+/,
    );
});
