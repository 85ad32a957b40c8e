/** The command line for `ndots serve`: coredns's flags and a few more. */
import type { One, OptionValues, Switch, Usage } from '../option.ts';
import { flag, one } from '../option.ts';
import { parseOptions } from '../option-parse.ts';
import { choice, file, integer, usage } from '../option-values.ts';

/** Limit on worker threads. More would only take up memory on any machine. */
const MOST_WORKERS = 128;

/** Options for `serve`, some of which other commands share. */
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
  conf: one('-conf', file(), 'Corefile to load (default "Corefile"; stdin: read standard input)'),
  dnsPort: one('-p, -dns.port', integer('PORT', 0, 65_535), 'default port (default 53)'),
  pidfile: one('-pidfile', file(), 'write the process id to this file'),
  plugins: flag('-plugins', 'list the plugins'),
  quiet: flag('-quiet', 'print no start-up lines'),
  version: flag('-version', 'show the version'),
  example: flag('-example', 'serve the example cluster on 127.0.0.1:1053'),
  workers: one(
    '-workers',
    integer('N', 1, MOST_WORKERS),
    'number of worker threads (default 1; 2 with four or more cores)',
  ),
  transport: one(
    '-transport',
    choice('HOW', ['auto', 'batched', 'plain']),
    'UDP transport: auto, batched (recvmmsg/sendmmsg) or plain',
  ),
  httpConnections: one(
    '-http-connections',
    integer('N', 2, 65_536),
    'connection limit of each health, ready and metrics server (default 256)',
  ),
  logBuffer: one(
    '-log-buffer',
    integer('KIB', 4, 262_144),
    'log buffer of each thread (default 1024)',
  ),
  logFormat: one(
    '-log-format',
    choice('FORMAT', ['text', 'json']),
    'log format: text, or json with one object per line (default text)',
  ),
  hang: one(
    '-hang',
    integer('SECONDS', 0, 3600),
    'replace a worker thread that hangs for this long (default 2; 0: never)',
  ),
};

export type ServeOptions = OptionValues<typeof serveTable>;

export const serveUsage: Usage = {
  synopsis: '',
  examples: [
    ['--example', 'serve the example cluster on 127.0.0.1:1053'],
    ['-conf /etc/coredns/Corefile', 'serve in place of CoreDNS'],
    ['-conf Corefile -dns.port 1053', 'use another port'],
  ],
  style: 'go',
  options: serveTable,
  notes: [
    'Flags use Go syntax: -flag value, -flag=value or --flag value.',
    'On SIGTERM or SIGINT, the server waits for lameduck, answers in-flight queries, and ends. SIGQUIT ends it at once. SIGUSR1 reloads the Corefile; if the new one has an error, the old one stays in use.',
    'Exit codes: 0 ended by a signal, 1 cannot serve, 2 ended by a second Ctrl-C, 3 usage error. More: docs/running.md',
  ],
};

/** @throws Problem (`usage`) */
export function parseServeOptions(words: readonly string[]): ServeOptions {
  const { values, words: extra } = parseOptions(serveTable, words, 'go');
  if (extra.length > 0) throw usage(`extra command line arguments: [${extra.join(' ')}]`);
  return values;
}
