/** Checks deploy/monitoring with promtool, and with a real Prometheus that scrapes a real server. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { parse } from 'yaml';
import { queryBytes, UdpClient } from '../kit/loopback.ts';
import { startPrometheus, type Prometheus } from '../kit/prometheus.ts';
import { serveProcess, type ServeProcess } from '../kit/serve-process.ts';

const rulesFile = resolve('deploy/monitoring/rules.yaml');
const missing = ['promtool', 'prometheus'].filter(
  (program) => spawnSync(program, ['--version']).status !== 0,
);
const skip =
  missing.length === 0 ? false : `${missing.join(' and ')} (Debian package prometheus) missing`;

interface Rules {
  readonly groups: readonly { readonly rules: readonly { alert?: string; expr: string }[] }[];
}
interface Dashboard {
  readonly panels: readonly { title: string; targets?: readonly { expr: string }[] }[];
}
const rules = (parse(readFileSync(rulesFile, 'utf8')) as Rules).groups.flatMap(
  (group) => group.rules,
);
const { panels } = JSON.parse(
  readFileSync('deploy/monitoring/dashboard.json', 'utf8'),
) as Dashboard;

/** A rule test in promtool's own format. */
function promtoolTest(series: object[], alerts: object[]): { status: number | null; text: string } {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-rules-'));
  try {
    const file = join(directory, 'test.yaml');
    const tests = [{ interval: '1m', input_series: series, alert_rule_test: alerts }];
    writeFileSync(file, JSON.stringify({ rule_files: [rulesFile], tests }));
    const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], {
      encoding: 'utf8',
    });
    return { status, text: stdout + stderr };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

const silent = (at: string): object[] =>
  [...new Set(rules.flatMap(({ alert }) => alert ?? []))].map((alertname) => ({
    eval_time: at,
    alertname,
    exp_alerts: [],
  }));

