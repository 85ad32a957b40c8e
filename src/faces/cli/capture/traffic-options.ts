/** Options shared by all commands that show live traffic: where packets come from, filters, and names for addresses. */
import { existsSync } from 'node:fs';
import { nearest } from '../../../server/base/problem.ts';
import {
  filterWords,
  ofOwners,
  ofProcesses,
  type FilterWord,
  type GivenFilter,
} from '../../../tools/capture/filter.ts';
import { parseTerm } from '../../../tools/capture/filter-line.ts';
import { namesCluster, ownerOptions } from '../cluster-options.ts';
import { liveFilterWords } from '../live-filters.ts';
import { liveSourceOptions, namespaceOf } from '../live-source-options.ts';
import {
  group,
  many,
  one,
  type Many,
  type One,
  type OptionTable,
  type OptionValue,
  type OptionValues,
} from '../option.ts';
import { text, usage } from '../option-values.ts';

const filterHelp: Readonly<Record<FilterWord, readonly [placeholder: string, help: string]>> = {
  pod: ['[NS/]POD', 'to or from pods whose names start with POD'],
  'from-pod': ['[NS/]POD', 'from these pods'],
  'to-pod': ['[NS/]POD', 'to these pods'],
  namespace: ['NAME', 'from pods in this namespace'],
  workload: ['[NS/]KIND/NAME', 'from pods of this workload, such as deploy/cart'],
  service: ['[NS/]NAME', 'to this service'],
  ip: ['IP[/BITS]', 'to or from this address or prefix'],
  'from-ip': ['IP[/BITS]', 'from this address or prefix'],
  'to-ip': ['IP[/BITS]', 'to this address or prefix, before or after address translation'],
  'server-ip': ['IP[/BITS]', 'to this address or prefix, before address translation'],
  name: ['NAME', 'query name; * is a wildcard, as in *.example.com'],
  type: ['TYPE', 'A, AAAA, SRV …'],
  rcode: ['RCODE', 'NXDOMAIN, SERVFAIL …'],
  verdict: ['VERDICT', 'answered, lost, or error (a reply other than NOERROR or NXDOMAIN)'],
  protocol: ['udp|tcp', 'transport of the query'],
  'slower-than': ['TIME', 'slower than this, and lost'],
  command: ['NAME', 'from processes with this name (capture --process only); * is a wildcard'],
  container: ['ID', 'from the container whose ID starts with this (capture --process only)'],
};

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

const negation = (offered: readonly FilterWord[]): OptionValue<GivenFilter> => ({
  placeholder: 'FILTER=VALUE',
  offers: { words: offered.map((word) => `${word}=`) },
  read(given, name) {
    const filter = parseTerm(given, true);
    if (filter !== null) return filter;
    const meant = nearest(given.split(/[=:]/)[0]!, filterWords);
    throw usage(
      `${name} takes a filter and its value, not "${given}"`,
      meant === null ? 'Example: --not namespace=kube-system' : `Did you mean ${meant}=VALUE?`,
    );
  },
});

export type TrafficTable = Readonly<Record<FilterWord, Many<string>>> & {
  readonly dnstap: One<string>;
  readonly not: Many<GivenFilter>;
} & Pick<typeof liveSourceOptions, keyof typeof liveSourceOptions> &
  Pick<typeof ownerOptions, keyof typeof ownerOptions>;

/** The same options, grouped under their help headings. */
export const trafficOptions: TrafficTable = {
  ...group('Source', {
    ...liveSourceOptions,
    dnstap: one('--dnstap', text('unix:PATH|tcp:IP:PORT'), 'listen here for dnstap senders'),
  }),
  ...group('Filters', {
    ...filterOptions,
    not: many('--not', negation(filterWords), 'exclude matches, as in --not namespace=kube-system'),
  }),
  ...group('Pod names', { ...ownerOptions }),
};

/** The options that help and completion list for a live view, which rejects the filters for processes with a hint. */
export function withoutProcesses(table: OptionTable & Pick<TrafficTable, 'not'>): OptionTable {
  const kept = Object.entries({
    ...table,
    not: { ...table.not, value: negation(liveFilterWords) },
  });
  return Object.fromEntries(kept.filter(([key]) => !ofProcesses.has(key as FilterWord)));
}

export interface TrafficSources {
  readonly files: readonly string[];
  /** Interface or `any`, or null if packets are not captured. */
  readonly device: string | null;
  /** Path to the network namespace to capture in, or null for our own. */
  readonly netns: string | null;
  /** Address to listen on for dnstap: `unix:/run/tap.sock` or `tcp:127.0.0.1:6000`. */
  readonly dnstap: string | null;
  readonly ports: readonly number[] | null;
}

/** @throws Problem (`usage`) */
export function sourcesOf(
  values: OptionValues<Pick<TrafficTable, 'device' | 'dnstap' | 'ports' | 'netns' | 'pid'>>,
  files: readonly string[],
): TrafficSources {
  const { device, dnstap, ports } = values;
  const netns = namespaceOf(values);
  const live = device !== null || dnstap !== null || netns !== null;
  if (live && files.length > 0)
    throw usage(
      'files cannot be combined with a live capture',
      'To read files, omit -i, --netns, --pid and --dnstap',
    );
  if (device === null && dnstap !== null && netns !== null)
    throw usage(
      '--dnstap cannot listen in another network namespace',
      'To capture packets there as well, add -i any',
    );
  for (const file of files) {
    const filter = parseTerm(file, true);
    if (filter !== null && !existsSync(file))
      throw usage(
        `${file} is a filter, and there is no such file`,
        `As an option: --${filter.word} ${filter.value}`,
      );
  }
  if (!live && files.length === 0)
    throw usage('nothing to read', 'Give a file, - for standard input, or -i any');
  return {
    files,
    device: device ?? (netns === null || dnstap !== null ? null : 'any'),
    netns,
    dnstap,
    ports,
  };
}

/**
 * The filters given and where names come from.
 * @param knowsProcesses true if the command finds client processes
 * @throws Problem (`usage`)
 */
export function filtersOf(
  values: OptionValues<TrafficTable>,
  knowsProcesses = false,
): {
  readonly filters: readonly GivenFilter[];
  readonly cluster: boolean;
} {
  const given = [
    ...filterWords.flatMap((word) =>
      values[word].map((value) => ({ word, value, negated: false })),
    ),
    ...values.not,
  ];
  const cluster = values.cluster || namesCluster(values);
  const nameless =
    cluster || values.manifests !== null ? undefined : given.find(({ word }) => ofOwners.has(word));
  if (nameless !== undefined)
    throw usage(
      `--${nameless.negated ? `not ${nameless.word}=` : nameless.word} needs --cluster or --manifests`,
      'A capture contains only addresses; pod names come from --cluster or --manifests.',
    );
  const processless = knowsProcesses ? undefined : given.find(({ word }) => ofProcesses.has(word));
  if (processless !== undefined)
    throw usage(
      `--${processless.negated ? `not ${processless.word}=` : processless.word} needs ndots capture --process`,
      'Example: ndots capture -i any --process --command curl',
    );
  return { filters: given, cluster };
}
