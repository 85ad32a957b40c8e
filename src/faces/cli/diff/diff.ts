/** `ndots diff BEFORE AFTER`: shows which replies are affected by a configuration change. */
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Problem, Problems } from '../../../server/base/problem.ts';
import { differences, type Comparison, type AskingMoment } from '../../../tools/diff/compare.ts';
import { compareCorefiles, type NamedCorefileText } from '../../../tools/diff/both-sides.ts';
import { sortInputs } from '../../../tools/lint/inputs.ts';
import { loadPlugins } from '../../../server/plugins/order.ts';
import { EXIT, wantsColour, type Command, type Io } from '../command.ts';
import { parseDiffOptions, type DiffOptions } from './diff-options.ts';
import { readNames } from './diff-names.ts';
import { givenText } from '../named-file.ts';
import { comparisonDocument, printComparison } from './diff-text.ts';
import { parseStartedCorefile, type CorefileText } from '../parse-corefile.ts';
import { tellProblems } from '../problem-text.ts';

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
      plugins: loadPlugins,
      parse: (corefile: CorefileText) => parseStartedCorefile(corefile),
      told: (problem: Problem) => tellProblems('diff', [problem], io),
    };
    const found = await compareCorefiles(before, after, common, (at, of, moment) =>
      io.progress(() => `question ${at} of ${of}${momentText[moment]}`),
    );
    if (!(found instanceof Problems)) return show(found, options, io);
    tellProblems('diff', found.problems, io);
    io.err(`ndots diff: ${after.file} cannot be served, so every answer changes\n`);
    return EXIT.no;
  },
};

/** Describes when a query is sent. Printed after the query count. */
const momentText: Readonly<Record<AskingMoment, string>> = {
  first: '',
  again: ', a second later',
  later: ', after its TTL',
  stale: ', with silent upstreams',
};

const exampleCluster = fileURLToPath(new URL('../../../../examples/cluster', import.meta.url));

/** Reads a Corefile from a plain file, a ConfigMap or chart values. */
async function readCorefile(path: string, io: Io): Promise<NamedCorefileText> {
  const text = await givenText(path, 'Corefile', io);
  const file = path === '-' ? 'stdin' : path;
  const directory = path === '-' ? process.cwd() : dirname(resolve(path));
  const inputs = sortInputs([{ file, text, named: true }]);
  const [problem] = inputs.problems;
  if (problem !== undefined) throw problem;
  const held = inputs.corefiles.filter(({ object }) => object !== null);
  if (held.length > 1)
    throw new Problem({
      code: 'diff-input',
      text: `${file} contains ${held.length} Corefiles`,
      remedy: 'Give a file with one Corefile.',
    });
  if (held.length === 0 && inputs.objects.length > 0)
    throw new Problem({ code: 'diff-input', text: `${file} contains no Corefile` });
  return { file, directory, text: held[0]?.source.text ?? text };
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
