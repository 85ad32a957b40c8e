/** The command line of `ndots bench`. */
import { clientLabels } from '../../../tools/resolver/clients.ts';
import { group, one, type Usage } from '../option.ts';
import { parseOptions } from '../option-parse.ts';
import { choice, duration, file, integer, readServer, text, usage } from '../option-values.ts';

export interface BenchServer {
  readonly host: string;
  readonly port: number;
}

export interface BenchOptions {
  readonly servers: readonly BenchServer[];
  readonly names: string | null;
  /** A capture, dnstap file or log whose queries are sent. */
  readonly recorded: string | null;
  readonly client: string;
  readonly resolvConf: string | null;
  readonly rate: number;
  readonly lastsMs: number;
  readonly clients: number;
  readonly timeoutMs: number;
  readonly output: 'text' | 'json';
}

const table = {
  ...group('Load', {
    names: one(
      '--names',
      file(),
      'read lines with NAME, or NAME TYPE as for dnsperf (-: standard input)',
    ),
    recorded: one(
      '--recorded',
      file(),
      'replay the queries from a capture, dnstap file or log, in order (-: standard input)',
    ),
    client: one(
      '--client',
      text('CLIENT', { words: clientLabels }),
      'resolver that determines the queries for names without a type (glibc)',
    ),
    resolvConf: one(
      '--resolv-conf',
      file(),
      'read search path and ndots from FILE (default: those of a pod in namespace default)',
    ),
    rate: one('--rate', integer('N', 1, 1_000_000), 'queries per second (1000)'),
    for: one('--for', duration(1000, 86_400_000), 'send for this long (10s)'),
    clients: one('--clients', integer('N', 1, 1024), 'source ports per server (16)'),
    timeout: one('--timeout', duration(100, 60_000), 'count a query as lost after this time (5s)'),
  }),
  ...group('Output', {
    output: one('-o, --output', choice('FORMAT', ['text', 'json']), 'text or json'),
  }),
};

export const benchUsage: Usage = {
  synopsis: 'SERVER[:PORT] [SERVER[:PORT]] [--names FILE] [--rate N]',
  examples: [
    ['127.0.0.1:1053', 'look up a few names as glibc does'],
    ['10.96.0.10 10.1.2.3 --names names.txt --for 60', 'compare two servers'],
    ['127.0.0.1:1053 --recorded coredns.log', 'replay the queries of a log'],
  ],
  style: 'gnu',
  options: table,
  notes: [
    'Queries are sent on schedule, even when replies are late, and latency counts from the scheduled time. With two servers, the load alternates every second, so that other work on the machine affects both.',
    'Exit codes: 0 done, 1 queries were lost, 2 could not run, 3 usage error, 130 interrupted, with the results so far.',
  ],
};

/** @throws Problem */
export function parseBenchOptions(words: readonly string[]): BenchOptions {
  const { values, words: rest } = parseOptions(table, words);
  if (rest.length === 0) throw usage('which server?', 'Example: ndots bench 127.0.0.1:1053');
  if (rest.length > 2)
    throw usage(`bench accepts at most two servers, and "${rest[2]}" is a third`);
  if (values.recorded !== null && values.names !== null)
    throw usage('--recorded and --names cannot be combined', 'Give one of them.');
  if (values.recorded !== null && (values.client !== null || values.resolvConf !== null))
    throw usage(
      '--client and --resolv-conf apply to names, but --recorded contains complete queries',
      'Leave them out.',
    );
  return {
    ...values,
    servers: rest.map((word) => {
      const { server: host, port } = readServer(word.replace(/^@/, ''));
      return { host, port: port ?? 53 };
    }),
    client: values.client ?? 'glibc',
    rate: values.rate ?? 1000,
    lastsMs: values.for ?? 10_000,
    clients: values.clients ?? 16,
    timeoutMs: values.timeout ?? 5000,
    output: values.output ?? 'text',
  };
}
