/** CoreDNS directives that are parsed and then rejected. */
import type { Place, Problem } from '../../base/problem.ts';
import { pluginProblem } from '../../corefile/problems.ts';
import { directive, type Syntax } from '../../corefile/syntax.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';

/** A CoreDNS directive that is parsed as in CoreDNS, but then rejected. */
export interface Unserved {
  /** CoreDNS's syntax for the directive. Syntax errors are reported first, in CoreDNS's wording. */
  readonly shape: Pick<Syntax, 'name' | 'summary' | 'args' | 'properties'>;
  /** One sentence that explains why it is not served here. A `{name}` at its start is replaced by the directive. */
  readonly why: string;
  readonly instead: string;
}

/** Returns a plugin that rejects the directive at its location in the Corefile. It never becomes part of a server. */
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
