/**
 * Writes the table in docs/metrics.md, which lists every metric declared in the sources with its help text: `node
 * tools/metrics-page.ts`. With `--check` it only compares.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { declaredMetrics, type DeclaredMetric } from './metrics/declared-metrics.ts';

const home = fileURLToPath(new URL('../', import.meta.url));
const page = `${home}docs/metrics.md`;
const MARK = '<!-- Written by tools/metrics-page.ts from here on. -->';

/** A metric and the part of the program that exports it. */
export interface PlacedMetric extends DeclaredMetric {
  readonly file: string;
}

/** Lists all metrics by name. A metric that several files declare is listed once. */
export function allMetrics(): readonly PlacedMetric[] {
  all ??= readMetrics();
  return all;
}

let all: readonly PlacedMetric[] | null = null;

function readMetrics(): readonly PlacedMetric[] {
  const found = new Map<string, PlacedMetric>();
  for (const file of globSync('src/**/*.ts', { cwd: home }).toSorted(byWing)) {
    if (file.endsWith('.test.ts') || readers.test(file)) continue;
    for (const metric of declaredMetrics(readFileSync(`${home}${file}`, 'utf8')))
      if (!found.has(metric.name)) found.set(metric.name, { ...metric, file });
  }
  return [...found.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Programs that read other servers' metrics. */
const readers = /^src\/(?:tools\/doctor|faces\/cli\/bench)\//;

/** The server's declaration comes first, because other parts only read the metric. */
const byWing = (a: string, b: string): number =>
  Number(b.startsWith('src/server/')) - Number(a.startsWith('src/server/')) || (a < b ? -1 : 1);

/**
 * A link such as `[cache](../src/server/plugins/cache/cache.md)`, or the directory if the metric does not belong to a
 * plugin.
 */
function owner(file: string): string {
  const plugin = /^src\/server\/plugins\/([^/]+)\//.exec(file)?.[1];
  if (plugin !== undefined) return `[${plugin}](../src/server/plugins/${plugin}/${plugin}.md)`;
  return `\`${dirname(file).split('/').slice(1, 4).join('/')}\``;
}

export function metricsPage(): string {
  const [written = ''] = readFileSync(page, 'utf8').split(MARK);
  const rows = allMetrics().map(({ name, kind, help, labels, file }) => {
    const list = labels.map((label) => `\`${label}\``).join(' ');
    return `| \`${name}\` | ${kind} | ${help.replaceAll('|', '\\|').replaceAll('<', '&lt;')} | ${list} | ${owner(file)} |`;
  });
  const head = '| metric | kind | help | labels | counted by |\n|---|---|---|---|---|';
  return `${written}${MARK}\n\n${head}\n${rows.join('\n')}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const text = metricsPage();
  if (!process.argv.includes('--check')) writeFileSync(page, text);
  else if (text !== readFileSync(page, 'utf8')) process.exitCode = 1;
}
