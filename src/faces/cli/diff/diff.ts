/** `ndots diff BEFORE AFTER`: which answers a change of the configuration changes. */
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Problem, Problems } from '../../../server/base/problem.ts';
import type { Corefile } from '../../../server/corefile/corefile-tree.ts';
import {
  compare,
  differences,
  type Comparison,
  type AskingMoment,
} from '../../../tools/diff/compare.ts';
import { objectNames } from '../../../tools/diff/object-names.ts';
import { Side } from '../../../tools/diff/side.ts';
import { witnesses, type NamedType, type Witnesses } from '../../../tools/diff/witnesses.ts';
import { readManifestsOnce } from '../../../server/kube/manifests/read-once.ts';
import { sortInputs } from '../../../tools/lint/inputs.ts';
import { loadPlugins } from '../../../server/plugins/order.ts';
import { isDomainName, absoluteName } from '../../../server/corefile/zones.ts';
import { EXIT, wantsColour, type Command, type Io } from '../command.ts';
import { parseDiffOptions, type DiffOptions } from './diff-options.ts';
import { readNames } from './diff-names.ts';
import { givenText } from '../named-file.ts';
import { comparisonDocument, printComparison } from './diff-text.ts';
import { parseStartedCorefile } from '../parse-corefile.ts';

/** The verb `diff`. */
export const diff: Command = {
  name: 'diff',
  async run(words, io) {
    const options = parseDiffOptions(words);
    const before = await readCorefile(options.before, io);
    const after = await readCorefile(options.after, io);
    const common = {
      manifests: resolve(options.manifests ?? exampleCluster),
      names: options.names === null ? [] : await readNames(options.names, io),
      env: io.env,
      told: (text: string) => io.err(`ndots diff: ${text}\n`),
    };
    let unasked: readonly string[] = [];
    const found = await withBoth(before, after, common, (first, second, { questions, left }) => {
      unasked = left;
      return compare(first, second, questions, {
        progress: (at, of, moment) =>
          io.progress(() => `question ${at} of ${of}${momentText[moment]}`),
      });
    });
    if (!(found instanceof Problems))
      return show({ ...found, left: [...found.left, ...unasked] }, options, io);
    for (const problem of found.problems) io.err(`${problem.print()}\n`);
    io.err(`ndots diff: ${after.file} cannot be served: every answer changes\n`);
    return EXIT.no;
  },
};

/** When a question is asked, behind its number. */
const momentText: Readonly<Record<AskingMoment, string>> = {
  first: '',
  again: ', a second later',
  later: ', when its TTL is over',
  stale: ', with silent upstreams',
};

const exampleCluster = fileURLToPath(new URL('../../../../examples/cluster', import.meta.url));

/** A Corefile, by name and text. */
export interface NamedText {
  readonly file: string;
  readonly folder: string;
  readonly text: string;
}

/** What both sides have in common. */
interface Common {
  readonly manifests: string;
  readonly names: readonly NamedType[];
  readonly env: Io['env'];
  /** Hears what of the manifests could not be read. */
  told?(text: string): void;
}

/** What is done with two sides that serve, and the questions that tell them apart. */
type UseSides<T> = (before: Side, after: Side, asked: Witnesses) => Promise<T>;

/**
 * Serves two Corefiles as long as `use` takes. Throws the `Problems` of a first one that cannot be
 * served.
 * @returns the problems of the second one if it cannot be served
 */
export async function withBoth<T>(
  before: NamedText,
  after: NamedText,
  { manifests, names, env, told }: Common,
  use: UseSides<T>,
): Promise<T | Problems> {
  const trees: Corefile[] = [];
  const sides = [before, after].map(
    ({ file, folder, text }) =>
      new Side({
        file,
        folder,
        manifests,
        env,
        plugins: loadPlugins,
        load(syntaxes) {
          const output = parseStartedCorefile({ file, text, dnsPort: 53, env, syntaxes });
          trees.push(output.corefile);
          for (const warning of output.warnings)
            if (warning.code === 'corefile-empty') told?.(warning.print());
          return output;
        },
      }),
  );
  const [first, second] = [sides[0]!, sides[1]!];
  try {
    const broken = await first.start();
    if (broken.length > 0) throw new Problems(broken);
    const refused = await second.start();
    if (refused.length > 0) return new Problems(refused);
    const objects = objectNames(
      await readManifestsOnce(manifests, (problem) => told?.(problem.print())),
      clusterZones(trees),
    );
    const { questions, left } = witnesses({
      corefiles: trees,
      objects: objects.names,
      clients: objects.clients,
      names,
      places: places([...first.places, ...second.places]),
    });
    return await use(first, second, { questions, left: [...objects.left, ...left] });
  } finally {
    for (const side of sides) await side.stop();
  }
}

/** Each place once. */
function places(all: Side['places']): Side['places'] {
  const found = new Map(all.map((place) => [`${place.address} ${place.port}`, place]));
  return [...found.values()];
}

/** Zones of the clusters that either side serves. */
function clusterZones(trees: readonly Corefile[]): readonly string[] {
  const zones = trees.flatMap(({ blocks }) =>
    blocks.flatMap(({ keys, directives }) =>
      directives
        .filter(({ name }) => name === 'kubernetes')
        .flatMap(({ args }) =>
          args.length === 0
            ? keys.map(({ zone }) => zone)
            : args.map(({ text }) => absoluteName(text.toLowerCase())),
        ),
    ),
  );
  return [...new Set(zones)].filter(
    (zone) => isDomainName(zone) && !/(in-addr|ip6)\.arpa\.$|\//.test(zone),
  );
}

/** The text of a Corefile, or of the one within a ConfigMap or values of the chart. */
async function readCorefile(path: string, io: Io): Promise<NamedText> {
  const text = await givenText(path, 'Corefile', io);
  const file = path === '-' ? 'stdin' : path;
  const folder = path === '-' ? process.cwd() : dirname(resolve(path));
  const inputs = sortInputs([{ file, text, named: true }]);
  const [problem] = inputs.problems;
  if (problem !== undefined) throw problem;
  const held = inputs.corefiles.filter(({ object }) => object !== null);
  if (held.length > 1)
    throw new Problem({
      code: 'diff-input',
      text: `${file} holds ${held.length} Corefiles`,
      remedy: 'Give one file for each.',
    });
  if (held.length === 0 && inputs.objects.length > 0)
    throw new Problem({ code: 'diff-input', text: `${file} holds no Corefile` });
  return { file, folder, text: held[0]?.source.text ?? text };
}

function show(found: Comparison, options: DiffOptions, io: Io): number {
  const { before, after, failOn, output } = options;
  const style = { before, after, colour: wantsColour(options, io), columns: io.columns };
  io.out(
    output === 'json'
      ? `${JSON.stringify(comparisonDocument(found, style), null, 2)}\n`
      : printComparison(found, style),
  );
  if (failOn === 'never') return EXIT.ok;
  const least = differences.indexOf(failOn);
  const counts = found.classes.some(({ kind }) => differences.indexOf(kind) <= least);
  return counts ? EXIT.no : EXIT.ok;
}
