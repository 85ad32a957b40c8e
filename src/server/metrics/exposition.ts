import type { TextFormat } from './formats.ts';
import type { NativeRange } from './native.ts';
import { printCount, printFloat, printNumber } from './number.ts';
import { type MetricKind, openMetricsName } from './registration.ts';

/** A family, ready to be printed. */
export interface Exposed {
  readonly name: string;
  readonly help: string;
  readonly kind: MetricKind | 'summary';
  /** Upper bounds of a histogram's buckets, or a summary's quantiles. */
  readonly bounds: readonly number[];
  /** A histogram's native buckets, counted in addition. */
  readonly native: NativeRange | null;
  /** In print order; at least one. */
  readonly series: readonly ExposedSeries[];
}

/** A label set with its values. */
export interface ExposedSeries {
  /** The labels as formatted by `printLabels`. */
  readonly labels: string;
  /** Label names in sorted order, and their values in the same order. */
  readonly names: readonly string[];
  readonly ordered: readonly string[];
  /**
   * A single value, unless this is a histogram or summary. A histogram has the count of each bucket (not cumulative,
   * +Inf last), the sum, and then the native buckets. A summary has the value at each quantile, and then sum and count.
   */
  readonly values: ArrayLike<number>;
  /** True if the native buckets among the values cover all observations. */
  readonly native: boolean;
}

/** Prints the families as text in the given order. */
export function printExposition(families: Iterable<Exposed>, format: TextFormat): string {
  let out = '';
  for (const family of families) {
    out += printHead(family, format) + printSeries(family, format);
  }
  return format === 'openmetrics' ? `${out}# EOF\n` : out;
}

/**
 * Prints labels in the order of their names, without braces: `server="dns://:53",zone="."`. `names` and `values`
 * correspond by index, and the names must already be sorted.
 */
export function printLabels(names: readonly string[], values: readonly string[]): string {
  return names.map((name, index) => `${name}="${escapeValue(values[index]!)}"`).join(',');
}

function printHead({ name, help, kind }: Exposed, format: TextFormat): string {
  if (format === 'text') {
    const line = help === '' ? '' : `# HELP ${name} ${escapeHelp(help)}\n`;
    return `${line}# TYPE ${name} ${kind}\n`;
  }
  // In OpenMetrics, a counter's name must end in _total. If it does not, the type `unknown` preserves the name and the
  // values.
  const misnamed = kind === 'counter' && !name.endsWith('_total');
  const family = kind === 'counter' ? openMetricsName(name) : name;
  const line = help === '' ? '' : `# HELP ${family} ${escapeValue(help)}\n`;
  return `${line}# TYPE ${family} ${misnamed ? 'unknown' : kind}\n`;
}

function printSeries({ name, kind, bounds, series }: Exposed, format: TextFormat): string {
  const print = format === 'text' ? printNumber : printFloat;
  const printHits = format === 'text' ? printNumber : printCount;
  const isHistogram = kind === 'histogram';
  const marks = isHistogram
    ? [...bounds, Infinity].map((bound) => `le="${print(bound)}"`)
    : bounds.map((bound) => `quantile="${print(bound)}"`);
  let out = '';
  for (const { labels, values } of series) {
    const set = labels === '' ? '' : `{${labels}}`;
    if (!isHistogram && kind !== 'summary') {
      out += `${name}${set} ${print(values[0]!)}\n`;
      continue;
    }
    const open = `${name}${isHistogram ? '_bucket' : ''}{${labels === '' ? '' : `${labels},`}`;
    let hits = isHistogram ? 0 : values[marks.length + 1]!;
    for (const [index, mark] of marks.entries()) {
      if (isHistogram) hits += values[index]!;
      out += `${open}${mark}} ${isHistogram ? printHits(hits) : print(values[index]!)}\n`;
    }
    out += `${name}_sum${set} ${print(values[marks.length]!)}\n`;
    out += `${name}_count${set} ${printHits(hits)}\n`;
  }
  return out;
}

/**
 * Escapes label values in both formats, and help texts in OpenMetrics. Half surrogates cannot be encoded as UTF-8 and
 * are replaced.
 */
function escapeValue(text: string): string {
  if (!/[\\"\n\ud800-\udfff]/.test(text)) return text;
  return escapeHelp(text).replaceAll('"', '\\"');
}

function escapeHelp(text: string): string {
  return text.toWellFormed().replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}
