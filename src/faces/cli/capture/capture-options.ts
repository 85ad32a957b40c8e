/** The command line of `ndots capture`. */
import { CLIENTS_MAX } from '../../../tools/doctor/observe/client-list.ts';
import {
  filterWords,
  ofOwners,
  type FilterWord,
  type GivenFilter,
} from '../../../tools/capture/filter.ts';
import {
  clusterGiven,
  namesCluster,
  ownerOptions,
  type ClusterOptions,
} from '../cluster-options.ts';
import {
  liveSourceOptions,
  namespaceOf,
  redactionKey,
  redactionOptions,
} from '../live-source-options.ts';
import { flag, group, many, one, type Many, type OptionValue, type Usage } from '../option.ts';
import { colourOptions, type ColourOptions } from '../colour-options.ts';
import { firstGiven, parseOptions } from '../option-parse.ts';
import { choice, duration, file, integer, text, usage } from '../option-values.ts';

/** What a command line of `ndots capture` says. */
export interface CaptureOptions extends ClusterOptions, ColourOptions {
  /** `join`: the files are of one traffic, at several places. */
  readonly action: 'show' | 'join';
  readonly files: readonly string[];
  /** Interface, `any`, or null: files are read. */
  readonly device: string | null;
  /** Network namespace to capture in: a path; null = the own one. */
  readonly netns: string | null;
  /** Where programs deliver dnstap: `unix:/run/tap.sock`, `tcp:127.0.0.1:6000`. */
  readonly dnstap: string | null;
  readonly ports: readonly number[] | null;
  readonly filters: readonly GivenFilter[];
  readonly count: number | null;
  /** Clients that are listed at the end, at most; and where: with what is shown, or besides. */
  readonly clients: { readonly most: number; readonly in: 'output' | 'summary' };
  readonly forMs: number | null;
  readonly output: CaptureOutput;
  readonly write: string | null;
  /** Null: nothing is replaced. */
  readonly redactKey: string | null;
  readonly manifests: string | null;
  readonly cluster: boolean;
  readonly quiet: boolean;
}

const outputs = ['text', 'flow', 'clients', 'json', 'pcapng', 'none'] as const;
/** How exchanges are shown. */
export type CaptureOutput = (typeof outputs)[number];

/** Clients that are listed in a summary, and where they are what is wanted. */
const CLIENTS = { behind: 10, list: 1000 };

const filterHelp: Readonly<Record<FilterWord, readonly [placeholder: string, help: string]>> = {
  pod: ['[NS/]POD', 'to or from pods whose names begin so'],
  'from-pod': ['[NS/]POD', 'from these'],
  'to-pod': ['[NS/]POD', 'to these'],
  namespace: ['NAME', 'from pods of this namespace'],
  workload: ['[NS/]KIND/NAME', 'from pods that this made: deploy/cart'],
  service: ['[NS/]NAME', 'to this service'],
  ip: ['IP[/BITS]', 'to or from an address or net'],
  'from-ip': ['IP[/BITS]', 'from it'],
  'to-ip': ['IP[/BITS]', 'to it, before or behind a translation of addresses'],
  name: ['NAME', 'this name; *.example.com, api.* and *stripe* are parts'],
  type: ['TYPE', 'A, AAAA, SRV …'],
  rcode: ['RCODE', 'NXDOMAIN, SERVFAIL …'],
  verdict: ['VERDICT', 'answered, lost, or error (answered, neither NOERROR nor NXDOMAIN)'],
  protocol: ['udp|tcp', 'by which it travelled'],
  'slower-than': ['TIME', 'what took longer, and what was lost'],
};

/** What completion offers. */
const filterValues: Readonly<Partial<Record<FilterWord, readonly string[]>>> = {
  verdict: ['answered', 'lost', 'error'],
  protocol: ['udp', 'tcp'],
};

const filterOptions = Object.fromEntries(
  filterWords.map((word) => {
    const [placeholder, help] = filterHelp[word];
    const words = filterValues[word];
    const value = text(placeholder, words === undefined ? undefined : { words });
    return [word, many(`--${word}`, value, help)];
  }),
) as Readonly<Record<FilterWord, Many<string>>>;

const negation: OptionValue<GivenFilter> = {
  placeholder: 'FILTER=VALUE',
  offers: { words: filterWords.map((word) => `${word}=`) },
  read(given, name) {
    const equals = given.indexOf('=');
    const word = filterWords.find((each) => each === given.slice(0, equals));
    if (word !== undefined) return { word, value: given.slice(equals + 1), negated: true };
    throw usage(
      `${name} takes a filter and its value, not "${given}"`,
      'As in: --not namespace=kube-system',
    );
  },
};

