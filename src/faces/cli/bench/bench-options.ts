/** The command line of `ndots bench`. */
import { clientLabels } from '../../../tools/resolver/clients.ts';
import { group, one, type Usage } from '../option.ts';
import { parseOptions } from '../option-parse.ts';
import { choice, duration, file, integer, readServer, text, usage } from '../option-values.ts';

/** A server of the command line. */
export interface BenchServer {
  readonly host: string;
  readonly port: number;
}

/** What a command line of `ndots bench` says. */
export interface BenchOptions {
  readonly servers: readonly BenchServer[];
  readonly names: string | null;
  /** A capture, dnstap file or log whose queries are the load. */
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
      'names, or NAME TYPE as dnsperf’s files have them; - is standard input',
    ),
    recorded: one(
      '--recorded',
      file(),
      'queries of a capture, a dnstap file or a log, as often and in the order as they were asked; - is standard input',
    ),
    client: one(
      '--client',
      text('CLIENT', { words: clientLabels }),
      'whose search walk a name without type stands for (glibc)',
    ),
    resolvConf: one(
      '--resolv-conf',
      file(),
      'search path and ndots of that walk (as kubelet writes them for namespace default)',
    ),
    rate: one('--rate', integer('N', 1, 1_000_000), 'queries per second (1000)'),
    for: one('--for', duration(1000, 86_400_000), 'send for so long (10s)'),
    clients: one('--clients', integer('N', 1, 1024), 'source ports for each server (16)'),
    timeout: one(
      '--timeout',
      duration(100, 60_000),
      'a query without a reply after this is lost (5s)',
    ),
  }),
  ...group('Output', {
    output: one('-o, --output', choice('FORMAT', ['text', 'json']), 'text or json'),
  }),
};

/** The help of `ndots bench`. */
export const benchUsage: Usage = {
  synopsis: 'SERVER[:PORT] [SERVER[:PORT]] [--names FILE] [--rate N]',
  examples: [
    ['127.0.0.1:1053', 'a few names as glibc looks them up'],
    ['10.96.0.10 10.1.2.3 --names names.txt --for 60', 'two servers, by turns'],
    ['127.0.0.1:1053 --recorded coredns.log', 'what clients really asked, by a log'],
  ],
  style: 'gnu',
  options: table,
  notes: [
    'Queries are sent when they are due, whatever the replies do, and timed from then: a server that stalls is not spared. Two servers take turns of a second, so that what else the machine does meets both.',
    'Exit codes: 0 done, 1 queries were lost, 2 it could not be done, 3 wrong usage, 130 interrupted: what was measured until then is shown.',
  ],
};

/** @throws Problem */
export function parseBenchOptions(words: readonly string[]): BenchOptions {
  const { values, words: rest } = parseOptions(table, words);
  if (rest.length === 0) throw usage('which server?', 'As in: ndots bench 127.0.0.1:1053');
  if (rest.length > 2) throw usage(`two servers at most, and not "${rest[2]}"`);
  if (values.recorded !== null && values.names !== null)
    throw usage('--recorded and --names are two loads', 'Name one of them.');
  if (values.recorded !== null && (values.client !== null || values.resolvConf !== null))
    throw usage(
      '--client and --resolv-conf say how names are looked up, and --recorded has queries, not names',
      'Leave them away.',
    );
  return {
    servers: rest.map((word) => {
      const { server: host, port } = readServer(word.replace(/^@/, ''));
      return { host, port: port ?? 53 };
    }),
    names: values.names,
    recorded: values.recorded,
    client: values.client ?? 'glibc',
    resolvConf: values.resolvConf,
    rate: values.rate ?? 1000,
    lastsMs: values.for ?? 10_000,
    clients: values.clients ?? 16,
    timeoutMs: values.timeout ?? 5000,
    output: values.output ?? 'text',
  };
}
