/** Bundles the program into one file per entry point of the program and its threads. */
import { relative, resolve } from 'node:path';
import { rolldown, type OutputChunk, type Plugin } from 'rolldown';

/**
 * Files in `dist/` that keep their sources' names: entry points of the program and its threads, and files that are
 * loaded by name.
 */
const entries: readonly string[] = [
  'faces/cli/main',
  'server/engine/worker/worker-thread',
  'server/kube/manifests/read-thread-entry',
  'server/zone/zone-thread',
  'server/plugins/order',
];

/** Packages that are loaded on first use. Each is bundled into a single file (`yaml.cjs`) instead of up to seventy. */
const packages: readonly string[] = ['re2js', 'yaml'];

/** Directories that a server runs with any Corefile. */
const rooms = /^(server\/(base|wire|corefile|metrics|runtime|transport|engine)|faces\/cli)\//;

/**
 * Builds `dist/` or, with `serverOnly`, only the server's commands in another directory. Loading a file costs each
 * thread time, so everything that all servers need is in one file, `core.js`. Each plugin, transport and command has
 * its own files, which are loaded only if used. Figures: docs/decisions/dist.md.
 */
export async function bundle(directory = 'dist', serverOnly = false): Promise<void> {
  const program = await rolldown({
    input: {
      ...Object.fromEntries(entries.map((entry) => [entry, `src/${entry}.ts`])),
      // This is not one of the `entries`, because its imports belong to the core.
      serve: 'src/faces/cli/serve/serve.ts',
    },
    platform: 'node',
    external: [/^node:/, 'koffi', ...packages],
    plugins: [...(serverOnly ? [noTools] : []), ownPlaces, packagesAside, cheapBuiltins, asciiText],
    transform: { target: 'node24' },
    // Lines are preserved, but the columns in changed lines are not.
    checks: { ineffectiveDynamicImport: false, sourcemapBroken: false },
  });
  const { output } = await program.write({
    dir: directory,
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    comments: false,
    sourcemap: true,
    sourcemapExcludeSources: true,
    codeSplitting: {
      groups: [
        { name: 'spare-thread', test: (id) => nameOf(id) === spareThread, priority: 3 },
        { name: 'early-http', test: (id) => nameOf(id) === earlyHttp, priority: 4 },
        { name: 'core', tags: ['$initial'], test: (id) => isCore(nameOf(id)), priority: 2 },
        {
          name: 'shared',
          test: (id) => ground.test(nameOf(id)),
          minShareCount: SHARED,
          priority: 1,
        },
        { name: 'usual', test: (id) => usualPlugins.has(nameOf(id)) },
      ],
    },
  });
  await program.close();
  for (const each of output) if (each.type === 'chunk') check(each, serverOnly);
  for (const name of packages) {
    const one = await rolldown({ input: { [name]: name }, platform: 'node', plugins: [asciiText] });
    await one.write({
      dir: directory,
      format: 'cjs',
      entryFileNames: '[name].cjs',
      comments: false,
    });
    await one.close();
  }
}

/** Replacements for files in the server image, which has fewer commands and does not recognise captures. */
const standIns: ReadonlyMap<string, string> = new Map([
  ['faces/cli/tool-verbs', 'export const toolVerbs = {};'],
  ['tools/capture/read/foreign-file', 'export const noText = () => null;'],
]);

/** Omits the files replaced by `standIns`, and all files that only they import. */
const noTools: Plugin = { name: 'no-tools', load: (id) => standIns.get(nameOf(id)) ?? null };

/** Parts that the server image omits. */
const outsideServer = /^(?:tools|addons)\//;

function nameOf(id: string): string {
  return relative(resolve('src'), id).replace(/\.ts$/, '');
}

/**
 * Plugins that nearly every Corefile uses. Files that are always loaded together are merged, because a thread needs
 * about a millisecond to find, read and link each file.
 */
const usualPlugins: ReadonlySet<string> = new Set(
  [
    'bind',
    'cache',
    'errors',
    'forward',
    'health',
    'kubernetes',
    'loadbalance',
    'loop',
    'prometheus',
    'ready',
    'reload',
  ].map(own),
);

