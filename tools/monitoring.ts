/**
 * Writes deploy/monitoring/: recording rules, alerts and a dashboard, all from the tables below, so that each window and each panel is
 * said once. `node tools/monitoring.ts --check` only tells whether the files are as they would be written.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';

const folder = join(import.meta.dirname, '../deploy/monitoring');
/** The page that says of each alert what to look at. */
const page = 'docs/alerts.md';

/** One promise: a share of replies that may be bad, and what is bad. */
interface Promise {
  readonly name: 'errors' | 'slow';
  readonly budget: number;
  readonly bad: (window: string) => string;
  readonly all: (window: string) => string;
  readonly what: string;
}

const promises: readonly Promise[] = [
  {
    name: 'errors',
    budget: 0.001,
    bad: (window) => `sum(rate(coredns_dns_responses_total{rcode="SERVFAIL"}[${window}]))`,
    all: (window) => `sum(rate(coredns_dns_responses_total[${window}]))`,
    what: 'replies are SERVFAIL',
  },
  {
    name: 'slow',
    budget: 0.01,
    bad: (window) =>
      `sum(rate(coredns_dns_request_duration_seconds_count[${window}])) - ` +
      `sum(rate(coredns_dns_request_duration_seconds_bucket{le="0.256"}[${window}]))`,
    all: (window) => `sum(rate(coredns_dns_request_duration_seconds_count[${window}]))`,
    what: 'replies take longer than 256 ms',
  },
];

/** How fast the month's budget may burn: the rate over a long window, that over a short one (it still goes on), and who is told. */
const burns = [
  {
    rate: 14.4,
    long: '1h',
    short: '5m',
    severity: 'critical',
    spends: '2 % of a month in an hour',
  },
  {
    rate: 6,
    long: '6h',
    short: '30m',
    severity: 'critical',
    spends: '5 % of a month in six hours',
  },
  { rate: 3, long: '1d', short: '2h', severity: 'warning', spends: '10 % of a month in a day' },
  {
    rate: 1,
    long: '3d',
    short: '6h',
    severity: 'warning',
    spends: '10 % of a month in three days',
  },
] as const;

interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

const alert = (
  name: string,
  severity: string,
  expr: string,
  lasts: string,
  summary: string,
  description: string,
  labels: Readonly<Record<string, string>> = {},
): Rule => ({
  alert: name,
  expr,
  for: lasts,
  labels: { severity, ...labels },
  annotations: { summary, description, runbook: `${page}#${name.toLowerCase()}` },
});

function promiseRules({ name, budget, bad, all, what }: Promise): readonly Rule[] {
  const windows = [...new Set(burns.flatMap(({ long, short }) => [short, long]))];
  const ratio = (window: string): string => `dns:${name}:ratio_rate${window}`;
  const title = name === 'errors' ? 'DNSErrorsBurnBudget' : 'DNSLatencyBurnsBudget';
  return [
    ...windows.map((window) => ({
      record: ratio(window),
      expr: `(${bad(window)}) / ${all(window)}`,
    })),
    ...burns.map(({ rate, long, short, severity, spends }) =>
      alert(
        title,
        severity,
        `${ratio(long)} > ${rate} * ${budget} and ${ratio(short)} > ${rate} * ${budget}`,
        '2m',
        `{{ $value | humanizePercentage }} of DNS ${what}`,
        `That spends ${spends} of what may go wrong (${budget * 100} %).`,
        { window: long },
      ),
    ),
  ];
}

/** What no promise shows, because nobody is answered, or soon will not be. */
const otherAlerts: readonly Rule[] = [
  alert(
    'DNSDown',
    'critical',
    'absent(coredns_build_info) or sum(up * on (instance, job) group_left coredns_build_info) == 0',
    '5m',
    'No DNS server is scraped',
    'Either none runs, or Prometheus cannot reach them; then it cannot tell that lookups fail, either.',
  ),
  alert(
    'DNSPanics',
    'warning',
    'increase(coredns_panics_total[10m]) > 0',
    '0m',
    'A bug of the DNS server was met at {{ $labels.instance }}',
    'The query had SERVFAIL for a reply; the log has the stack.',
  ),
  alert(
    'DNSConfigurationNotTaken',
    'warning',
    'increase(coredns_reload_failed_total[10m]) > 0',
    '0m',
    'A changed Corefile was not taken at {{ $labels.instance }}',
    'The one before still serves; a pod that starts anew will not. The log says where the mistake is.',
  ),
  alert(
    'DNSUpstreamsDown',
    'critical',
    'increase(coredns_forward_healthcheck_broken_total[5m]) > 0',
    '2m',
    'All upstreams failed their health checks at {{ $labels.instance }}',
    'Names outside of the cluster are answered from cache, or not at all.',
  ),
  alert(
    'DNSUpstreamsOverloaded',
    'warning',
    'increase(coredns_forward_max_concurrent_rejects_total[5m]) > 0',
    '5m',
    'Queries are refused at {{ $labels.instance }} because too many wait for upstreams',
    'The upstreams are slow, or max_concurrent is too low.',
  ),
  alert(
    'DNSQueriesShed',
    'warning',
    'increase(ndots_listener_shed_total[5m]) + increase(ndots_listener_lost_total[5m]) > 0',
    '5m',
    'The DNS server at {{ $labels.instance }} has more queries than it can take',
    'Clients wait for their time-out, mostly five seconds, and ask again.',
  ),
  alert(
    'DNSWorkersLost',
    'critical',
    'increase(ndots_worker_restarts_total[10m]) > 0',
    '0m',
    'A worker of the DNS server at {{ $labels.instance }} hung or died, and was replaced',
    'The log has the reason.',
  ),
  alert(
    'DNSFollowsNoCluster',
    'warning',
    'histogram_quantile(0.99, sum by (le) (rate(coredns_kubernetes_dns_programming_duration_seconds_bucket[15m]))) > 30',
    '15m',
    'Changes of Services take longer than 30 s to be seen in answers',
    'The API server is slow or away; answers stay as they were.',
  ),
];

