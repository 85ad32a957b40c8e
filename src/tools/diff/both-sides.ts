/** Serves two Corefiles side by side, and sends queries that reveal the differences. */
import { Problems, type Problem } from '../../server/base/problem.ts';
import type { ParseInput, ParseOutput } from '../../server/corefile/parse.ts';
import type { Corefile } from '../../server/corefile/corefile-tree.ts';
import { absoluteName, isDomainName } from '../../server/corefile/zones.ts';
import { readManifestsOnce } from '../../server/kube/manifests/read-once.ts';
import { compare, type AskingMoment, type Comparison } from './compare.ts';
import { objectNames } from './object-names.ts';
import { Side, type SideParts } from './side.ts';
import { witnesses, type NamedType, type Witnesses } from './witnesses.ts';

export interface NamedCorefileText {
  readonly file: string;
  readonly directory: string;
  readonly text: string;
}

/** A Corefile and everything its parsing depends on. */
type ParsedText = Pick<ParseInput, 'file' | 'text' | 'dnsPort' | 'env' | 'syntaxes'>;

export interface CommonParts {
  readonly manifests: string;
  readonly names: readonly NamedType[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly plugins: SideParts['plugins'];
  /** Parses a Corefile in the same way as a server that is starting. */
  parse(corefile: ParsedText): ParseOutput;
  /** Called with warnings: unreadable manifests, an empty Corefile. */
  told?(warning: Problem): void;
}

/** Uses both sides while they are running, and the questions that distinguish them. */
type UseSides<T> = (before: Side, after: Side, asked: Witnesses) => Promise<T>;

/**
 * Serves two Corefiles until `use` returns. Throws `Problems` if the first one cannot be served.
 * @returns the second one's problems if it cannot be served
 */
export async function withBoth<T>(
  before: NamedCorefileText,
  after: NamedCorefileText,
  { manifests, names, env, plugins, parse, told }: CommonParts,
  use: UseSides<T>,
): Promise<T | Problems> {
  const trees: Corefile[] = [];
  const sides = [before, after].map(
    ({ file, directory, text }) =>
      new Side({
        directory,
        manifests,
        env,
        plugins,
        load(syntaxes) {
          const output = parse({ file, text, dnsPort: 53, env, syntaxes });
          trees.push(output.corefile);
          for (const warning of output.warnings)
            if (warning.code === 'corefile-empty') told?.(warning);
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
      await readManifestsOnce(manifests, (problem) => told?.(problem)),
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

/** Removes duplicate listeners. */
function places(all: Side['places']): Side['places'] {
  const found = new Map(all.map((place) => [`${place.address} ${place.port}`, place]));
  return [...found.values()];
}

/** The zones of the clusters that either side serves. */
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

/**
 * Compares two Corefiles.
 * @param progress called before each question
 * @returns the second Corefile's problems if it cannot be served
 * @throws Problems with the first one
 */
export async function compareCorefiles(
  before: NamedCorefileText,
  after: NamedCorefileText,
  common: CommonParts,
  progress: (at: number, of: number, moment: AskingMoment) => void,
): Promise<Comparison | Problems> {
  return withBoth(before, after, common, async (first, second, { questions, left }) => {
    const found = await compare(first, second, questions, { progress });
    return { ...found, left: [...found.left, ...left] };
  });
}
