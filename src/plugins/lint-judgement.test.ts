import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { lintTexts, type LintTexts } from '../../test/kit/lint-text.ts';

/** The findings as `severity code line`, without notes. */
async function found(texts: LintTexts, notes = false): Promise<readonly string[]> {
  const { findings } = await lintTexts(texts);
  return findings
    .filter(({ severity }) => notes || severity !== 'note')
    .map(({ severity, code, spot }) => `${severity} ${code} ${spot.line}`);
}

const corefile = (...lines: readonly string[]): string =>
  `.:53 {\n${['errors', 'cache 30', 'loop', 'prometheus', ...lines].map((line) => `    ${line}\n`).join('')}}\n`;

describe('defects of CoreDNS are reported where CoreDNS is the target', () => {
  const text = corefile('forward . 10.0.0.2');
  const image = (name: string): string =>
    `apiVersion: v1\nkind: Pod\nmetadata: { name: dns }\nspec:\n  dnsPolicy: Default\n  containers:\n    - name: dns\n      image: ${name}\n      readinessProbe: { httpGet: { path: /healthy, port: 80 } }\n`;

  test('a Corefile alone is judged for ndots, which bounds what waits', async () =>
    assert.deepEqual(await found({ files: { Corefile: text } }), []));

  for (const [name, isCore] of [
    ['coredns/coredns:1.11.3', true],
    ['coredns/coredns:latest', true],
    ['coredns/coredns', true],
    [`registry.k8s.io/coredns/coredns@sha256:${'a'.repeat(64)}`, true],
    ['602401143452.dkr.ecr.eu-west-1.amazonaws.com/eks/coredns:v1.11.4-eksbuild.2', true],
    ['rancher/mirrored-coredns-coredns:1.12.3', true],
    ['example.com/ndots:0.1.0', false],
    ['example.com/coredns-autoscaler:1.0.0', false],
  ] as const)
    test(`beside the image ${name.slice(0, 60)}: ${isCore ? 'reported' : 'not reported'}`, async () => {
      const all = await found({ files: { Corefile: text, 'pod.yaml': image(name) } });
      assert.equal(all.includes('warning CF10 6'), isCore);
    });

  for (const target of ['coredns', 'coredns@1.14.7', 'node-cache@1.26.4'])
    test(`--target ${target}: reported`, async () =>
      assert.ok((await found({ files: { Corefile: text }, target })).includes('warning CF10 6')));

  for (const [kind, yaml] of Object.entries({
    HelmChart:
      'apiVersion: helm.cattle.io/v1\nkind: HelmChart\nmetadata: { name: dns }\nspec:\n  chart: https://example.com/charts/coredns-1.43.0.tgz\n',
    HelmRelease:
      'apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: { name: dns }\nspec:\n  chart: { spec: { chart: coredns } }\n',
    Application:
      'apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: { name: dns }\nspec:\n  source: { chart: coredns }\n',
    HelmChartConfig:
      'apiVersion: helm.cattle.io/v1\nkind: HelmChartConfig\nmetadata: { name: rke2-coredns }\nspec: {}\n',
  }))
    test(`a ${kind} of the CoreDNS chart: reported`, async () =>
      assert.ok(
        (await found({ files: { Corefile: text, 'c.yaml': yaml } })).includes('warning CF10 6'),
      ));

  test('an image without a version takes part in no rule about a release', async () => {
    const files = {
      Corefile: corefile('forward . 10.0.0.2 10.0.0.3 {', '    max_concurrent 1000', '}'),
      'pod.yaml': image('coredns/coredns:latest'),
    };
    assert.deepEqual(
      (await found({ files })).filter((each) => each.includes('CF29') || each.includes('CF01')),
      [],
    );
  });
});

describe('{{ }} in YAML', () => {
  test('the values of the chart of ndots are values and no template', async () => {
    const values = readFileSync('deploy/helm/ndots/values.yaml', 'utf8');
    assert.deepEqual(await found({ files: { 'values.yaml': values } }), []);
  });

  const map = (name: string, text: string): string =>
    `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\ndata:\n  Corefile: |\n${text.replaceAll(/^/gm, '    ')}\n`;
  const good = corefile('forward . 10.0.0.2');

  for (const [what, name, isTemplate] of [
    ['in double quotes', '"{{ .Release.Name }}-dns"', false],
    ['in single quotes', `'{{ include "a" . }}'`, false],
    ['in a plain word', 'dns-{{ $labels.pod }}', false],
    ['in a comment', 'dns # {{ .Values.name }}', false],
    ['as a value', '{{ .Values.name }}', true],
    ['as a value that calls a function', '{{ include "a.name" . }}', true],
  ] as const)
    test(`${what}: ${isTemplate ? 'a template' : 'read'}`, async () => {
      const all = await found({ files: { 'map.yaml': map(name, good) } });
      assert.deepEqual(all, isTemplate ? ['error CF49 1'] : []);
    });

  test('within a block of text: read', async () => {
    const yaml = `${map('coredns', good)}  note: |\n    {{ $labels.pod }} of {{ .Name }}\n`;
    assert.deepEqual(await found({ files: { 'map.yaml': yaml } }), []);
  });

  test('at the start of a line of a Corefile: a template, and nothing else is said of it', async () => {
    const text = '.:53 {\n    errors\n{{- if .Values.log }}\n    log\n{{- end }}\n    whoami\n}';
    assert.deepEqual(await found({ files: { 'map.yaml': map('coredns', text) } }), [
      'error CF49 9',
    ]);
    assert.deepEqual(await found({ files: { Corefile: text } }), ['error CF49 3']);
  });

  test('in the answer of a template: read', async () => {
    const text = corefile(
      'template IN A example.org {',
      '    answer "{{ .Name }} 60 IN A 192.0.2.1"',
      '}',
    );
    assert.deepEqual(await found({ files: { 'map.yaml': map('coredns', text) } }), []);
  });
});

describe('upstreams over TLS without a name', () => {
  const tls = (to: string, ...more: readonly string[]): LintTexts => ({
    files: { Corefile: corefile(`forward . ${to} {`, '    max_concurrent 1000', ...more, '}') },
  });

  for (const to of ['1.1.1.1', '8.8.4.4', '9.9.9.9:853', '[2620:fe::fe]', '223.5.5.5'])
    test(`tls://${to}: the certificate names the address`, async () =>
      assert.deepEqual(await found(tls(`tls://${to}`), true), []));

  test('an address whose certificate is not known: a warning', async () =>
    assert.deepEqual(await found(tls('tls://9.9.9.9 tls://203.0.113.53')), ['warning CF22 6']));

  test('with a CA of its own: a note, because its owner writes the certificate', async () =>
    assert.deepEqual(await found(tls('tls://10.0.0.53', '    tls /ca.pem'), true), [
      'note CF22 6',
    ]));

  test('with tls_servername or %NAME: nothing', async () => {
    assert.deepEqual(await found(tls('tls://10.0.0.53', '    tls_servername dns.example')), []);
    assert.deepEqual(await found(tls('tls://10.0.0.53%dns.example')), []);
  });
});

test('a comment about a defect of CoreDNS is not unused where ndots is the target', async () => {
  const text = corefile(
    '# ndots:ignore CF10,CF29 because the upstreams are near',
    'forward . 10.0.0.2 10.0.0.3',
  );
  assert.deepEqual(await found({ files: { Corefile: text } }, true), []);
});
