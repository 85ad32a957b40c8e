/** `ndots cache`: what servers keep under a name, and that they forget it. */
import type { CacheReport } from '../../../server/plugins/cache/control.ts';
import type { EntryReport } from '../../../server/plugins/cache/cache-messages.ts';
import { NameError, parseName } from '../../../server/wire/name.ts';
import { AdminFailure, adminServers, type AdminServer } from './admin-servers.ts';
import { parseCacheOptions, type CacheVerbOptions } from './cache-options.ts';
import { readReports } from './cache-reports.ts';
import { EXIT, type Command, type Io } from '../command.ts';
import { usage } from '../option-values.ts';
import { wrap } from '../page.ts';

/** Servers that are asked at a time. */
const PARALLEL = 8;

/** The report of one server about one name, or `failure`. */
interface Answer {
  readonly server: string;
  readonly name: string;
  readonly reports: readonly CacheReport[];
  readonly failure: AdminFailure | null;
}

/** The verb `cache`. */
export const cache: Command = {
  name: 'cache',
  async run(words, io) {
    const options = parseCacheOptions(words);
    for (const name of options.names) checkName(name);
    const { servers, close } = await adminServers(options, io);
    try {
      const answers = await askAll(servers, options);
      if (options.output === 'json') io.out(`${JSON.stringify(answers.map(jsonOf), null, 2)}\n`);
      else print(answers, options, io);
      return exitOf(answers, options);
    } finally {
      close();
    }
  },
};

function checkName(name: string): void {
  try {
    parseName(name);
  } catch (error) {
    if (!(error instanceof NameError)) throw error;
    throw usage(`this is not a domain name: ${error.message}`);
  }
}

async function askAll(
  servers: readonly AdminServer[],
  options: CacheVerbOptions,
): Promise<Answer[]> {
  const { action, names, below } = options;
  const all: Answer[][] = servers.map(() => []);
  let next = 0;
  const take = async (): Promise<void> => {
    for (let index = next++; index < servers.length; index = next++) {
      const server = servers[index]!;
      for (const name of names) {
        const asked = { server: server.name, name };
        try {
          const found = await server.run(`cache/${action}`, { name, below: String(below) });
          const reports = readReports(found);
          if (reports === null) throw noReport(server.name);
          all[index]!.push({ ...asked, reports, failure: null });
        } catch (error) {
          if (!(error instanceof AdminFailure)) throw error;
          all[index]!.push({ ...asked, reports: [], failure: error });
          break;
        }
      }
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, take));
  return all.flat();
}

function noReport(server: string): AdminFailure {
  return new AdminFailure(
    `${server} did not send a cache report`,
    'Another program listens there, or another version of this one.',
  );
}

function foundIn({ reports }: Answer): number {
  return reports.flatMap(({ told }) => told).reduce((sum, { found }) => sum + found, 0);
}

function isPartial({ reports }: Answer): boolean {
  return reports.some(({ workers, told }) => told.length < workers);
}

function exitOf(answers: readonly Answer[], { action }: CacheVerbOptions): number {
  if (answers.some((answer) => answer.failure !== null || isPartial(answer))) return EXIT.failed;
  return action === 'flush' || answers.some((answer) => foundIn(answer) > 0) ? EXIT.ok : EXIT.no;
}

function jsonOf({ server, name, reports, failure }: Answer): object {
  const told = failure === null ? {} : { failure: failure.message, remedy: failure.remedy };
  return { server, name, caches: reports, ...told };
}

function print(answers: readonly Answer[], { action }: CacheVerbOptions, io: Io): void {
  for (const answer of answers) {
    const { server, name, reports, failure } = answer;
    if (failure !== null) {
      // Most failures name the server themselves.
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

const head = ['NAME', 'TYPE', 'FOR', 'RESULT', 'LEFT', 'HITS', 'FROM', 'WORKER'];

function row(worker: number, entry: EntryReport): readonly string[] {
  const { name, type, dnssecOk, checkingDisabled, rcode, half, ttl, storedTtl, hits, from } = entry;
  const client = [...(dnssecOk ? ['do'] : []), ...(checkingDisabled ? ['cd'] : [])].join('+');
  const result = half === 'denial' && rcode === 'NOERROR' ? 'no data' : rcode;
  const left = ttl > 0 ? `${ttl} of ${storedTtl} s` : `stale for ${-ttl} s`;
  const kind = entry.class === 'IN' ? type : `${entry.class} ${type}`;
  return [name, kind, client || 'all', result, left, String(hits), from || '-', String(worker)];
}

/** A table; where it is too wide, a few lines for each row. */
function columns(rows: readonly (readonly string[])[], width: number): string {
  const table = aligned(rows);
  const isWide = table.split('\n').some((line) => line.length > width);
  if (!isWide) return table;
  return rows
    .slice(1)
    .map(([name = '', ...cells]) => {
      const parts = cells.map((cell, at) => `${head[at + 1]!.toLowerCase()} ${cell}`);
      const page = { columns: width };
      return `${[...wrap(name, '  ', page), ...wrap(parts.join(', '), '    ', page)].join('\n')}\n`;
    })
    .join('');
}

function aligned(rows: readonly (readonly string[])[]): string {
  const widths = head.map((_, at) => Math.max(...rows.map((cells) => cells[at]!.length)));
  return rows
    .map(
      (cells) =>
        `  ${cells
          .map((cell, at) => cell.padEnd(widths[at]!))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}
