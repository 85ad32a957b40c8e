/**
 * Finds files and exports that are not used. With `--production` it reads `src/` alone, and code that only tests use
 * counts as unused, unless its own file uses it, too, or its docstring says `@public`: made for plugins and verbs to come.
 */
import type { KnipConfig } from 'knip';

const production = process.argv.includes('--production');

const config: KnipConfig = {
  entry: [
    'src/faces/cli/main.ts!',
    // Threads begin there.
    'src/server/engine/worker/worker-thread.ts!',
    'src/server/zone/zone-thread.ts!',
    'src/server/kube/manifests/read-thread-entry.ts!',
    // The page and the worker of the playground, its links for others, and the replacements of
    // Node's modules.
    'src/faces/playground/{page,engine-worker,link}.ts!',
    'src/faces/playground/machine/*.ts!',
    'src/faces/console/console.ts!',
    // The canonical text of a Corefile: what tests hold the parser against.
    'src/server/corefile/print.ts!',
    '{src,test,tools,bench}/**/*.test.ts',
    '{bench,tools}/*.ts!',
    // Programs that tests and people start.
    'bench/peers/dnstap-sink.ts!',
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
  // A constant may have two names where the field has: `integer` and `seconds` read alike.
  // The configuration of the site's generator, which has packages of its own.
  ignore: ['tools/site/**'],
  exclude: ['binaries', 'unresolved', 'duplicates'],
};

export default config;
