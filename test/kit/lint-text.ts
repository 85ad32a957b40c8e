/** Lints texts the way `ndots lint --live` lints files, in the world used by the rules' examples. */
import { lint, type LintReport } from '../../src/tools/lint/lint.ts';
import { askLive } from '../../src/tools/lint/live/live-rule.ts';
import { liveRules } from '../../src/tools/lint/live/live-rules.ts';
import { exampleWorld } from './example-world.ts';
import { parseTarget } from '../../src/tools/lint/target.ts';
import { rules } from '../../src/tools/lint/plugins/lint-rules.ts';
import { directiveNames, external, loadPlugins } from '../../src/server/plugins/order.ts';

/** Maps file names to texts. `running` and `target` are the command's options. */
export interface LintTexts {
  readonly files: Readonly<Record<string, string>>;
  readonly target?: string;
  readonly running?: string;
  /** True to query the upstreams. True by default. */
  readonly live?: boolean;
}

/** The linter's findings for these texts. */
export function lintTexts({ files, target, running, live = true }: LintTexts): Promise<LintReport> {
  return lint({
    given: {
      files: Object.entries(files).map(([file, text]) => ({ file, text, named: true })),
      passed: [],
    },
    plugins: { directives: directiveNames, external, load: loadPlugins },
    rules: [...rules, ...liveRules],
    ...(live && { live: (subject) => askLive(liveRules, subject, exampleWorld) }),
    target: target === undefined ? null : parseTarget(target),
    running: running === undefined ? null : { file: 'running', text: running, named: true },
  });
}
