/** The parts of alerts: rules as Prometheus reads them, and promises with error budgets. */

/** The page that explains each alert (docs/alerts.md), as a URL: notification programs make a link of it. */
const runbookPage = 'https://ndots.dev/alerts';

/** Ends a summary if Prometheus, Thanos or Mimir have several clusters. */
const ofCluster = '{{ with $labels.cluster }} (cluster {{ . }}){{ end }}';

/** One promise: the share of replies that may be bad, and the definition of bad. */
export interface ServicePromise {
  readonly name: 'errors' | 'slow' | 'check';
  readonly budget: number;
  readonly bad: (window: string) => string;
  readonly all: (window: string) => string;
  readonly what: string;
}

/**
 * The allowed burn rates of the month's budget: the rate over a long window, the rate over a short one (it still
 * burns), and the severity.
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

/** An alert with its paragraph on the page. */
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

/** Rates over all windows, and an alert for each pair of them. */
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