const table = {
  ...group('Where from', {
    ...liveSourceOptions,
    dnstap: one(
      '--dnstap',
      text('unix:PATH|tcp:IP:PORT'),
      'listen there for programs that deliver dnstap',
    ),
  }),
  ...group('Filters', {
    ...filterOptions,
    not: many('--not', negation, 'all but these: --not namespace=kube-system'),
  }),
  ...group('Names of pods', {
    ...ownerOptions,
  }),
  ...group('How much', {
    count: one(
      '-c, --count',
      integer('N', 1, 4_294_967_295),
      'end after so many exchanges, or lookups',
    ),
    for: one('--for', duration(1, 86_400_000 * 7), 'end after this time: 30s, 5m'),
  }),
  ...group('Output', {
    output: one('-o, --output', choice('FORMAT', outputs), outputs.join(', ')),
    clients: one(
      '--clients',
      integer('N', 0, CLIENTS_MAX),
      'list so many at the end with their resolvers, in JSON too (10; -o clients: 1000)',
    ),
    write: one('-w, --write', file(), 'the packets into this file, as pcapng, besides'),
    ...redactionOptions,
    quiet: flag('-q, --quiet', 'no progress, no summary'),
    ...colourOptions,
  }),
};

/** What `join` would pass over: it compares whole captures. */
const ofShow = ['count', 'for', 'write', 'quiet', 'clients'] as const;

/** The help of `ndots capture`. */
export const captureUsage: Usage = {
  synopsis: '[FILE…|-] | -i INTERFACE | join FILE FILE…',
  examples: [
    ['-i any', 'every query on this machine'],
    ['node7.pcap --verdict lost', 'what was not answered, of a file'],
    ['node7.pcap -o flow', 'lookups: what one call of a program sent'],
    ['node7.pcap -o clients', 'who asks, by which resolver'],
    ['join client.pcap server.pcap', 'where queries were lost'],
  ],
  style: 'gnu',
  options: table,
  notes: [
    'Files: pcap, pcapng, dnstap (Frame Streams), query logs of CoreDNS and ndots; also compressed by gzip or zstd; - is standard input: tcpdump -w - port 53 | ndots capture -',
    'Filters with one word are alternatives, different words must all hold. Exit codes: 0 shown, 1 nothing to show, 2 could not be read, 3 wrong usage. More: docs/capture.md',
  ],
  words: { files: true },
};

/** Throws a `Problem` with the code `usage`. */
export function parseCaptureOptions(given: readonly string[]): CaptureOptions {
  const { values, words } = parseOptions(table, given);
  const joins = words[0] === 'join';
  const files = joins ? words.slice(1) : words;
  const netns = namespaceOf(values);
  const live = values.device !== null || values.dnstap !== null || netns !== null;
  if (joins && files.length < 2)
    throw usage('join takes two captures or more', 'In the order of the way: client, node, server');
  if (live && files.length > 0)
    throw usage(
      'either files or a live capture, not both',
      'Files are read without -i, --netns, --pid and --dnstap',
    );
  if (values.device === null && values.dnstap !== null && netns !== null)
    throw usage('--dnstap listens in the network namespace of ndots', 'Packets: -i any besides');
  if (!live && files.length === 0)
    throw usage('what is to be read?', 'A file, - for standard input, or -i any');
  const filters = [
    ...filterWords.flatMap((word) =>
      values[word].map((value) => ({ word, value, negated: false })),
    ),
    ...values.not,
  ];
  const cluster = values.cluster || namesCluster(values);
  const nameless =
    cluster || values.manifests !== null
      ? undefined
      : filters.find(({ word }) => ofOwners.has(word));
  if (nameless !== undefined)
    throw usage(
      `--${nameless.negated ? `not ${nameless.word}=` : nameless.word} goes with --cluster or --manifests`,
      'A capture has addresses alone; whose they are is read there.',
    );
  const output = values.output ?? 'text';
  if (joins && output !== 'text' && output !== 'json') throw usage('join shows text or json');
  const other = joins ? firstGiven(table, values, ofShow) : null;
  if (other !== null) throw usage(`join takes no ${other}`);
  // Lines of JSON are queries alone, unless more is asked for: programs read them.
  const isOutput = output === 'clients' || (output === 'json' && values.clients !== null);
  const usual = isOutput ? CLIENTS.list : values.quiet ? 0 : CLIENTS.behind;
  return {
    action: joins ? 'join' : 'show',
    files,
    device: values.device ?? (netns === null || values.dnstap !== null ? null : 'any'),
    netns,
    dnstap: values.dnstap,
    ports: values.ports,
    filters,
    count: values.count,
    clients: { most: values.clients ?? usual, in: isOutput ? 'output' : 'summary' },
    forMs: values.for,
    output,
    write: values.write,
    redactKey: redactionKey(values),
    manifests: values.manifests,
    cluster,
    ...clusterGiven(values),
    color: values.color,
    noColor: values.noColor,
    quiet: values.quiet,
  };
}
