import { type Exposed, type ExposedSeries, printLabels } from './exposition.ts';
import { checkShape } from './registration.ts';

/** A value computed at each scrape instead of being counted continuously. */
export interface MetricSample {
  readonly name: string;
  readonly help: string;
  readonly kind: 'counter' | 'gauge' | 'summary';
  /** Values by label name. */
  readonly labels: Readonly<Record<string, string>>;
  /** The value, or for a summary the sum of all observations. */
  readonly value: number;
  /** For summaries only, the value that this proportion of the observations does not exceed. */
  readonly quantiles?: ReadonlyMap<number, number>;
  /** Summaries only: the number of observations. */
  readonly count?: number;
}

/** Returns a sample of a gauge. */
export function gauge(
  name: string,
  help: string,
  value: number,
  labels: MetricSample['labels'] = {},
): MetricSample {
  return { kind: 'gauge', name, help, value, labels };
}

/** Returns a sample of a counter. */
export function counter(
  name: string,
  help: string,
  value: number,
  labels: MetricSample['labels'] = {},
): MetricSample {
  return { kind: 'counter', name, help, value, labels };
}

/**
 * Groups samples into families, with series sorted by their labels. Throws if samples with the same name disagree in
 * kind or help, or if a label set occurs twice. If there are duplicates, Prometheus rejects the whole scrape.
 */
export function groupSamples(samples: Iterable<MetricSample>): Map<string, Exposed> {
  const groups = new Map<string, { first: MetricSample; byLabels: Map<string, ExposedSeries> }>();
  for (const sample of samples) {
    const names = Object.keys(sample.labels).toSorted();
    let group = groups.get(sample.name);
    if (group === undefined) {
      const { name, help, kind } = sample;
      const shape = kind === 'summary' ? 'gauge' : kind;
      checkShape({ name, help, kind: shape, labels: names, merge: 'sum', bounds: [] });
      groups.set(name, (group = { first: sample, byLabels: new Map() }));
    }
    const { first, byLabels } = group;
    if (first.kind !== sample.kind || first.help !== sample.help) {
      throw new Error(`metric ${sample.name}: sampled with different kinds or helps`);
    }
    const ordered = names.map((name) => sample.labels[name]!);
    const labels = printLabels(names, ordered);
    if (byLabels.has(labels)) {
      throw new Error(`metric ${sample.name}: sampled twice with the labels {${labels}}`);
    }
    const { quantiles, value, count } = sample;
    const values = quantiles === undefined ? [value] : [...quantiles.values(), value, count ?? 0];
    byLabels.set(labels, { labels, names, ordered, values, native: false });
  }
  return new Map(
    Array.from(groups, ([name, { first, byLabels }]) => {
      const series = [...byLabels.values()].toSorted((a, b) => (a.labels < b.labels ? -1 : 1));
      const { help, kind, quantiles } = first;
      const bounds = [...(quantiles?.keys() ?? [])];
      return [name, { name, help, kind, bounds, native: null, series }];
    }),
  );
}
