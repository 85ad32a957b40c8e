/** `root`: the base directory for relative paths in a server block. */
import { statSync } from 'node:fs';
import { Problem } from '../../base/problem.ts';
import { required } from '../../corefile/positions.ts';
import { directive } from '../../corefile/syntax.ts';
import { word } from '../../corefile/word-values.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { errorCode } from '../../base/error-code.ts';
import { whyFailed } from '../../base/why-failed.ts';

const syntax = directive({
  name: 'root',
  summary: 'sets the base directory for relative file names',
  repeat: 'last',
  args: {
    path: required(word('PATH'), {
      help: 'a directory, relative to the one that contains the Corefile',
    }),
  },
});

/** Affects only the configuration, by setting the directory for files used by the block's other plugins. */
export const root: Plugin = definePlugin({
  syntax,
  plan({ path }, plan) {
    plan.root = path;
  },
  control(_options, context) {
    const directory = context.path('.');
    try {
      statSync(directory);
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') {
        throw new Problem({
          code: 'root-unreadable',
          text: `unable to access root path '${directory}': ${whyFailed(error)}`,
          remedy: `Check the path and its permissions: ls -ld ${directory}`,
          cause: error,
        });
      }
      // It may be created later.
      context.log.warning(`Root path does not exist: ${directory}`);
    }
  },
});