const rules = {
  groups: [
    ...promises.map((promise) => ({ name: `dns-${promise.name}`, rules: promiseRules(promise) })),
    { name: 'dns-others', rules: otherAlerts },
  ],
};

/** One panel of the dashboard: what it shows, and the series, each with its legend. */
interface Panel {
  readonly title: string;
  readonly help: string;
  readonly unit: string;
  readonly series: readonly (readonly [expr: string, legend: string])[];
  readonly stacked?: boolean;
  readonly kind?: 'stat';
}

const where = 'job=~"$job",instance=~"$instance"';
const rate = (metric: string, labels = ''): string =>
  `rate(${metric}{${where}${labels === '' ? '' : `,${labels}`}}[$__rate_interval])`;
const quantile = (q: number, metric: string, by = ''): string =>
  `histogram_quantile(${q}, sum by (le${by}) (${rate(`${metric}_bucket`)}))`;

const rows: readonly { readonly title: string; readonly panels: readonly Panel[] }[] = [
  {
    title: 'Is DNS fine?',
    panels: [
      {
        title: 'Queries per second',
        help: 'All transports, all replicas.',
        unit: 'reqps',
        kind: 'stat',
        series: [[`sum(${rate('coredns_dns_requests_total')})`, 'queries']],
      },
      {
        title: 'SERVFAIL',
        help: 'The share of replies that tell the client to ask elsewhere. Most clients then wait or fail.',
        unit: 'percentunit',
        kind: 'stat',
        series: [
          [
            `(sum(${rate('coredns_dns_responses_total', 'rcode="SERVFAIL"')}) or vector(0)) / sum(${rate('coredns_dns_responses_total')})`,
            'SERVFAIL',
          ],
        ],
      },
      {
        title: 'Slower than 256 ms',
        help: 'The share of replies.',
        unit: 'percentunit',
        kind: 'stat',
        series: [
          [
            `1 - sum(${rate('coredns_dns_request_duration_seconds_bucket', 'le="0.256"')}) / sum(${rate('coredns_dns_request_duration_seconds_count')})`,
            'slow',
          ],
        ],
      },
      {
        title: 'Answered from cache',
        help: 'Hits of all that looked into the cache.',
        unit: 'percentunit',
        kind: 'stat',
        series: [
          [
            `sum(${rate('coredns_cache_hits_total')}) / sum(${rate('coredns_cache_requests_total')})`,
            'hits',
          ],
        ],
      },
    ],
  },
  {
    title: 'Queries and replies',
    panels: [
      {
        title: 'Replies by code',
        help: 'Many NXDOMAIN are the search path of the clients at work: ndots trace shows for which names.',
        unit: 'reqps',
        stacked: true,
        series: [[`sum by (rcode) (${rate('coredns_dns_responses_total')})`, '{{rcode}}']],
      },
      {
        title: 'Queries by type',
        help: 'A and AAAA come in pairs.',
        unit: 'reqps',
        stacked: true,
        series: [[`sum by (type) (${rate('coredns_dns_requests_total')})`, '{{type}}']],
      },
      {
        title: 'Time to a reply',
        help: 'As the server sees it: from the query read to the reply written.',
        unit: 's',
        series: [0.5, 0.95, 0.99].map(
          (q) => [quantile(q, 'coredns_dns_request_duration_seconds'), `p${q * 100}`] as const,
        ),
      },
      {
        title: 'Queries by replica',
        help: 'Uneven where clients keep their source port, or connections.',
        unit: 'reqps',
        series: [[`sum by (instance) (${rate('coredns_dns_requests_total')})`, '{{instance}}']],
      },
    ],
  },
  {
    title: 'Upstreams',
    panels: [
      {
        title: 'Time to a reply of an upstream',
        help: '99 of 100.',
        unit: 's',
        series: [[quantile(0.99, 'coredns_proxy_request_duration_seconds', ', to'), '{{to}}']],
      },
      {
        title: 'Failed health checks',
        help: 'By upstream.',
        unit: 'cps',
        series: [[`sum by (to) (${rate('coredns_proxy_healthcheck_failures_total')})`, '{{to}}']],
      },
      {
        title: 'Waiting for upstreams',
        help: 'Queries that have no reply yet, by upstream.',
        unit: 'short',
        series: [[`sum by (to) (ndots_forward_waiting_queries{${where}})`, '{{to}}']],
      },
      {
        title: 'Lost on the way',
        help: 'Time-outs, and what fitted no query: late, or forged.',
        unit: 'cps',
        series: [
          [`sum by (to) (${rate('ndots_forward_timeouts_total')})`, 'time-outs {{to}}'],
          [`sum by (to) (${rate('ndots_forward_strays_total')})`, 'strays {{to}}'],
        ],
      },
    ],
  },
  {
    title: 'The server',
    panels: [
      {
        title: 'Memory',
        help: 'Resident, by replica.',
        unit: 'bytes',
        series: [[`process_resident_memory_bytes{${where}}`, '{{instance}}']],
      },
      {
        title: 'Processor',
        help: 'Processors in use, by replica.',
        unit: 'short',
        series: [[rate('process_cpu_seconds_total'), '{{instance}}']],
      },
      {
        title: 'Not taken',
        help: 'Queries that found no place: in the socket (lost), or beyond a limit (shed).',
        unit: 'cps',
        series: [
          [`sum(${rate('ndots_listener_lost_total')})`, 'lost'],
          [`sum(${rate('ndots_listener_shed_total')})`, 'shed'],
        ],
      },
      {
        title: 'From a change to its answer',
        help: 'Changes of Services and endpoints, 99 of 100.',
        unit: 's',
        series: [[quantile(0.99, 'coredns_kubernetes_dns_programming_duration_seconds'), 'p99']],
      },
    ],
  },
];

