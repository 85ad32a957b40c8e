import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { lintTexts, type LintTexts } from '../../../test/kit/lint-text.ts';

/** Returns the findings as `severity code line`, without their notes. */
async function found(texts: LintTexts, notes = false): Promise<readonly string[]> {
  const { findings } = await lintTexts(texts);
  return findings
    .filter(({ severity }) => notes || severity !== 'note')
    .map(({ severity, code, spot }) => `${severity} ${code} ${spot.line}`);
}

const corefile = (...lines: readonly string[]): string =>
  `.:53 {\n${['errors', 'cache 30', 'loop', 'prometheus', ...lines].map((line) => `    ${line}\n`).join('')}}\n`;

describe('CoreDNS bugs are reported if CoreDNS is the target', () => {
  const text = corefile('forward . 10.0.0.2');
  const image = (name: string): string =>
    `apiVersion: v1\nkind: Pod\nmetadata: { name: dns }\nspec:\n  dnsPolicy: Default\n  containers:\n    - name: dns\n      image: ${name}\n      readinessProbe: { httpGet: { path: /healthy, port: 80 } }\n`;

  test('a Corefile alone is checked for ndots, which limits waiting queries', async () =>
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

describe('an image without a version is skipped by rules about releases', () => {
  test("the ndots chart's values are treated as values, not as a template", async () => {
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

  test('inside a text block: read', async () => {
    const yaml = `${map('coredns', good)}  note: |\n    {{ $labels.pod }} of {{ .Name }}\n`;
    assert.deepEqual(await found({ files: { 'map.yaml': yaml } }), []);
  });

  test('at the start of a Corefile line: a template, without further findings', async () => {
    const text = '.:53 {\n    errors\n{{- if .Values.log }}\n    log\n{{- end }}\n    whoami\n}';
    assert.deepEqual(await found({ files: { 'map.yaml': map('coredns', text) } }), [
      'error CF49 9',
    ]);
    assert.deepEqual(await found({ files: { Corefile: text } }), ['error CF49 3']);
  });

  test("in a template's answer: read", async () => {
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
    test(`tls://${to}: the certificate includes the address`, async () =>
      assert.deepEqual(await found(tls(`tls://${to}`), true), []));

  test('an address whose certificate is unknown: a warning', async () =>
    assert.deepEqual(await found(tls('tls://9.9.9.9 tls://203.0.113.53')), ['warning CF22 6']));

  test('with a private CA: a note, because its owner issues the certificate', async () =>
    assert.deepEqual(await found(tls('tls://10.0.0.53', '    tls /ca.pem'), true), [
      'note CF22 6',
    ]));

  test('with tls_servername or %NAME: nothing', async () => {
    assert.deepEqual(await found(tls('tls://10.0.0.53', '    tls_servername dns.example')), []);
    assert.deepEqual(await found(tls('tls://10.0.0.53%dns.example')), []);
  });
});

test('a comment about a CoreDNS bug is not unused if ndots is the target', async () => {
  const text = corefile(
    '# ndots:ignore CF10,CF29 because the upstreams are near',
    'forward . 10.0.0.2 10.0.0.3',
  );
  assert.deepEqual(await found({ files: { Corefile: text } }, true), []);
});

describe('one error causes one finding', () => {
  const health = (...lines: readonly string[]): LintTexts => ({
    files: { Corefile: corefile('health {', ...lines.map((line) => `    ${line}`), '}', 'ready') },
  });

  for (const [line, expected] of [
    ['lameduck 5', 'error CF43 7'],
    ['lameduck', 'error CF43 7'],
    ['lameduck 5 seconds', 'error CF43 7'],
    ['lameduk 5s', 'error CF01 7'],
    ['lameduck 2s', 'warning CF18 7'],
  ] as const)
    test(`health with ${line}`, async () =>
      assert.deepEqual(await found(health(line)), [expected]));

  test('a rejected forward is not checked for the lines it lacks', async () => {
    const text = corefile('forward . 10.0.0.2 {', '    max_concurent 1000', '}');
    assert.deepEqual(await found({ files: { Corefile: text }, target: 'coredns' }), [
      'error CF01 7',
    ]);
  });

  test('an adjacent line is still checked', async () => {
    const text = corefile('health {', '    lameduck 5', '}', 'bufsize 4096');
    assert.deepEqual(await found({ files: { Corefile: text } }, true), [
      'error CF43 7',
      'warning CF32 9',
    ]);
  });
});

describe('unbalanced braces are the first finding, reported where one is missing', () => {
  const first = async (text: string, file = 'Corefile'): Promise<string> => {
    const { findings } = await lintTexts({ files: { [file]: text } });
    const [one, ...others] = findings;
    // The braces are reported once, and all directives are read as the author meant them.
    const errors = others.filter(({ severity }) => severity === 'error');
    assert.deepEqual(
      errors.map(({ code, text }) => `${code} ${text}`),
      [],
    );
    return `${one?.code} ${one?.spot.line} ${one?.text}; ${one?.hint}`;
  };

  test("a directive's } in an indented file", async () => {
    assert.equal(
      await first(
        '.:53 {\n    errors\n    kubernetes cluster.local {\n        pods insecure\n    forward . 10.0.0.2\n    cache 30\n}\n',
      ),
      "CF34 5 the } for 'kubernetes' (Corefile:3) is missing before this line; 'forward' is indented like 'kubernetes'",
    );
  });

  test("a directive's } before its block's }", async () => {
    assert.equal(
      await first(
        '.:53 {\n    errors\n    forward . 10.0.0.2 {\n        max_concurrent 1000\n}\na.example:53 {\n    whoami\n}\n',
      ),
      "CF34 5 the } for 'forward' (Corefile:3) is missing before this line; This } is indented less than 'forward'",
    );
  });

  test("a block's } before the next block", async () => {
    assert.equal(
      await first(
        'a.example:53 {\n    errors\n    whoami\n\nb.example:53 {\n    errors\n    whoami\n}\n',
      ),
      "CF34 5 the } for 'a.example:53' (Corefile:1) is missing before this line; 'b.example:53' is indented like 'a.example:53'",
    );
  });

  test('the last } in a file', async () => {
    assert.equal(
      await first('.:53 {\n    errors\n    whoami\n'),
      "CF34 3 the } for '.:53' (Corefile:1) is missing at the end of the file; null",
    );
  });

  test("a directive's } in a file without indentation", async () => {
    assert.equal(
      await first(
        '.:53 {\nerrors\nhealth {\nlameduck 5s\nready\nforward . 10.0.0.2\ncache 30\n}\n',
      ),
      "CF34 5 the } for 'health' (Corefile:3) is missing before this line; 'ready' is a directive",
    );
  });

  test("a directive's {", async () => {
    assert.equal(
      await first(
        '.:53 {\n    errors\n    forward . 10.0.0.2\n        max_concurrent 1000\n    }\n    cache 30\n}\n',
      ),
      "CF34 3 the { for 'forward' is missing at the end of this line; The next line is indented further, and the } at Corefile:5 closes '.:53'",
    );
  });

  test('a surplus }', async () => {
    assert.equal(
      await first('.:53 {\n    errors\n    cache 30\n    }\n    forward . 10.0.0.2\n}\n'),
      "CF34 4 this } closes '.:53' (Corefile:1) too early; It is indented further than '.:53', and the } at Corefile:6 then closes nothing",
    );
  });

  test("in a ConfigMap, the line number is the file's", async () => {
    const text =
      'kind: ConfigMap\nmetadata: { name: coredns }\ndata:\n  Corefile: |\n    .:53 {\n        errors\n        cache 30 {\n            success 100\n        whoami\n    }\n';
    assert.match(
      await first(text, 'map.yaml'),
      /^CF34 9 the } for 'cache' \(map\.yaml:7\) is missing/,
    );
  });
});

describe('health and ready', () => {
  const deployment = (...probes: readonly string[]): string =>
    `apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: coredns }\nspec:\n  replicas: 2\n  template:\n    spec:\n      dnsPolicy: Default\n      priorityClassName: system-cluster-critical\n      affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } }\n      containers:\n        - name: dns\n          image: ndots:0.1.0\n${probes.map((probe) => `          ${probe}\n`).join('')}`;
  const ready =
    'readinessProbe: { httpGet: { path: /ready, port: 8181 }, periodSeconds: 2, failureThreshold: 1 }';
  const live = 'livenessProbe: { httpGet: { path: /health, port: 8080 } }';
  const kubernetes = 'kubernetes cluster.local';
  const healthy = ['health {', '    lameduck 5s', '}'];

  test('a probe for a missing plugin: an error', async () => {
    const pods = deployment(ready, live);
    const judged = (...lines: readonly string[]) =>
      found({ files: { Corefile: corefile(kubernetes, ...lines), 'pods.yaml': pods } }, true);
    assert.deepEqual(await judged(...healthy, 'ready'), []);
    assert.deepEqual(await judged('ready'), ['error CF17 15']);
    assert.deepEqual(await judged(...healthy), ['error CF17 14']);
  });

  test("a liveness or startup probe for a port other than health's: an error", async () => {
    const pods = deployment(
      ready,
      'startupProbe: { httpGet: { path: /health, port: 8081 } }',
      'livenessProbe: { httpGet: { path: /health, port: 8080 } }',
    );
    const files = { Corefile: corefile(kubernetes, ...healthy, 'ready'), 'pods.yaml': pods };
    assert.deepEqual(await found({ files }), ['error CF17 15']);
  });

  test('a probe that uses a named container port', async () => {
    const pods = deployment(
      'ports: [{ name: ready, containerPort: 8181 }, { name: live, containerPort: 9090 }]',
      ready.replace('8181', 'ready'),
      live.replace('8080', 'live'),
    );
    const files = { Corefile: corefile(kubernetes, ...healthy, 'ready'), 'pods.yaml': pods };
    assert.deepEqual(await found({ files }), ['error CF17 16']);
  });

  test('a probe that runs a command or uses another path needs no plugin', async () => {
    const pods = deployment(
      'readinessProbe: { exec: { command: [true] } }',
      'livenessProbe: { tcpSocket: { port: 53 } }',
    );
    const files = { Corefile: corefile(kubernetes), 'pods.yaml': pods };
    assert.deepEqual(await found({ files }), []);
  });

  test('an import outside the input may contain the plugin: a warning', async () => {
    const map = `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: coredns }\ndata:\n  Corefile: |\n${corefile(kubernetes, 'import /etc/coredns/custom/*.override', ...healthy).replaceAll(/^/gm, '    ')}\n`;
    const files = { 'map.yaml': map, 'pods.yaml': deployment(ready, live) };
    assert.deepEqual(await found({ files }), ['warning CF17 14']);
  });

  test('a bare Corefile for a cluster, without either: a note for each', async () => {
    const all = (...lines: readonly string[]) =>
      found({ files: { Corefile: corefile(...lines) } }, true);
    assert.deepEqual(await all(kubernetes), ['note CF17 1', 'note CF17 1']);
    assert.deepEqual(await all(kubernetes, 'ready'), ['note CF17 1']);
    assert.deepEqual(await all(kubernetes, ...healthy, 'ready'), []);
    assert.deepEqual(await all('whoami'), []);
  });

  test('health in node-cache, whose liveness probe uses it', async () => {
    const pods = `apiVersion: apps/v1\nkind: DaemonSet\nmetadata: { name: node-local-dns }\nspec:\n  template:\n    spec:\n      hostNetwork: true\n      dnsPolicy: Default\n      priorityClassName: system-node-critical\n      containers:\n        - name: node-cache\n          image: ndots-node-cache:0.1.0\n          livenessProbe: { httpGet: { host: 169.254.20.10, path: /health, port: 8080 } }\n`;
    const cache = (line: string): string =>
      `.:53 {\n    errors\n    cache 30\n    loop\n    prometheus :9253\n    bind 169.254.20.10\n    forward . 10.96.0.10 {\n        force_tcp\n    }\n${line}}\n`;
    const judged = (line: string) => found({ files: { Corefile: cache(line), 'pods.yaml': pods } });
    assert.deepEqual(await judged(''), ['error CF17 13']);
    assert.deepEqual(await judged('    health 169.254.20.10:8080\n'), []);
  });
});

describe('--fix does not remove lines that another program may need', () => {
  for (const line of ['log', 'log . {\n        class all\n    }'])
    test(`${line.slice(0, 5)}: plan and doctor read the queries`, async () => {
      const { findings } = await lintTexts({ files: { Corefile: corefile(line, 'whoami') } });
      assert.deepEqual(
        findings.map(({ code, severity, edits }) => [code, severity, edits]),
        [['CF31', 'note', []]],
      );
      assert.match(findings[0]!.hint ?? '', /ndots plan/);
    });

  for (const [line, code] of [
    ['max_fails 0', 'CF28'],
    ['force_tcp', 'CF21'],
  ] as const)
    test(`${line} is a recommendation`, async () => {
      const text = corefile('forward . 169.254.169.253 {', `    ${line}`, '}');
      const { findings } = await lintTexts({ files: { Corefile: text } });
      assert.deepEqual(
        findings.map((each) => [each.code, each.edits]),
        [[code, []]],
      );
    });

  test('a second health at the same address is a recommendation', async () => {
    const text = corefile('health {', '    lameduck 5s', '}', 'whoami');
    const { findings } = await lintTexts({
      files: { Corefile: text + text.replace('.:53', 'a.example:53') },
    });
    assert.deepEqual(
      findings.filter(({ code }) => code === 'CF17').map(({ edits }) => edits),
      [[]],
    );
  });
});

describe('loops and rollouts', () => {
  test('a loopback server on a port other than 53 cannot be reached through resolv.conf', async () => {
    const text = (port: number): string =>
      `.:${port} {\n    bind 127.0.0.1\n    errors\n    cache 30\n    prometheus\n    forward . /etc/resolv.conf\n}\n`;
    assert.deepEqual(await found({ files: { Corefile: text(53) } }), ['warning CF04 6']);
    assert.deepEqual(await found({ files: { Corefile: text(1053) } }), []);
  });

  test('a loopback server has no nodes that query it after it stops', async () => {
    const text = (address: string): string =>
      corefile(`bind ${address}`, 'health {', '    lameduck 0s', '}', 'whoami');
    assert.deepEqual(await found({ files: { Corefile: text('127.0.0.1 ::1') } }), []);
    assert.deepEqual(await found({ files: { Corefile: text('10.0.0.1') } }), ['warning CF18 8']);
  });
});
