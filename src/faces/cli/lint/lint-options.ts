/** The command line of `ndots lint`. */
import { existsSync } from 'node:fs';
import { parseTarget, type LintTarget } from '../../../tools/lint/target.ts';
import type { LintSeverity } from '../../../tools/lint/finding.ts';
import {
  clusterNames,
  clusterOptions,
  namesCluster,
  type ClusterOptions,
} from '../cluster-options.ts';
import { beside, flag, group, many, one, type OptionValue, type Usage } from '../option.ts';
import { colourOptions, type ColourOptions } from '../colour-options.ts';
import { firstBeside, parseOptions } from '../option-parse.ts';
import { choice, duration, file, namespaceName, usage } from '../option-values.ts';

export interface LintOptions extends ClusterOptions, ColourOptions {
  /** Defaults to `Corefile` in the current directory. `-` is standard input. */
  readonly paths: readonly string[];
  readonly cluster: boolean;
  /** Namespace of the DNS servers. */
  readonly namespace: string;
  readonly target: LintTarget | null;
  readonly running: string | null;
  /** Also runs rules that query the network. */
  readonly live: boolean;
  /** Timeout of each of these queries, milliseconds. */
  readonly timeoutMs: number;
  /** Changes the files. False with `--diff`. */
  readonly fix: boolean;
  /** Shows what `--fix` would change. */
  readonly diff: boolean;
  readonly explain: string | null;
  readonly rules: boolean;
  readonly failOn: LintSeverity | 'never';
  readonly ignore: readonly string[];
  readonly only: readonly string[];
  readonly severity: readonly { readonly code: string; readonly severity: LintSeverity }[];
  readonly output: LintOutput;
}

const outputs = ['text', 'json', 'sarif', 'github', 'junit'] as const;
export type LintOutput = (typeof outputs)[number];

const targetValue: OptionValue<LintTarget> = {
  placeholder: 'TARGET',
  offers: { words: ['ndots', 'coredns@1.14.7', 'coredns@1.11.3', 'node-cache@1.26.7'] },
  read: (given) => parseTarget(given),
};

const code: OptionValue<string> = {
  placeholder: 'CODE',
  offers: {
    words: async () =>
      (await import('./lint-rules.ts')).lintRules.map((rule) => rule.code).toSorted(),
  },
  read: (given) => given.toUpperCase(),
};

const codes: OptionValue<readonly string[]> = {
  placeholder: 'CODE,…',
  offers: { ...code.offers, list: true },
  read: (given) =>
    given
      .toUpperCase()
      .split(',')
      .filter((word) => word !== ''),
};

const level: OptionValue<{ readonly code: string; readonly severity: LintSeverity }> = {
  placeholder: 'CODE=LEVEL',
  read(given, name) {
    const [, of = '', severity = ''] = /^(\w+)=(error|warning|note)$/i.exec(given) ?? [];
    if (of === '')
      throw usage(`${name} takes CODE=error, CODE=warning or CODE=note, not "${given}"`);
    return { code: of.toUpperCase(), severity: severity.toLowerCase() as LintSeverity };
  },
};

