/** The command line of `ndots capture`. */
import { CLIENTS_MAX } from '../../../tools/doctor/observe/client-list.ts';
import type { GivenFilter } from '../../../tools/capture/filter.ts';
import type { ClusterOptions } from '../cluster-options.ts';
import { redactionKey, redactionOptions } from '../live-source-options.ts';
import { beside, flag, group, one, type Usage } from '../option.ts';
import { colourOptions, type ColourOptions } from '../colour-options.ts';
import { firstGiven, parseOptions } from '../option-parse.ts';
import { filtersOf, sourcesOf, trafficOptions, type TrafficSources } from './traffic-options.ts';
import { choice, duration, file, integer, usage } from '../option-values.ts';

export interface CaptureOptions extends TrafficSources, ClusterOptions, ColourOptions {
  /** True for `join`, where the files show the same traffic at several capture points. */
  readonly action: 'show' | 'join';
  readonly filters: readonly GivenFilter[];
  readonly count: number | null;
  readonly clients: { readonly most: number; readonly in: 'output' | 'summary' };
  readonly forMs: number | null;
  readonly output: CaptureOutput;
  readonly write: string | null;
  /** Null: no redaction. */
  readonly redactKey: string | null;
  readonly manifests: string | null;
  readonly cluster: boolean;
  readonly quiet: boolean;
  /** True to look up client processes; `bpf` is true if kernel programs record them. */
  readonly process: boolean;
  readonly bpf: boolean;
}

const outputs = ['text', 'flow', 'clients', 'json', 'pcapng', 'none'] as const;
export type CaptureOutput = (typeof outputs)[number];

const CLIENTS = { behind: 10, list: 1000 };

const table = {
  ...trafficOptions,
  ...group('Processes', {
    process: flag('--process', 'show the client and server processes (live only, as root)'),
    ...beside(['--process'], {
      bpf: flag('--bpf', 'find processes in the kernel, including short-lived ones (eBPF)'),
    }),
  }),
  ...group('Limits', {
    count: one(
      '-c, --count',
      integer('N', 1, 4_294_967_295),
      'stop after N exchanges (with -o flow: lookups)',
    ),
    for: one('--for', duration(1, 86_400_000 * 7), 'stop after this time, such as 30s or 5m'),
  }),
  ...group('Output', {
    output: one('-o, --output', choice('FORMAT', outputs), outputs.join(', ')),
    clients: one(
      '--clients',
      integer('N', 0, CLIENTS_MAX),
      'list N clients and their resolvers at the end (10; -o clients: 1000)',
    ),
    write: one('-w, --write', file(), 'also write the packets to this pcapng file'),
    ...redactionOptions,
    quiet: flag('-q, --quiet', 'print no progress and no summary'),
    ...colourOptions,
  }),
};

/** Options that have no effect on `join`, which compares whole captures. */
const ofShow = ['count', 'for', 'write', 'quiet', 'clients'] as const;

export const captureUsage: Usage = {
  synopsis: '[FILE…|-] | -i INTERFACE | join FILE FILE…',
  examples: [
    ['-i any', 'show every query on this machine'],
    ['node7.pcap --verdict lost', 'show unanswered queries of a capture'],
    ['node7.pcap -o flow', 'group queries by lookup'],
    ['-i any --process -o flow', 'add processes, and what each client did with the reply'],
    ['node7.pcap -o clients', 'list clients and the resolver each one uses'],
    ['join client.pcap server.pcap', 'find where queries were lost'],
  ],
  style: 'gnu',
  options: table,
  notes: [
    'Reads pcap, pcapng, dnstap (Frame Streams), and query logs from CoreDNS and ndots, optionally compressed with gzip or zstd. For standard input, use -, as in tcpdump -w - port 53 | ndots capture -',
    'A filter given twice matches either value; different filters must all match. Exit codes: 0 shown, 1 nothing to show, 2 could not be read, 3 usage error. More: docs/capture.md',
  ],
  words: { files: true },
};

/** @throws Problem (`usage`) */
export function parseCaptureOptions(given: readonly string[]): CaptureOptions {
  const { values, words } = parseOptions(table, given);
  const joins = words[0] === 'join';
  const files = joins ? words.slice(1) : words;
  if (joins && files.length < 2)
    throw usage(
      'join needs at least two captures',
      'Give them in path order: client, node, server',
    );
  const sources = sourcesOf(values, files);
  const { filters, cluster } = filtersOf(values, values.process);
  const output = values.output ?? 'text';
  if (values.process && sources.device === null)
    throw usage(
      '--process needs a live capture',
      'A file contains no information about processes. Example: -i any --process',
    );
  if (values.process && redactionKey(values) !== null)
    throw usage(
      '--process shows command lines, which --redact does not hide',
      'Leave one of them out.',
    );
  if (joins && output !== 'text' && output !== 'json') throw usage('join takes -o text or -o json');
  const other = joins ? firstGiven(table, values, ofShow) : null;
  if (other !== null) throw usage(`join does not take ${other}`);
  // By default, JSON output contains only queries because programs read it.
  const isOutput = output === 'clients' || (output === 'json' && values.clients !== null);
  const usual = isOutput ? CLIENTS.list : values.quiet ? 0 : CLIENTS.behind;
  return {
    ...values,
    action: joins ? 'join' : 'show',
    ...sources,
    filters,
    clients: { most: values.clients ?? usual, in: isOutput ? 'output' : 'summary' },
    forMs: values.for,
    output,
    redactKey: redactionKey(values),
    cluster,
  };
}
