/** The command line of `ndots doctor`. */
import { existsSync } from 'node:fs';
import { nearest } from '../../../server/base/problem.ts';
import { namesCluster, ownerOptions, type ClusterOptions } from '../cluster-options.ts';
import { parseName, printName } from '../../../server/wire/name.ts';
import {
  liveNames,
  liveSourceOptions,
  namespaceOf,
  redactionKey,
  redactionOptions,
} from '../live-source-options.ts';
import { beside, flag, group, many, one, type OptionValue, type Usage } from '../option.ts';
import { colourOptions, type ColourOptions } from '../colour-options.ts';
import { firstBeside, firstGiven, parseOptions } from '../option-parse.ts';
import { choice, duration, file, namespaceName, text, usage } from '../option-values.ts';

export interface DoctorOptions extends ClusterOptions, ColourOptions {
  readonly files: readonly string[];
  /** True for `doctor cluster`, which examines the running cluster. */
  readonly living: boolean;
  /** Namespace of the DNS pods. */
  readonly namespace: string;
  readonly domain: string | null;
  /** Absolute external names to query. */
  readonly names: readonly string[];
  /** Timeout for each query to a running cluster, milliseconds. */
  readonly timeoutMs: number;
  readonly rbac: boolean;
  readonly device: string | null;
  readonly netns: string | null;
  readonly forMs: number | null;
  readonly ports: readonly number[] | null;
  /** Codes, or prefixes of codes: `ND3`. */
  readonly only: readonly string[];
  readonly skip: readonly string[];
  readonly failOn: 'critical' | 'warning' | 'info' | 'never';
  readonly output: 'text' | 'json';
  /** The file to write packets to, from exchanges mentioned in findings. */
  readonly evidence: string | null;
  readonly explain: string | null;
  /** Lists causes that have been ruled out or cannot be checked. */
  readonly ruledOut: boolean;
  readonly redactKey: string | null;
  readonly manifests: string | null;
  readonly cluster: boolean;
  readonly quiet: boolean;
}

/** Removes duplicates, because several kinds may have the same code. */
const knownCodes = async (): Promise<readonly string[]> => {
  const { findingKinds } = await import('../../../tools/doctor/findings/table.ts');
  return [...new Set(findingKinds.map(({ code }) => code))].toSorted();
};

const codes: OptionValue<readonly string[]> = {
  placeholder: 'CODE,…',
  offers: {
    list: true,
    words: knownCodes,
  },
  read(given, name) {
    const list = given.toUpperCase().split(',');
    if (list.every((code) => /^ND\d{0,4}$/.test(code))) return list;
    throw usage(
      `${name} takes codes of findings or prefixes of codes, not "${given}"`,
      'Example: ND3001,ND4',
    );
  },
};

const table = {
  ...group('Where from', {
    ...liveSourceOptions,
    ...beside([...liveNames, 'cluster'], {
      for: one(
        '--for',
        duration(1, 86_400_000 * 7),
        'observe live traffic for this long (60s; a cluster: 5s)',
      ),
    }),
  }),
  ...group('Findings', {
    only: many('--only', codes, 'only these findings; ND3 selects all ND3xxx'),
    skip: many('--skip', codes, 'not these findings'),
    failOn: one(
      '--fail-on',
      choice('SEVERITY', ['critical', 'warning', 'info', 'never']),
      'lowest severity that makes the exit code 1 (critical)',
    ),
    ruledOut: flag('--ruled-out', 'list the causes that were ruled out or could not be checked'),
    explain: one('--explain', text('CODE', { words: knownCodes }), 'explain a finding and exit'),
  }),
  ...group('Cluster (cluster)', {
    namespace: one('-n, --namespace', namespaceName, 'namespace of the DNS pods (kube-system)'),
    domain: one(
      '--cluster-domain',
      text('NAME'),
      'cluster domain, if the Corefile has none (cluster.local)',
    ),
    names: many('--name', text('NAME'), 'external name to look up'),
    timeout: one('--timeout', duration(10, 60_000), 'limit per query (2s)'),
    rbac: flag('--rbac', 'print the RBAC rules it needs, and exit'),
  }),
  ...group('Pod names', {
    ...ownerOptions,
  }),
  ...group('Output', {
    output: one('-o, --output', choice('FORMAT', ['text', 'json']), 'text or json'),
    evidence: one(
      '--evidence',
      file(),
      'write the packets behind the findings to this pcapng file',
    ),
    ...redactionOptions,
    quiet: flag('-q, --quiet', 'print no progress'),
    ...colourOptions,
  }),
};

