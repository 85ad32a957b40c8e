/** A line chart in SVG, with the same values in a table for screen readers. */
import { html, nothing, svg, type SVGTemplateResult, type TemplateResult } from 'lit-html';
import { signal, type Signal } from '@preact/signals-core';
import { printTime } from '../cli/live/figures.ts';
import { table } from '../web/table.ts';
import { markShares } from './chart-marks.ts';

export interface ChartLine {
  readonly label: string;
  /** CSS class for the colour: `line-1` to `line-4`. */
  readonly tone: string;
  /** One value per step, or null if there is no value. */
  readonly values: readonly (number | null)[];
}

export interface ChartParts {
  readonly id: string;
  readonly title: string;
  readonly fromMs: number;
  readonly stepMs: number;
  /** The number of steps on the time axis. Lines may end earlier. */
  readonly steps: number;
  readonly lines: readonly ChartLine[];
  readonly print: (value: number) => string;
  /** Times of events, which are drawn as vertical lines. */
  readonly marks?: readonly number[];
}

const WIDTH = 600;
const HEIGHT = 120;
/** Limit on table rows. Longer series show only every n-th step. */
const TABLE_ROWS = 30;

/** The step under the pointer, and its chart. */
const pointed: Signal<{ readonly id: string; readonly at: number } | null> = signal(null);
const asTable: Signal<ReadonlySet<string>> = signal(new Set());

export function lineChart(parts: ChartParts): TemplateResult {
  const { id, title, lines, print, steps } = parts;
  const last = Math.max(0, ...lines.map(({ values }) => values.length)) - 1;
  const most = Math.max(0, ...lines.flatMap(({ values }) => values.map((value) => value ?? 0)));
  const top = niceTop(most);
  const at = pointed.value?.id === id ? pointed.value.at : null;
  const shown = at ?? last;
  const tabled = asTable.value.has(id);
  const point = (event: PointerEvent): void => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    pointed.value = { id, at: Math.min(steps - 1, Math.max(0, Math.round(share * (steps - 1)))) };
  };
  return html`<section class="chart" aria-labelledby=${`${id}-title`}>
    <div class="chart-head">
      <h2 id=${`${id}-title`}>${title}</h2>
      <span class="quiet">${at === null ? 'now' : timeOf(parts, at)}</span>
      <span class="grow"></span>
      <button
        type="button"
        class="link"
        aria-pressed=${tabled ? 'true' : 'false'}
        @click=${() => turn(id)}
      >
        ${tabled ? 'Show as chart' : 'Show as table'}
      </button>
    </div>
    <ul class="legend">
      ${lines.map(
        ({ label, tone, values }) =>
          html`<li>
            <svg class=${`key ${tone}`} viewBox="0 0 12 4" aria-hidden="true">
              <path d="M0 2H12" />
            </svg>
            ${label} <b>${printed(values[shown] ?? null, print)}</b>
          </li>`,
      )}
    </ul>
    ${
      tabled
        ? chartTable(parts, steps)
        : html`<div class="scale">
              <span class="top quiet">${print(top)}</span>
              <svg
                class="plot"
                viewBox=${`0 0 ${WIDTH} ${HEIGHT}`}
                preserveAspectRatio="none"
                role="img"
                aria-label=${`${title}: ${lines.map(({ label, values }) => `${label} ${printed(values[shown] ?? null, print)}`).join(', ')}`}
                @pointermove=${point}
                @pointerleave=${() => (pointed.value = null)}
              >
                ${[0.25, 0.5, 0.75].map((share) => svg`<path class="grid" d=${`M0 ${HEIGHT * share}H${WIDTH}`} />`)}
                ${markPath(parts, steps)}
                ${lines.map(({ tone, values }) => drawn(values, tone, top, steps))}
                ${
                  at === null || steps < 2
                    ? nothing
                    : svg`<path class="cursor" d=${`M${(at / (steps - 1)) * WIDTH} 0V${HEIGHT}`} />`
                }
              </svg>
            </div>
            <div class="axis quiet">
              <span>${timeOf(parts, 0)}</span><span>${timeOf(parts, steps - 1)}</span>
            </div>`
    }
  </section>`;
}

/** Vertical lines for the marks within the chart. */
function markPath({ fromMs, stepMs, marks = [] }: ChartParts, steps: number): SVGTemplateResult {
  const path = markShares(marks, { fromMs, stepMs, steps }).map(
    (share) => `M${(share * WIDTH).toFixed(1)} 0V${HEIGHT}`,
  );
  return svg`<path class="event" d=${path.join('')} />`;
}

function turn(id: string): void {
  const next = new Set(asTable.value);
  if (!next.delete(id)) next.add(id);
  asTable.value = next;
}

function drawn(
  values: readonly (number | null)[],
  tone: string,
  top: number,
  steps: number,
): SVGTemplateResult {
  let path = '';
  let isOpen = false;
  values.forEach((value, index) => {
    if (value === null) {
      isOpen = false;
      return;
    }
    const x = steps < 2 ? WIDTH : (index / (steps - 1)) * WIDTH;
    const y = HEIGHT - 1 - (top === 0 ? 0 : value / top) * (HEIGHT - 4);
    path += `${isOpen ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`;
    isOpen = true;
  });
  return svg`<path class=${`line ${tone}`} d=${path} />`;
}

function chartTable({ title, lines, print, ...parts }: ChartParts, steps: number): TemplateResult {
  const every = Math.max(1, Math.ceil(steps / TABLE_ROWS));
  const rows = Array.from({ length: steps }, (_, index) => index).filter(
    (index) => (steps - 1 - index) % every === 0,
  );
  return table<number>(
    title,
    [
      { head: 'Time', cell: (index) => timeOf(parts, index) },
      ...lines.map(({ label, values }) => ({
        head: label,
        numeric: true,
        cell: (index: number) => printed(values[index] ?? null, print),
      })),
    ],
    rows,
  );
}

function printed(value: number | null, print: (value: number) => string): string {
  return value === null ? '–' : print(value);
}

function timeOf({ fromMs, stepMs }: Pick<ChartParts, 'fromMs' | 'stepMs'>, at: number): string {
  return printTime(fromMs + at * stepMs);
}

/** Rounds up to 1, 2 or 5 times a power of ten. */
function niceTop(most: number): number {
  if (most <= 0) return 0;
  const power = 10 ** Math.floor(Math.log10(most));
  return ([1, 2, 5].find((each) => each * power >= most) ?? 10) * power;
}