describe('the alerts', { skip }, () => {
  test('are rules that promtool finds no fault in, and each has its paragraph', () => {
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', rulesFile], {
      encoding: 'utf8',
    });
    assert.equal(status, 0, stdout + stderr);
    const page = readFileSync('docs/alerts.md', 'utf8');
    for (const { alert } of rules)
      if (alert !== undefined) assert.match(page, new RegExp(`^## ${alert}$`, 'm'));
  });

  const steady = [
    { series: 'coredns_build_info{instance="a", job="coredns"}', values: '1x120' },
    { series: 'up{instance="a", job="coredns"}', values: '1x120' },
    { series: 'coredns_panics_total{instance="a"}', values: '0x120' },
    { series: 'coredns_dns_responses_total{rcode="NOERROR"}', values: '0+60000x120' },
  ];

  test('are silent while one reply in ten thousand is SERVFAIL, however long', () => {
    const series = [
      ...steady,
      { series: 'coredns_dns_responses_total{rcode="SERVFAIL"}', values: '0+6x120' },
    ];
    const { status, text } = promtoolTest(series, silent('2h'));
    assert.equal(status, 0, text);
  });

  test('report a certificate a week before it ends, and not earlier', () => {
    const ends = (seconds: number): object => ({
      series: 'ndots_tls_certificate_expiration_timestamp_seconds{certificate="a.crt"}',
      values: `${seconds}x120`,
    });
    for (const [days, isTold] of [
      [8, false],
      [6, true],
      [0, true],
    ] as const) {
      const { text } = promtoolTest([...steady, ends(days * 86_400)], silent('100m'));
      assert.equal(text.includes('alertname="DNSCertificateEnds"'), isTold, text);
    }
  });

  for (const [what, servfail, windows] of [
    ['while two of a hundred replies are SERVFAIL', '0+1200x120', ['1h', '6h', '1d', '3d']],
    [
      'of an hour that was bad and is over as of a budget that is being used up',
      '0+1200x30 36000x90',
      ['1d', '3d'],
    ],
  ] as const)
    test(`report ${what}`, () => {
      const failed = 'coredns_dns_responses_total{rcode="SERVFAIL"}';
      const { text } = promtoolTest(
        [...steady, { series: failed, values: servfail }],
        silent('100m'),
      );
      const told = [...text.matchAll(/alertname="DNSErrorsBurnBudget".*window="(\w+)"/g)];
      assert.deepEqual(new Set(told.map(([, window]) => window)), new Set(windows), text);
    });

  test('distinguish clusters, and name them', () => {
    const of = (cluster: string, rcode: string, values: string): object => ({
      series: `coredns_dns_responses_total{cluster="${cluster}", rcode="${rcode}"}`,
      values,
    });
    const info = (cluster: string, values: string): object => ({
      series: `coredns_build_info{cluster="${cluster}", instance="a", job="coredns"}`,
      values,
    });
    const scraped = (cluster: string, values: string): object => ({
      series: `up{cluster="${cluster}", instance="a", job="coredns"}`,
      values,
    });
    const series = [
      ...['well', 'ill'].flatMap((each) => [info(each, '1x120'), scraped(each, '1x120')]),
      ...[info('gone', '1x60 stale'), scraped('gone', '1x60 stale')],
      ...[of('well', 'NOERROR', '0+60000x120'), of('well', 'SERVFAIL', '0+6x120')],
      ...[of('ill', 'NOERROR', '0+60x120'), of('ill', 'SERVFAIL', '0+60x120')],
    ];
    const { text } = promtoolTest(series, silent('100m'));
    const told = [...text.matchAll(/alertname="(\w+)".*?cluster="(\w+)"/g)];
    const pairs = new Set(told.map(([, name, cluster]) => `${name} ${cluster}`));
    assert.deepEqual(pairs, new Set(['DNSErrorsBurnBudget ill', 'DNSDown gone']), text);
    assert.match(text, /DNS replies are SERVFAIL \(cluster ill\)/);
  });

  test('aggregate by cluster wherever they aggregate, and lead to a page by its URL', () => {
    const text = readFileSync(rulesFile, 'utf8');
    const { groups } = parse(text) as {
      groups: { rules: { alert?: string; expr: string; annotations?: Record<string, string> }[] }[];
    };
    for (const { alert, expr, annotations } of groups.flatMap((group) => group.rules)) {
      const aggregations = [
        ...expr.matchAll(/\b(?:sum|count|max|min|avg)\b(?!_over)\s*(.{0,12})/g),
      ];
      for (const [all, next] of aggregations)
        assert.match(next!, /^by \(cluster/, `${all} in ${expr}`);
      if (alert === undefined) continue;
      assert.ok(URL.canParse(annotations!['runbook_url']!), alert);
      assert.ok(annotations!['runbook_url']!.endsWith(`#${alert.toLowerCase()}`), alert);
    }
    const variables = (
      JSON.parse(readFileSync('deploy/monitoring/dashboard.json', 'utf8')) as {
        templating: { list: { name: string }[] };
      }
    ).templating.list.map(({ name }) => name);
    assert.deepEqual(variables, ['datasource', 'cluster', 'job', 'instance']);
    for (const { targets = [] } of panels)
      for (const { expr } of targets) {
        const selectors = expr.match(/\{[^}]*\}/g) ?? [];
        for (const selector of selectors) assert.match(selector, /cluster=~"\$cluster"/);
      }
  });

  const checked = (target: string, values: string): object => ({
    series: `ndots_check_up{check="replica-answers", target="${target}", instance="a"}`,
    values,
  });
  const tellsOf = (series: object[], at = '100m'): Set<string> => {
    const { text } = promtoolTest([...steady, ...series], silent(at));
    return new Set([...text.matchAll(/alertname="(\w+)"/g)].map(([, name]) => name!));
  };

  test('of checks: a target that is down is reported in two minutes, and burns the budget; a blip is not', () => {
    const fine = [checked('10.244.1.5:53', '1x120'), checked('10.244.2.7:53', '1x120')];
    assert.deepEqual(tellsOf(fine), new Set());
    const down = [checked('10.244.1.5:53', '1x120'), checked('10.244.2.7:53', '1x98 0x22')];
    assert.deepEqual(tellsOf(down, '98m'), new Set());
    assert.ok(tellsOf(down, '101m').has('DNSCheckTargetDown'));
    assert.ok(tellsOf(down, '110m').has('DNSChecksBurnBudget'));
  });

  test('of checks: the checker is blind when it is gone, when it knows nothing, and when no replica leads', () => {
    const state = (value: string, values: string): object => ({
      series: `ndots_check_state{check="replica-answers", target="servers", state="${value}"}`,
      values,
    });
    for (const series of [
      [{ series: 'ndots_check_checks{instance="a"}', values: '3x60 stale' }],
      [state('unknown', '1x120'), state('ok', '0x120')],
      [
        { series: 'kuberhealthy_controller_leader{instance="a"}', values: '1x60 0x60' },
        { series: 'kuberhealthy_controller_leader{instance="b"}', values: '0x120' },
      ],
    ])
      assert.deepEqual(tellsOf(series), new Set(['DNSCheckBlind']), JSON.stringify(series));
    const well = [
      { series: 'ndots_check_checks{instance="a"}', values: '3x120' },
      state('unknown', '0x120'),
      state('ok', '1x120'),
      { series: 'kuberhealthy_controller_leader{instance="a"}', values: '1x60 0x60' },
      { series: 'kuberhealthy_controller_leader{instance="b"}', values: '0x60 1x60' },
    ];
    assert.deepEqual(tellsOf(well), new Set());
  });

  test('report when no server is scraped any more', () => {
    const { text } = promtoolTest(
      [{ series: 'coredns_build_info{instance="a", job="coredns"}', values: '1x5 stale' }],
      [{ eval_time: '15m', alertname: 'DNSDown', exp_alerts: [] }],
    );
    assert.match(text, /No DNS server is scraped/);
  });
});