const table = {
  ...group('Input', {
    cluster: flag('--cluster', 'check what runs in the current kubectl cluster'),
    ...clusterOptions,
    ...beside(clusterNames, {
      namespace: one(
        '-n, --namespace',
        namespaceName,
        'namespace of the DNS servers (kube-system)',
      ),
    }),
    running: one('--running', file(), 'Corefile in use, to check the effects of the change'),
  }),
  ...group('Rules', {
    target: one(
      '--target',
      targetValue,
      'check for ndots, coredns@VERSION or node-cache@VERSION (ndots)',
    ),
    ignore: many('--ignore', codes, 'skip these rules'),
    only: many('--only', codes, 'apply only these rules'),
    severity: many('--severity', level, 'change a severity, as in CF10=note'),
    explain: one('--explain', code, 'explain a rule and exit; --rules lists their codes'),
    rules: flag('--rules', 'list the rules and exit'),
  }),
  ...group('Live checks (--live)', {
    live: flag('--live', 'also query upstreams, hosts and search domains, and compare the results'),
    ...beside(['--live'], {
      timeout: one('--timeout', duration(10, 60_000), 'limit per query (2s)'),
    }),
  }),
  ...group('Fixes', {
    fix: flag('--fix', 'apply safe fixes: print the change, then write it'),
    diff: flag('--diff', 'print that change without writing it, also if --fix is given'),
  }),
  ...group('Output', {
    output: one('-o, --output', choice('FORMAT', outputs), 'text, json, sarif, github or junit'),
    failOn: one(
      '--fail-on',
      choice('SEVERITY', ['error', 'warning', 'note', 'never']),
      'lowest severity that makes the exit code 1 (error)',
    ),
    ...colourOptions,
  }),
};

/** Options for `--explain` and `--rules`. */
const ofListing = ['explain', 'rules', 'output', 'color', 'noColor'] as const;

export const lintUsage: Usage = {
  synopsis: '[PATH…]',
  examples: [
    ['lint Corefile', 'check one file'],
    ['lint deploy/ --target coredns@1.11.3', 'check manifests for an older release'],
    ['lint --cluster', 'check the current kubectl cluster'],
    ['lint --explain CF07', 'explain a rule'],
  ].map(([words, what]) => [words!.replace(/^lint /, ''), what!] as const),
  style: 'gnu',
  options: table,
  notes: [
    'PATH is a Corefile, a YAML or JSON file, a directory of these, or - for standard input (default: ./Corefile). In YAML, lint checks ConfigMaps with a Corefile or with *.override and *.server, CoreDNS chart values, Deployments and DaemonSets of DNS servers, pods with dnsConfig, Services, NetworkPolicies, webhooks and kubelet settings. It sends nothing unless --cluster or --live is given.',
    'To silence a finding, add a comment to its line or above it: # ndots:ignore CF07 because REASON. For a whole file: # ndots:ignore-file CF31 because REASON.',
    'Exit codes: 0 no finding at or above --fail-on, 1 findings, 2 a file could not be read or nothing to lint, 3 usage error.',
  ],
  words: { files: true },
};

/** @throws Problem (`usage`) */
export function parseLintOptions(words: readonly string[]): LintOptions {
  const { values, words: paths } = parseOptions(table, words);
  const isListed = values.explain !== null || values.rules;
  if (isListed && !['text', 'json'].includes(values.output ?? 'text'))
    throw usage(`${values.rules ? '--rules' : '--explain'} takes -o text or -o json`);
  if (isListed) {
    const other = paths[0] ?? firstBeside(table, values, ofListing);
    if (other !== null)
      throw usage(
        `${values.rules ? '--rules' : '--explain'} does not accept input: omit "${other}"`,
      );
    if (values.rules && values.explain !== null)
      throw usage('--rules and --explain cannot be combined');
  }
  const rule = paths.find((path) => /^CF\d{1,2}$/i.test(path) && !existsSync(path));
  if (rule !== undefined)
    throw usage(
      `${rule} is the code of a rule, and there is no such file`,
      `To explain it: ndots lint --explain ${rule.toUpperCase()}`,
    );
  const cluster = values.cluster || namesCluster(values);
  if ((values.fix || values.diff) && (paths.includes('-') || cluster))
    throw usage('--fix and --diff work on files, not on standard input or the cluster');
  return {
    ...values,
    paths,
    cluster,
    fix: values.fix && !values.diff,
    namespace: values.namespace ?? 'kube-system',
    ignore: values.ignore.flat(),
    only: values.only.flat(),
    timeoutMs: values.timeout ?? 2000,
    failOn: values.failOn ?? 'error',
    output: values.output ?? 'text',
  };
}
