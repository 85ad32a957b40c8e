/** The command line of `ndots diff`. */
import { group, one, type Usage } from '../option.ts';
import { colourOptions, type ColourOptions } from '../colour-options.ts';
import { parseOptions } from '../option-parse.ts';
import { choice, file, usage } from '../option-values.ts';

export interface DiffOptions extends ColourOptions {
  readonly before: string;
  readonly after: string;
  readonly manifests: string | null;
  readonly names: string | null;
  /** The smallest difference that makes the command fail. */
  readonly failOn: 'answers' | 'upstreams' | 'ttls' | 'never';
  readonly output: 'text' | 'json';
}

const table = {
  ...group('Questions', {
    manifests: one(
      '--manifests',
      file('DIR'),
      'Kubernetes objects for both sides (default: the example cluster)',
    ),
    names: one(
      '--names',
      file(),
      'also query names from FILE: lines with NAME [TYPE …], a log, capture or dnstap file',
    ),
  }),
  ...group('Output', {
    output: one('-o, --output', choice('FORMAT', ['text', 'json']), 'text or json'),
    failOn: one(
      '--fail-on',
      choice('DIFFERENCE', ['answers', 'upstreams', 'ttls', 'never']),
      'smallest difference that makes the exit code 1: answers, upstreams or ttls (ttls)',
    ),
    ...colourOptions,
  }),
};

export const diffUsage: Usage = {
  synopsis: 'BEFORE AFTER',
  examples: [
    ['Corefile Corefile.new', 'show the answers that change'],
    ['old.yaml new.yaml --manifests objects/', 'Corefiles in ConfigMaps, with your objects'],
    ['old new --names queries.log --fail-on answers', 'ignore changed TTLs'],
  ],
  style: 'gnu',
  options: table,
  notes: [
    'BEFORE and AFTER are Corefiles, ConfigMaps with a Corefile, or CoreDNS chart values (-: standard input). Both run in this process with the same objects, in virtual time, and send no packets. Simulated upstreams answer by name, and record which of them was queried.',
    'The queries come from both configurations: names in, at and next to each zone, host, rewrite, template, rule and view, and the names of the objects. Each query is sent twice, to test the cache.',
    'Exit codes: 0 no difference, 1 answers differ or AFTER cannot be served, 2 could not compare, 3 usage error.',
  ],
  words: { files: true },
};

/** @throws Problem (`usage`) */
export function parseDiffOptions(words: readonly string[]): DiffOptions {
  const { values, words: paths } = parseOptions(table, words);
  const [before, after, ...more] = paths;
  if (before === undefined || after === undefined || more.length > 0)
    throw usage('diff needs two Corefiles', 'Example: ndots diff Corefile Corefile.new');
  if (before === '-' && after === '-') throw usage('only one of the two can be standard input');
  return {
    ...values,
    before,
    after,
    failOn: values.failOn ?? 'ttls',
    output: values.output ?? 'text',
  };
}
