/**
 * Finds unused files and exports. With `--production` it reads only `src/`. Code that only tests use then counts as
 * unused. Exceptions are code that its own file uses, and docstrings with `@public`, for future plugins and commands.
 */
import type { KnipConfig } from 'knip';

const production = process.argv.includes('--production');

const config: KnipConfig = {
  entry: [
    'src/faces/cli/main.ts!',
    // Thread entry points.
    'src/server/engine/worker/worker-thread.ts!',
    'src/server/zone/zone-thread.ts!',
    'src/server/kube/manifests/read-thread-entry.ts!',
    // The playground's page and worker, its links for other pages, and its replacements for Node modules.
    'src/faces/playground/{page,engine-worker,link}.ts!',
    'src/faces/playground/machine/*.ts!',
    'src/faces/console/{console,tool-worker}.ts!',
    // Converts a Corefile to canonical text, which tests compare with the parser's result.
    'src/server/corefile/print.ts!',
    '{src,test,tools,bench}/**/*.test.ts',
    '{bench,tools}/*.ts!',
    // Programs that tests and people start.
    'bench/peers/{dnstap-sink,memory-reader}.ts!',
    'test/fuzz/make-corpus.ts',
    'test/kit/{record,measure-traits}.ts',
    'test/kit/scripted-server.ts',
    'test/kit/{delayed-answers,query-stream,under-seccomp}.ts',
    'test/kit/apiserver/{main,measure-source}.ts',
    'test/node/stream-client.ts',
  ],
  project: ['{src,bench,tools}/**/*.ts!', '!{src,tools,bench}/**/*.test.ts!', 'test/**/*.ts'],
  // knip mistakes the first for a Node module, while the bundler replaces `node:path` with the second.
  ignoreDependencies: ['buffer', 'pathe'],
  ignoreExportsUsedInFile: production || { interface: true, type: true },
  // A constant may have two names: `integer` and `seconds`, for example, are parsed alike. The site generator's
  // configuration has its own packages.
  ignore: ['tools/site/**'],
  exclude: ['binaries', 'unresolved', 'duplicates'],
};

export default config;
