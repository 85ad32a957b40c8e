/** Parses metrics that another process exposes in Prometheus's text format. This is the opposite of `exposition.ts`. */
import { appendTo } from '../base/append-to.ts';

export type SeriesLabels = Readonly<Record<string, string>>;

/** Maximum number of series; the rest is ignored. */
const SERIES_MAX = 50_000;
/** Maximum line length; longer lines are ignored. */
const LINE_MAX = 4096;

export class Scrape {
  readonly #series = new Map<string, { readonly labels: SeriesLabels; readonly value: number }[]>();
  readonly #wanted: (name: string) => boolean;
  #rest = '';
  #count = 0;

  /** @param wanted selects the metrics to store */
  constructor(wanted: (name: string) => boolean) {
    this.#wanted = wanted;
  }

  get size(): number {
    return this.#count;
  }

  /** Returns true if there was any series with this name. */
  has(name: string): boolean {
    return this.#series.has(name);
  }

  /** Sums all of a metric's series whose labels match, or returns 0 if there are none. */
  sum(name: string, fits: (labels: SeriesLabels) => boolean = () => true): number {
    let total = 0;
    for (const { labels, value } of this.#series.get(name) ?? []) if (fits(labels)) total += value;
    return total;
  }

  /** Sums by the value of one label. */
  by(
    name: string,
    label: string,
    fits: (labels: SeriesLabels) => boolean = () => true,
  ): Map<string, number> {
    const sums = new Map<string, number>();
    for (const { labels, value } of this.#series.get(name) ?? []) {
      if (!fits(labels)) continue;
      const key = labels[label] ?? '';
      sums.set(key, (sums.get(key) ?? 0) + value);
    }
    return sums;
  }

  /** Parses the next chunk of text. `end` parses the last line, which may lack a line ending. */
  push(text: string): void {
    const whole = this.#rest + text;
    let from = 0;
    for (let at = whole.indexOf('\n'); at >= 0; at = whole.indexOf('\n', from)) {
      this.#line(whole.slice(from, at));
      from = at + 1;
    }
    // An overlong line is dropped.
    this.#rest = whole.length - from > LINE_MAX ? '' : whole.slice(from);
  }

  end(): this {
    this.#line(this.#rest);
    this.#rest = '';
    return this;
  }

  #line(line: string): void {
    if (line.length > LINE_MAX || line.startsWith('#') || this.#count >= SERIES_MAX) return;
    const name = /^[a-zA-Z_:][\w:]*/.exec(line)?.[0] ?? '';
    if (name === '' || !this.#wanted(name)) return;
    const read = line[name.length] === '{' ? readLabels(line, name.length + 1) : null;
    const labels = read?.labels ?? {};
    const [word = ''] = line
      .slice(read === null ? name.length : read.end)
      .trim()
      .split(' ');
    const value = word === '' ? Number.NaN : Number(word.replace('+Inf', 'Infinity'));
    if (Number.isNaN(value)) return;
    appendTo(this.#series, name, { labels, value });
    this.#count++;
  }
}

/** Parses `name="value",…}` after the opening brace. Within values, backslashes, quotes and newlines are escaped. */
function readLabels(
  line: string,
  from: number,
): { readonly labels: SeriesLabels; readonly end: number } {
  const labels: Record<string, string> = {};
  let at = from;
  while (at < line.length && line[at] !== '}') {
    const equals = line.indexOf('="', at);
    if (equals < 0) break;
    const name = line.slice(at, equals).replace(/^[, ]+/, '');
    let value = '';
    at = equals + 2;
    for (; at < line.length && line[at] !== '"'; at++) {
      if (line[at] !== '\\') value += line[at];
      else value += line[++at] === 'n' ? '\n' : (line[at] ?? '');
    }
    labels[name] = value;
    at++;
    if (line[at] === ',') at++;
  }
  return { labels, end: at + 1 };
}