/** If at least this many other files import a file in the directories below, it is moved to the shared chunk. */
const SHARED = 5;
const ground =
  /^server\/(?:base|wire|corefile|metrics|runtime|transport|engine)\/|^server\/zone\/transfer-source$/;

/** The entry point of a plugin. */
function own(plugin: string): string {
  return `server/plugins/${plugin}/${plugin}`;
}

/** Excludes the program's entry point. It must load even on runtimes that are too old, in order to report that. */
function isCore(name: string): boolean {
  const apart = ['faces/cli/serve/serve', 'faces/cli/signals', earlyHttp, spareThread, ...entries];
  return rooms.test(name) && !apart.includes(name);
}

/** This is loaded before everything else. */
const earlyHttp = 'server/engine/contract/early-http';

/** It is loaded early, but the first worker does not wait for it. */
const spareThread = 'server/engine/control/spare-thread';

/**
 * Preserves paths relative to the sources. `dist/core.js` finds files as if it were `dist/server/wire/query.js`, which
 * it contains.
 */
const ownPlaces: Plugin = {
  name: 'own-places',
  transform: (code, id) =>
    code.includes('import.meta.url')
      ? code.replaceAll('import.meta.url', `new URL('./${nameOf(id)}.js', import.meta.url).href`)
      : null,
};

const packagesAside: Plugin = {
  name: 'packages-aside',
  renderChunk: (code) =>
    code.replace(/\bcreateRequire\((.*?)\)\("([^"]+)"\)/g, (whole, _place, name: string) =>
      packages.includes(name) ? `createRequire(import.meta.url)("./${name}.cjs")` : whole,
    ),
};

/**
 * `import { a } from 'node:fs'` reads every export of the module, including whole unused parts of the runtime
 * (`src/server/base/builtins.ts`). This plugin reads only the named exports.
 */
const cheapBuiltins: Plugin = {
  name: 'cheap-builtins',
  renderChunk: (code) =>
    code.replace(
      /^import (\w*)(?:, )?(?:\{(.*)\})? ?from "(node:[^"]+)";$/gm,
      (_whole, all: string, some: string | undefined, name: string) => {
        const module = `process.getBuiltinModule("${name}")`;
        return [
          ...(all === '' ? [] : [`const ${all.trim()} = ${module};`]),
          ...(some === undefined ? [] : [`const {${some.replaceAll(' as ', ': ')}} = ${module};`]),
        ].join(' ');
      },
    ),
};

/**
 * Escapes non-ASCII text. The runtime stores the text of all files, and uses two bytes per character if a file has
 * characters outside Latin-1.
 */
const asciiText: Plugin = {
  name: 'ascii-text',
  // Must be the last step, because the removal of comments writes all characters unescaped.
  generateBundle(_options, files) {
    for (const file of Object.values(files)) {
      if (file.type !== 'chunk') continue;
      file.code = file.code.replace(
        /[^\0-\x7f]/g,
        (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
      );
    }
  },
};

/** @throws Error if a file would behave differently from its sources */
function check(
  { fileName, code, isEntry, imports, moduleIds }: OutputChunk,
  serverOnly: boolean,
): void {
  const wrong = (what: string): Error => new Error(`dist/${fileName} ${what}`);
  if (/^import .* from "node:/m.test(code)) throw wrong('imports a whole module of the runtime');
  if (fileName.includes('/') && code.includes('import.meta.url'))
    throw wrong('looks for files and is not where it thinks');
  if (isEntry && fileName === 'faces/cli/main.js' && imports.length > 0)
    throw wrong('needs other files before it knows the runtime');
  const outside =
    serverOnly &&
    moduleIds.map(nameOf).find((name) => outsideServer.test(name) && !standIns.has(name));
  if (outside) throw wrong(`holds ${outside}, which is not of the server`);
  if (/[^\0-\x7f]/.test(code)) throw wrong('holds letters that take two bytes each');
}
