/** `ndots cache`: shows or flushes servers' cache entries for a name. */
import type { EntryReport } from '../../../server/plugins/cache/cache-messages.ts';
import { adminServers } from './admin-servers.ts';
import { answerDocument, askCaches, checkName, type CacheAnswer } from './cache-answers.ts';
import { parseCacheOptions, type CacheVerbOptions } from './cache-options.ts';
import { entryCells, entryHeads } from './entry-cells.ts';
import { EXIT, type Command, type Io } from '../command.ts';
import { aligned, wrap } from '../page.ts';

export const cache: Command = {
  name: 'cache',
  async run(words, io) {
    const options = parseCacheOptions(words);
    for (const name of options.names) checkName(name);
    const { servers, close } = await adminServers(options, io);
    try {
      const { action, names, below } = options;
      const answers = await askCaches(servers, action, names, below);
      if (options.output === 'json')
        io.out(`${JSON.stringify(answers.map(answerDocument), null, 2)}\n`);
      else print(answers, options, io);
      return exitOf(answers, options);
    } finally {
      close();
    }
  },
};

function foundIn({ reports }: CacheAnswer): number {
  return reports.flatMap(({ told }) => told).reduce((sum, { found }) => sum + found, 0);
}

function isPartial({ reports }: CacheAnswer): boolean {
  return reports.some(({ workers, told }) => told.length < workers);
}

function exitOf(answers: readonly CacheAnswer[], { action }: CacheVerbOptions): number {
  if (answers.some((answer) => answer.failure !== null || isPartial(answer))) return EXIT.failed;
  return action === 'flush' || answers.some((answer) => foundIn(answer) > 0) ? EXIT.ok : EXIT.no;
}

function print(answers: readonly CacheAnswer[], { action }: CacheVerbOptions, io: Io): void {
  for (const answer of answers) {
    const { server, name, reports, failure } = answer;
    if (failure !== null) {
      // Most failure messages already name the server.
      const whose = failure.message.startsWith(server) ? '' : `${server}: `;
      io.err(`ndots cache: ${whose}${failure.message}\n  ${failure.remedy}\n`);
      continue;
    }
    for (const { zones, view, workers, told } of reports) {
      const place = `${zones.join(' ')}${view === '' ? '' : ` (view ${view})`}`;
      const found = told.reduce((sum, each) => sum + each.found, 0);
      const size = told.reduce((sum, each) => sum + each.size, 0);
      const done = action === 'flush' ? 'forgotten' : 'kept';
      const line = `${server}  cache of ${place}: ${found} of ${size} entries ${done} for ${name}`;
      io.out(`${wrap(line, '', io).join('\n')}\n`);
      const rows = told.flatMap(({ worker, entries }) =>
        entries.map((entry) => row(worker, entry)),
      );
      if (rows.length > 0) io.out(columns([head, ...rows], io.columns));
      const shown = told.reduce((sum, { entries }) => sum + entries.length, 0);
      if (action === 'explain' && shown < found) io.out(`  and ${found - shown} more\n`);
      if (told.length < workers)
        io.err(
          `ndots cache: ${server}: ${workers - told.length} of ${workers} workers did not answer in time\n`,
        );
    }
  }
}

const head = [...entryHeads, 'Worker'].map((each) => each.toUpperCase());

function row(worker: number, entry: EntryReport): readonly string[] {
  return [...entryCells(entry), String(worker)];
}

/** Formats a table, or a few lines per row if it is too wide. */
function columns(rows: readonly (readonly string[])[], width: number): string {
  const table = aligned(rows, { numbers: false }).map((line) => `  ${line}`);
  if (table.every((line) => line.length <= width)) return `${table.join('\n')}\n`;
  return rows
    .slice(1)
    .map(([name = '', ...cells]) => {
      const parts = cells.map((cell, at) => `${head[at + 1]!.toLowerCase()} ${cell}`);
      const page = { columns: width };
      return `${[...wrap(name, '  ', page), ...wrap(parts.join(', '), '    ', page)].join('\n')}\n`;
    })
    .join('');
}
