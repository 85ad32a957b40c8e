/** Building blocks for alerts: Prometheus rules, and service promises with error budgets. */

/** The URL of the page that explains each alert (docs/alerts.md). Notification programs link to it. */
const runbookPage = 'https://ndots.dev/alerts';

/** A summary's suffix for when Prometheus, Thanos or Mimir monitors several clusters. */
const ofCluster = '{{ with $labels.cluster }} (cluster {{ . }}){{ end }}';

/** A service promise: the maximum share of bad replies, and which replies are bad. */
export interface ServicePromise {
  readonly name: 'errors' | 'slow' | 'check';
  readonly budget: number;
  readonly bad: (window: string) => string;
  readonly all: (window: string) => string;
  readonly what: string;
}

/**
 * Burn rates of the monthly budget. Each has a long window, a short window to show that it is still burning, and a
 * severity.
 */
const burns = [
  {
    rate: 14.4,
    long: '1h',
    short: '5m',
    severity: 'critical',
    share: '2%',
    time: 'an hour',
  },
  {
    rate: 6,
    long: '6h',
    short: '30m',
    severity: 'critical',
    share: '5%',
    time: 'six hours',
  },
  { rate: 3, long: '1d', short: '2h', severity: 'warning', share: '10%', time: 'a day' },
  {
    rate: 1,
    long: '3d',
    short: '6h',
    severity: 'warning',
    share: '10%',
    time: 'three days',
  },
] as const;

export interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Builds an alert with a link to its section on the page. */
export const alert = (
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
  annotations: {
    summary: summary + ofCluster,
    description,
    runbook_url: `${runbookPage}#${name.toLowerCase()}`,
  },
});

const titles = {
  errors: 'DNSErrorsBurnBudget',
  slow: 'DNSLatencyBurnsBudget',
  check: 'DNSChecksBurnBudget',
} as const;

/** Recording rules for all windows, and an alert for each pair of windows. */
export function promiseRules({ name, budget, bad, all, what }: ServicePromise): readonly Rule[] {
  const windows = [...new Set(burns.flatMap(({ long, short }) => [short, long]))];
  const ratio = (window: string): string => `dns:${name}:ratio_rate${window}`;
  return [
    ...windows.map((window) => ({
      record: ratio(window),
      expr: `(${bad(window)}) / ${all(window)}`,
    })),
    ...burns.map(({ rate, long, short, severity, share, time }) =>
      alert(
        titles[name],
        severity,
        `${ratio(long)} > ${rate} * ${budget} and ${ratio(short)} > ${rate} * ${budget}`,
        '2m',
        `{{ $value | humanizePercentage }} of ${what}`,
        `At this rate, ${share} of the monthly error budget (${budget * 100}%) is used up in ${time}.`,
        { window: long },
      ),
    ),
  ];
}
