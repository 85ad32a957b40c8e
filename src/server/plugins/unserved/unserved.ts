/** Directives of CoreDNS that are understood, and refused. */
import type { Place, Problem } from '../../base/problem.ts';
import { pluginProblem } from '../../corefile/problems.ts';
import { directive, type Syntax } from '../../corefile/syntax.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';

/** A directive of CoreDNS that is read as CoreDNS reads it, and then refused. */
export interface Unserved {
  /** CoreDNS's syntax of the directive: mistakes are reported first, in CoreDNS's words. */
  readonly shape: Pick<Syntax, 'name' | 'summary' | 'args' | 'properties'>;
  /** One sentence that says why it is not served here; `{name}` at its start is the directive. */
  readonly why: string;
  readonly instead: string;
}

/**
 * The plugin that refuses the directive, at its place in the Corefile. It never becomes a part of a
 * server.
 */
export function refusing({ shape, why, instead }: Unserved): Plugin {
  const refusal = (at: Place): Problem =>
    pluginProblem(shape.name, at, `${shape.name} is not served here: ${why}`, {
      code: 'directive-not-served',
      remedy: instead,
    });
  return definePlugin({
    syntax: directive({ ...shape, repeat: 'each', check: (_options, at) => [refusal(at)] }),
  });
}