const ofExplain = ['explain', 'output', 'quiet', 'color', 'noColor'] as const;
const ofCluster = ['namespace', 'domain', 'names', 'timeout'] as const;

export const doctorUsage: Usage = {
  synopsis: 'FILE…|- | cluster | -i INTERFACE [--for TIME]',
  examples: [
    ['node7.pcap', 'diagnose a capture'],
    ['node7.pcap coredns.log conntrack.txt', 'add logs and counters'],
    ['-i any --for 60s', 'diagnose one minute of live traffic'],
    ['cluster', 'diagnose the current kubectl cluster'],
    ['--explain ND3001', 'explain a finding'],
  ],
  style: 'gnu',
  options: table,
  notes: [
    'Reads captures (pcap, pcapng), dnstap, query logs, and the output of conntrack -S, sysctl -a, dmesg, ethtool -S and /metrics, also compressed. For standard input give -.',
    'Exit codes: 0 no finding at or above --fail-on, 1 findings, 2 could not be read, 3 usage error. More: docs/doctor.md',
  ],
  words: { files: true, words: ['cluster'] },
};

/** @throws Problem (`usage`) */
export function parseDoctorOptions(given: readonly string[]): DoctorOptions {
  const { values, words: all } = parseOptions(table, given);
  const words = all.filter((word) => word !== 'cluster');
  const living = words.length < all.length;
  const mistyped = words.find((word) => nearest(word, ['cluster']) !== null && !existsSync(word));
  if (mistyped !== undefined)
    throw usage(`there is no file ${mistyped}`, 'Did you mean cluster: ndots doctor cluster?');
  const code = words.find((word) => /^ND\d{1,4}$/i.test(word) && !existsSync(word));
  if (code !== undefined)
    throw usage(
      `${code} is the code of a finding, and there is no such file`,
      `To explain it: ndots doctor --explain ${code.toUpperCase()}`,
    );
  const idle = values.rbac ? '--rbac' : values.explain === null ? null : '--explain';
  if (idle !== null) {
    // --rbac may be combined with the words for a cluster, to print the rights they need.
    const other = words[0] ?? (values.rbac ? null : firstBeside(table, values, ofExplain));
    if (other !== null) throw usage(`${idle} does not accept input: omit "${other}"`);
  }
  const netns = namespaceOf(values);
  const device = values.device ?? (netns === null ? null : 'any');
  if (device !== null && words.length > 0)
    throw usage('either files or a live capture, not both', 'Files are read without -i');
  if (device === null && all.length === 0 && values.explain === null && !values.rbac)
    throw usage(
      'nothing to examine',
      'A capture, - for standard input, -i any --for 60s, or cluster',
    );
  const lonely = firstGiven(table, values, ofCluster);
  if (!living && idle === null && lonely !== null)
    throw usage(`${lonely} needs a cluster`, 'Example: ndots doctor cluster');
  const unread = living && words.length === 0 && device === null;
  const ofCaptures = unread ? firstGiven(table, values, ['ports', 'evidence']) : null;
  if (ofCaptures !== null)
    throw usage(`${ofCaptures} needs a capture`, 'Name one as well, or -i any.');
  if (living && (values.redact || values.redactKey !== null))
    throw usage('--redact needs a capture', 'A report on a running cluster contains its names.');
  return {
    ...values,
    files: words,
    living,
    namespace: values.namespace ?? 'kube-system',
    domain: values.domain === null ? null : absolute(values.domain).slice(0, -1),
    names: values.names.map(absolute),
    timeoutMs: values.timeout ?? 2000,
    device,
    netns,
    forMs: values.for,
    only: values.only.flat(),
    skip: values.skip.flat(),
    failOn: values.failOn ?? 'critical',
    output: values.output ?? 'text',
    redactKey: redactionKey(values),
    cluster: values.cluster || namesCluster(values),
  };
}

function absolute(name: string): string {
  try {
    return printName(parseName(name.endsWith('.') ? name : `${name}.`));
  } catch (error) {
    throw usage(`"${name}" is not a name: ${(error as Error).message}`);
  }
}
