/**
 * Finds unused files and exports. With `--production` it reads `src/` alone. Code that only tests use then
 * counts as unused, unless its own file uses it, or its docstring has `@public`: made for plugins and verbs
 * to come.
 */
import type { KnipConfig } from 'knip';

const production = process.argv.includes('--production');

const config: KnipConfig = {
  entry: [
    'src/faces/cli/main.ts!',
    // Entry points of threads.
    'src/server/engine/worker/worker-thread.ts!',
    'src/server/zone/zone-thread.ts!',
    'src/server/kube/manifests/read-thread-entry.ts!',
    // The page and the worker of the playground, its links for others, and the replacements of
    // Node's modules.
    'src/faces/playground/{page,engine-worker,link}.ts!',
    'src/faces/playground/machine/*.ts!',
    'src/faces/console/{console,tool-worker}.ts!',
    // The canonical text of a Corefile, which tests compare with the parser's result.
    'src/server/corefile/print.ts!',
    '{src,test,tools,bench}/**/*.test.ts',
    '{bench,tools}/*.ts!',
    // Programs that tests and people start.
    'bench/peers/{dnstap-sink,memory-reader}.ts!',
    'test/fuzz/make-corpus.ts',
    'test/kit/record.ts',
    'test/kit/scripted-server.ts',
    'test/kit/{delayed-answers,query-stream,under-seccomp}.ts',
    'test/kit/apiserver/{main,measure-source}.ts',
    'test/node/stream-client.ts',
  ],
  project: ['{src,bench,tools}/**/*.ts!', '!{src,tools,bench}/**/*.test.ts!', 'test/**/*.ts'],
  // knip treats the first as the module of Node; the bundler replaces `node:path` with the second.
  ignoreDependencies: ['buffer', 'pathe'],
  ignoreExportsUsedInFile: production || { interface: true, type: true },
  // A constant may have two names if the field does: `integer` and `seconds` are parsed alike. The
  // configuration of the site's generator has its own packages.
  ignore: ['tools/site/**'],
  exclude: ['binaries', 'unresolved', 'duplicates'],
};

export default config;
