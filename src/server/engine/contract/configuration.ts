/** Turns a Corefile's tree into a configuration by parsing each directive with its plugin's syntax. */
import { Problem } from '../../base/problem.ts';
import type { PropertySchema } from '../../corefile/properties.ts';
import { bindDirective } from '../../corefile/syntax.ts';
import type { Corefile, Directive, ServerBlock } from '../../corefile/corefile-tree.ts';
import { makePlan, type BlockPlan } from './block-plan.ts';
import type { Plugin } from './plugin.ts';
import { defaultWorkers } from './worker-shares.ts';

/** One use of a plugin in a server block. */
export interface Instance {
  readonly plugin: Plugin;
  readonly options: never;
  /** An id that is unique within the configuration and identical on all threads, e.g. `0/forward/1`. */
  readonly id: string;
}

export interface BoundBlock {
  readonly block: ServerBlock;
  readonly zones: readonly string[];
  /** In chain order. */
  readonly instances: readonly Instance[];
  readonly plan: BlockPlan;
  readonly view: string;
  /** True if all its directives were parsed without problems. */
  readonly sound: boolean;
}

/** A whole Corefile, as far as it could be parsed, with any problems found. */
export interface Configuration {
  readonly blocks: readonly BoundBlock[];
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}

/**
 * Parses every directive in a Corefile. All problems are found in a single pass, in CoreDNS's order: by plugin in chain
 * order, and for each plugin by block. It has no side effects, so the main thread and the workers get the same result
 * from the same tree.
 * @param plugins in chain order
 */
export function bindConfiguration(corefile: Corefile, plugins: readonly Plugin[]): Configuration {
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  const drafts = corefile.blocks.map((block) => {
    const zones = [...new Set(block.keys.map(({ zone }) => zone))];
    return { block, zones, instances: [] as Instance[], plan: makePlan(zones), sound: true };
  });
  for (const plugin of plugins) {
    drafts.forEach((draft, index) => {
      const { block, zones, instances, plan } = draft;
      const uses = usesOf(plugin, block.directives);
      if (uses.length === 0) return;
      const bound = bindDirective(plugin.syntax, uses, { zones });
      problems.push(...bound.problems);
      warnings.push(...bound.warnings);
      if (bound.problems.length > 0) {
        draft.sound = false;
        return;
      }
      bound.options.forEach((options, nth) => {
        instances.push({ plugin, options: options as never, id: `${index}/${plugin.name}/${nth}` });
        const problem = planned(plugin, options as never, plan, uses[nth] ?? uses[0]!);
        if (problem === null) return;
        problems.push(problem);
        draft.sound = false;
      });
    });
  }
  return {
    blocks: drafts.map((draft) => ({ ...draft, view: draft.plan.view })),
    problems,
    warnings,
  };
}

/** Returns the number of workers, as given by `multisocket` but no more than there are CPUs. */
export function workersWanted({ blocks }: Configuration, processors: number): number {
  const asked = Math.max(0, ...blocks.map(({ plan }) => plan.sockets));
  return asked > 0 ? Math.min(asked, processors) : defaultWorkers(processors);
}

/**
 * Returns the tree that workers bind, without lines that only control parts need. Twenty thousand lines of hosts would
 * take ten megabytes or more in each worker.
 */
export function forWorkers(corefile: Corefile, plugins: readonly Plugin[]): Corefile {
  const syntaxes = new Map(plugins.map(({ name, syntax }) => [name, syntax]));
  const blocks = corefile.blocks.map((block) => ({
    ...block,
    directives: block.directives.map((directive) =>
      withoutControlLines(directive, Object.values(syntaxes.get(directive.name)?.properties ?? {})),
    ),
  }));
  return { ...corefile, blocks };
}

function withoutControlLines(
  directive: Directive,
  properties: readonly PropertySchema<unknown>[],
): Directive {
  const { block } = directive;
  if (block === null || !properties.some(({ controlOnly }) => controlOnly)) return directive;
  const others = new Set(
    properties.flatMap(({ words, controlOnly }) => (controlOnly ? [] : words)),
  );
  return { ...directive, block: block.filter(({ name }) => others.has(name.text)) };
}

/** Returns the names of all directives in use. */
export function namesIn({ blocks }: Corefile): ReadonlySet<string> {
  return new Set(blocks.flatMap(({ directives }) => directives.map(({ name }) => name)));
}

function usesOf(plugin: Plugin, directives: readonly Directive[]): readonly Directive[] {
  return directives.filter(
    ({ name }) => name === plugin.name || Object.hasOwn(plugin.syntax.formerly, name),
  );
}

/**
 * Runs a plugin's `plan`. Returns the problem if one appears only then (because an interface does not exist, for
 * example).
 */
function planned(plugin: Plugin, options: never, plan: BlockPlan, at: Directive): Problem | null {
  try {
    plugin.plan?.(options, plan);
    return null;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return placed(error, plugin.name, at);
  }
}

/**
 * Returns a plugin's problem with the position of its directive, and with the plugin's name before the text, unless it
 * already includes them.
 */
export function placed(
  problem: Problem,
  plugin: string,
  directive: Directive | undefined,
): Problem {
  if (problem.place !== null || directive === undefined) return problem;
  const { message } = problem;
  const text = message.startsWith('plugin/') ? message : `plugin/${plugin}: ${message}`;
  return problem.with({ text, place: directive.at.place });
}
