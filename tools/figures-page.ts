/**
 * Writes the tables in docs/figures.md from runs recorded with `npm run bench -- NAME --record`: `node
 * tools/figures-page.ts`.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { misses, printGoal, rounded, type Goal } from '../bench/kit/figures.ts';
import { BUSY } from '../bench/kit/history.ts';
import { figureGroups, type FigureGroup, type FigureRow } from './figures/figure-rows.ts';
import { recordedFigure, type RecordedFigure } from './figures/recorded-figure.ts';
import { wrapPage } from './prose/wrap.ts';

const home = fileURLToPath(new URL('../', import.meta.url));
const page = `${home}docs/figures.md`;
const MARK = '<!-- Written by tools/figures-page.ts from here on. -->';

/** Formats a figure like `0.37 × (0.35–0.4)`: the median, and the range if there are several runs. */
function valueOf({ middle, least, most, runs, unit }: RecordedFigure, isRatio: boolean): string {
  const sign = unit === '' && isRatio ? '×' : unit;
  const range = runs === 1 ? '' : ` (${rounded(least)}–${rounded(most)})`;
  return `${rounded(middle)} ${sign}`.trim() + range;
}

function goalText(goal: Goal | undefined, value: number): string {
  if (goal === undefined) return '';
  const mark = misses({ name: '', value, unit: '', goal }) ? ': **missed**' : '';
  return `${printGoal(goal)}${mark}`;
}

/** Returns null if the figure was never recorded. */
function rowText(benchmark: string, row: FigureRow): string | null {
  const { what, figure, peer, goal, isInverse } = row;
  const history = `${home}bench/history/${benchmark}.jsonl`;
  const quiet = recordedFigure(history, figure, null, isInverse);
  if (quiet === null) return null;
  const busy = recordedFigure(history, figure, BUSY, isInverse);
  const isRatio = peer !== undefined;
  const cells = [
    what,
    `**${valueOf(quiet, isRatio)}**`,
    busy === null ? '' : valueOf(busy, isRatio),
    String(quiet.runs),
    goalText(goal, quiet.middle),
    peer ?? '',
  ];
  return `| ${cells.join(' | ')} |`;
}

function section({ title, benchmark, about, rows }: FigureGroup): string {
  const written = rows.map((row) => rowText(benchmark, row)).filter((row) => row !== null);
  if (written.length === 0) return '';
  const head =
    '| what | quiet machine | busy machine | runs | goal | compared with |\n|---|---|---|---|---|---|';
  return `## ${title}\n\n${about} Command: \`npm run bench -- ${benchmark}\`\n\n${head}\n${written.join('\n')}\n`;
}

export function figuresPage(): string {
  const [written = ''] = readFileSync(page, 'utf8').split(MARK);
  return wrapPage(`${written}${MARK}\n\n${figureGroups.map(section).filter(Boolean).join('\n')}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(page, figuresPage());
