/** The command line of `ndots serve`: coredns's flags, and a few more. */
import type { One, OptionValues, Switch, Usage } from '../option.ts';
import { flag, one } from '../option.ts';
import { parseOptions } from '../option-parse.ts';
import { choice, file, integer, usage } from '../option-values.ts';

/** More threads than this no machine has use for; each costs its own memory. */
const MOST_WORKERS = 128;

/** The options of `serve`, of which other verbs that serve take some. */
export const serveTable: {
  conf: One<string>;
  dnsPort: One<number>;
  pidfile: One<string>;
  plugins: Switch;
  quiet: Switch;
  version: Switch;
  example: Switch;
  workers: One<number>;
  transport: One<'auto' | 'batched' | 'plain'>;
  httpConnections: One<number>;
  logBuffer: One<number>;
  logFormat: One<'text' | 'json'>;
  hang: One<number>;
} = {
  conf: one('-conf', file(), 'Corefile to load (default "Corefile"; stdin reads a pipe)'),
  dnsPort: one('-p, -dns.port', integer('PORT', 0, 65_535), 'default port (default 53)'),
  pidfile: one('-pidfile', file(), 'path to write the pid file'),
  plugins: flag('-plugins', 'list the plugins'),
  quiet: flag('-quiet', 'no start-up lines'),
  version: flag('-version', 'show the version'),
  example: flag('-example', 'serve the example cluster on 127.0.0.1:1053'),
  workers: one(
    '-workers',
    integer('N', 1, MOST_WORKERS),
    'threads that answer (default: one, two from four cores on)',
  ),
  transport: one(
    '-transport',
    choice('HOW', ['auto', 'batched', 'plain']),
    'UDP: auto, batched (recvmmsg/sendmmsg) or plain',
  ),
  httpConnections: one(
    '-http-connections',
    integer('N', 2, 65_536),
    'connections at a time to each of health, ready and metrics (default 256)',
  ),
  logBuffer: one(
    '-log-buffer',
    integer('KIB', 4, 262_144),
    'lines of the log that may wait to be read, for each thread (default 1024)',
  ),
  logFormat: one(
    '-log-format',
    choice('FORMAT', ['text', 'json']),
    'of the log: text, or one JSON object a line (default text)',
  ),
  hang: one(
    '-hang',
    integer('SECONDS', 0, 3600),
    'replace a worker thread that hangs for so long (default 2; 0: never)',
  ),
};

/** What the command line of `ndots serve` says; null: nothing was given. */
export type ServeOptions = OptionValues<typeof serveTable>;

/** What `ndots serve` takes. */
export const serveUsage: Usage = {
  synopsis: '',
  examples: [
    ['--example', 'the example cluster on 127.0.0.1:1053'],
    ['-conf /etc/coredns/Corefile', 'in place of coredns'],
    ['-conf Corefile -dns.port 1053', 'on another port'],
  ],
  style: 'go',
  options: serveTable,
  notes: [
    'Flags are spelled as in Go: -flag value, -flag=value, --flag value.',
    'SIGTERM and SIGINT end it (lameduck, then what is in flight), SIGQUIT at once. SIGUSR1 loads the Corefile anew; one that cannot be served leaves the one before in place.',
    'Exit codes: 0 it was ended, 1 it cannot serve, 3 wrong usage. More: docs/corefile.md',
  ],
};

/** Throws a `Problem` with the code `usage`. */
export function parseServeOptions(words: readonly string[]): ServeOptions {
  const { values, words: extra } = parseOptions(serveTable, words, 'go');
  if (extra.length > 0) throw usage(`extra command line arguments: [${extra.join(' ')}]`);
  return values;
}
