/** The dashboard: rows of panels with their series. */

/** A dashboard panel with a title, and series that each have a legend. */
interface Panel {
  readonly title: string;
  readonly help: string;
  readonly unit: string;
  readonly series: readonly (readonly [expr: string, legend: string])[];
  readonly stacked?: boolean;
  readonly kind?: 'stat';
}

const where = 'cluster=~"$cluster",job=~"$job",instance=~"$instance"';
const rate = (metric: string, labels = ''): string =>
  `rate(${metric}{${where}${labels === '' ? '' : `,${labels}`}}[$__rate_interval])`;
const quantile = (q: number, metric: string, by = ''): string =>
  `histogram_quantile(${q}, sum by (le${by}) (${rate(`${metric}_bucket`)}))`;

const rows: readonly { readonly title: string; readonly panels: readonly Panel[] }[] = [
  {
    title: 'DNS health',
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
        help: 'Share of replies with SERVFAIL. Most clients then try another server or fail.',
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
        help: 'Share of replies.',
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
        help: 'Share of cache lookups that were hits.',
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
        help: 'Many NXDOMAIN replies come from clients that walk their search path. ndots trace shows the names.',
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
        title: 'Response time',
        help: 'Measured by the server, from reading the query to writing the reply.',
        unit: 's',
        series: [0.5, 0.95, 0.99].map(
          (q) => [quantile(q, 'coredns_dns_request_duration_seconds'), `p${q * 100}`] as const,
        ),
      },
      {
        title: 'Queries by replica',
        help: 'Uneven if clients reuse source ports or connections.',
        unit: 'reqps',
        series: [
          [
            `sum by (cluster, instance) (${rate('coredns_dns_requests_total')})`,
            '{{cluster}} {{instance}}',
          ],
        ],
      },
    ],
  },
  {
    title: 'Upstreams',
    panels: [
      {
        title: 'Upstream response time',
        help: '99th percentile, by upstream.',
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
        help: 'Queries without a reply so far, by upstream.',
        unit: 'short',
        series: [[`sum by (to) (ndots_forward_waiting_queries{${where}})`, '{{to}}']],
      },
      {
        title: 'Upstream losses',
        help: 'Timeouts, and stray replies that match no query because they are late or forged.',
        unit: 'cps',
        series: [
          [`sum by (to) (${rate('ndots_forward_timeouts_total')})`, 'timeouts {{to}}'],
          [`sum by (to) (${rate('ndots_forward_strays_total')})`, 'strays {{to}}'],
        ],
      },
    ],
  },
  {
    title: 'Server',
    panels: [
      {
        title: 'Memory',
        help: 'Resident, by replica.',
        unit: 'bytes',
        series: [[`process_resident_memory_bytes{${where}}`, '{{cluster}} {{instance}}']],
      },
      {
        title: 'CPU',
        help: 'CPUs in use, by replica.',
        unit: 'short',
        series: [[rate('process_cpu_seconds_total'), '{{cluster}} {{instance}}']],
      },
      {
        title: 'Dropped queries',
        help: 'Queries dropped because the socket buffer was full (lost) or a limit was reached (shed).',
        unit: 'cps',
        series: [
          [`sum(${rate('ndots_listener_lost_total')})`, 'lost'],
          [`sum(${rate('ndots_listener_shed_total')})`, 'shed'],
        ],
      },
      {
        title: 'Time from a change to its answer',
        help: 'Changes of Services and endpoints, 99th percentile.',
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

/** @param allValue the value for "All" if it must also match series without the label */
const variable = (name: string, query: string, allValue?: string): object => ({
  name,
  type: 'query',
  datasource: dataSource,
  query: { query, refId: name },
  refresh: 2,
  multi: true,
  includeAll: true,
  ...(allValue !== undefined && { allValue }),
  current: { text: 'All', value: '$__all' },
});

/** The dashboard in Grafana's import format. */
export const dashboard: object = {
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
      variable('cluster', 'label_values(coredns_build_info, cluster)', '.*'),
      variable('job', 'label_values(coredns_build_info{cluster=~"$cluster"}, job)'),
      variable(
        'instance',
        'label_values(coredns_build_info{cluster=~"$cluster",job=~"$job"}, instance)',
      ),
    ],
  },
  panels: panels(),
};
