/** The command line of `ndots diff`. */
import { group, one, type Usage } from '../option.ts';
import { colourOptions, type ColourOptions } from '../colour-options.ts';
import { parseOptions } from '../option-parse.ts';
import { choice, file, usage } from '../option-values.ts';

/** What the command line of `ndots diff` says. */
export interface DiffOptions extends ColourOptions {
  readonly before: string;
  readonly after: string;
  readonly manifests: string | null;
  readonly names: string | null;
  /** The least difference that counts. */
  readonly failOn: 'answers' | 'upstreams' | 'ttls' | 'never';
  readonly output: 'text' | 'json';
}

const table = {
  ...group('Questions', {
    manifests: one(
      '--manifests',
      file('DIR'),
      'objects of the cluster, for both sides (default: the example cluster)',
    ),
    names: one(
      '--names',
      file(),
      'more names: one a line, with types behind it if need be; or a log, a capture, a dnstap file',
    ),
  }),
  ...group('Output', {
    output: one('-o, --output', choice('FORMAT', ['text', 'json']), 'text or json'),
    failOn: one(
      '--fail-on',
      choice('DIFFERENCE', ['answers', 'upstreams', 'ttls', 'never']),
      'exit 1 from this difference on: other answers, other upstreams, other TTLs (default ttls: any)',
    ),
    ...colourOptions,
  }),
};

/** The help of `ndots diff`. */
export const diffUsage: Usage = {
  synopsis: 'BEFORE AFTER',
  examples: [
    ['Corefile Corefile.new', 'which answers the new one changes'],
    ['old.yaml new.yaml --manifests objects/', 'Corefiles in ConfigMaps'],
    ['old new --names queries.log --fail-on answers', 'TTLs may change'],
  ],
  style: 'gnu',
  options: table,
  notes: [
    'BEFORE and AFTER are Corefiles, ConfigMaps that hold one, or values of the CoreDNS chart; - is standard input. Both are served in this process, without a socket and in virtual time, for the same objects; what stands for upstreams answers by the name alone, and shows which of them was asked.',
    'The questions come from the configurations: a name in, at and beside each zone, host, rewrite, template, rule and view of either side, names of the objects, and each question a second time for the cache.',
    'Exit codes: 0 the same, 1 answers differ (or AFTER cannot be served), 2 it could not be found out, 3 wrong usage.',
  ],
  words: { files: true },
};

/** Reads the command line of `ndots diff`. Throws a `Problem` (`usage`). */
export function parseDiffOptions(words: readonly string[]): DiffOptions {
  const { values, words: paths } = parseOptions(table, words);
  const [before, after, ...more] = paths;
  if (before === undefined || after === undefined || more.length > 0)
    throw usage('diff takes two Corefiles', 'As in: ndots diff Corefile Corefile.new');
  if (before === '-' && after === '-') throw usage('standard input can be one of the two');
  return {
    ...values,
    before,
    after,
    failOn: values.failOn ?? 'ttls',
    output: values.output ?? 'text',
  };
}