describe('a Prometheus that scrapes a server', { skip }, () => {
  let upstream: ServeProcess | null = null;
  let server: ServeProcess | null = null;
  let prometheus: Prometheus | null = null;
  let client: UdpClient | null = null;
  let asking: NodeJS.Timeout | undefined;
  let url = '';

  before(async () => {
    upstream = await serveProcess('whoami');
    server = await serveProcess(
      `errors\ncache\nkubernetes cluster.local {\n manifests ${resolve('examples/cluster')}\n}\nforward . 127.0.0.1:${upstream.port}`,
    );
    prometheus = await startPrometheus(server.metricsUrl, { rule_files: [rulesFile] });
    ({ url } = prometheus);
    client = await UdpClient.open();
    const { port: dns } = server;
    let asked = 0;
    asking = setInterval(() => {
      const name =
        asked++ % 2 === 0 ? 'backend.critical-app.svc.cluster.local' : `${asked}.example.`;
      client?.send(queryBytes(name, asked), dns);
    }, 100);
  });
  after(async () => {
    clearInterval(asking);
    client?.close();
    await server?.stop();
    await upstream?.stop();
    await prometheus?.stop();
  });

  const query = async (expr: string): Promise<{ status: string; data: { result: unknown[] } }> =>
    (await (await fetch(`${url}/api/v1/query?query=${encodeURIComponent(expr)}`)).json()) as never;

  test('has values for every panel of the dashboard', async () => {
    for (const { title, targets = [] } of panels)
      for (const { expr } of targets) {
        const filled = expr
          .replaceAll('$cluster', '.*')
          .replaceAll('$job', '.*')
          .replaceAll('$instance', '.*')
          .replaceAll('$__rate_interval', '10s');
        const end = Date.now() + 30_000;
        for (;;) {
          const { status, data } = await query(filled);
          assert.equal(status, 'success', `${title}: ${filled}`);
          if (data.result.length > 0) break;
          assert.ok(Date.now() < end, `${title}: ${filled} has no value`);
          await pause(500);
        }
      }
  });

  test('evaluates every rule without an error', async () => {
    const answer = (await (await fetch(`${url}/api/v1/rules`)).json()) as {
      data: { groups: { rules: { name: string; health: string; lastError?: string }[] }[] };
    };
    for (const { name, health, lastError } of answer.data.groups.flatMap((group) => group.rules))
      assert.equal(health, 'ok', `${name}: ${lastError}`);
  });
});