const dataSource = { type: 'prometheus', uid: '${datasource}' };

function panelOf(
  { title, help, unit, series, stacked, kind }: Panel,
  id: number,
  x: number,
  y: number,
): object {
  return {
    id,
    title,
    description: help,
    type: kind ?? 'timeseries',
    datasource: dataSource,
    gridPos: { h: kind === 'stat' ? 4 : 8, w: 6, x, y },
    fieldConfig: {
      defaults: {
        unit,
        min: 0,
        ...(kind === undefined && {
          custom: {
            fillOpacity: stacked === true ? 40 : 0,
            stacking: { mode: stacked === true ? 'normal' : 'none' },
          },
        }),
      },
      overrides: [],
    },
    targets: series.map(([expr, legendFormat], nth) => ({
      refId: String.fromCharCode(65 + nth),
      datasource: dataSource,
      expr,
      legendFormat,
    })),
  };
}

function panels(): readonly object[] {
  const all: object[] = [];
  let y = 0;
  for (const row of rows) {
    all.push({
      id: all.length + 1,
      type: 'row',
      title: row.title,
      collapsed: false,
      panels: [],
      gridPos: { h: 1, w: 24, x: 0, y },
    });
    y++;
    row.panels.forEach((panel, nth) => all.push(panelOf(panel, all.length + 1, nth * 6, y)));
    y += row.panels[0]?.kind === 'stat' ? 4 : 8;
  }
  return all;
}

const variable = (name: string, query: string): object => ({
  name,
  type: 'query',
  datasource: dataSource,
  query: { query, refId: name },
  refresh: 2,
  multi: true,
  includeAll: true,
  current: { text: 'All', value: '$__all' },
});

const dashboard = {
  title: 'Cluster DNS (ndots, CoreDNS)',
  uid: 'ndots-dns',
  tags: ['dns', 'kubernetes'],
  schemaVersion: 39,
  version: 1,
  editable: true,
  time: { from: 'now-3h', to: 'now' },
  refresh: '30s',
  templating: {
    list: [
      { name: 'datasource', type: 'datasource', query: 'prometheus' },
      variable('job', 'label_values(coredns_build_info, job)'),
      variable('instance', 'label_values(coredns_build_info{job=~"$job"}, instance)'),
    ],
  },
  panels: panels(),
};

const head =
  "# Recording rules and alerts for cluster DNS, written by tools/monitoring.ts. They read metrics with CoreDNS's names: they watch it, too.\n";

/** File → its text. */
const files = {
  'rules.yaml': head + stringify(rules, { lineWidth: 0 }),
  'dashboard.json': `${JSON.stringify(dashboard, null, 2)}\n`,
};

const onlyCheck = process.argv.includes('--check');
for (const [name, text] of Object.entries(files)) {
  const path = join(folder, name);
  if (!onlyCheck) writeFileSync(path, text);
  else if (readFileSync(path, 'utf8') !== text) {
    console.error(`${path} is not what its tables say: node tools/monitoring.ts`);
    process.exitCode = 1;
  }
}
