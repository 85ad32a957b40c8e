/** Bundles the program: one file for each place where it or a thread of it begins. */
import { relative, resolve } from 'node:path';
import { rolldown, type OutputChunk, type Plugin } from 'rolldown';

/** Files of `dist/` with the names of their sources: where the program and its threads begin, and what others load by name. */
const entries: readonly string[] = [
  'faces/cli/main',
  'server/engine/worker/worker-thread',
  'server/kube/manifests/read-thread-entry',
  'server/zone/zone-thread',
  'server/plugins/order',
];

/** Packages that are loaded when they are first used: one file each (`yaml.cjs`) in place of up to seventy. */
const packages: readonly string[] = ['re2js', 'yaml'];

/** Rooms of what a server runs whatever its Corefile names. */
const rooms = /^(server\/(base|wire|corefile|metrics|runtime|transport|engine)|faces\/cli)\//;

/**
 * Makes `dist/`, or the same with the verbs of the server alone (`serverOnly`) in another directory. A thread is given little to load: each file takes it time, so what every server needs stands in one,
 * `core.js`; and each plugin, transport and verb in files of its own, so that what is not named is not loaded. Figures:
 * docs/decisions/dist.md.
 */
export async function bundle(folder = 'dist', serverOnly = false): Promise<void> {
  const program = await rolldown({
    input: {
      ...Object.fromEntries(entries.map((entry) => [entry, `src/${entry}.ts`])),
      // Not because of its name: what it imports belongs to the core.
      serve: 'src/faces/cli/serve/serve.ts',
    },
    platform: 'node',
    external: [/^node:/, 'koffi', ...packages],
    plugins: [...(serverOnly ? [noTools] : []), ownPlaces, packagesAside, cheapBuiltins, asciiText],
    transform: { target: 'node24' },
    // Lines stay where they are; columns of a line that was changed are not told.
    checks: { ineffectiveDynamicImport: false, sourcemapBroken: false },
  });
  const { output } = await program.write({
    dir: folder,
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
    await one.write({ dir: folder, format: 'cjs', entryFileNames: '[name].cjs', comments: false });
    await one.close();
  }
}

/** What stands in the place of files in the image of the server: it has fewer verbs, and knows no capture by its first bytes. */
const standIns: ReadonlyMap<string, string> = new Map([
  ['faces/cli/tool-verbs', 'export const toolVerbs = {};'],
  ['tools/capture/read/foreign-file', 'export const noText = () => null;'],
]);

/** Leaves out what `standIns` replaces, and with it all that only these files import. */
const noTools: Plugin = { name: 'no-tools', load: (id) => standIns.get(nameOf(id)) ?? null };

/** What the image of the server does not hold. */
const outsideServer = /^(?:tools|addons)\//;

/** `server/wire/name` of `/…/src/server/wire/name.ts`. */
function nameOf(id: string): string {
  return relative(resolve('src'), id).replace(/\.ts$/, '');
}

/**
 * Plugins that nearly all Corefiles name. Files that are always loaded together are one: each takes a thread about a millisecond to
 * find, read and link.
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

/** What so many of the other files need, of what they stand on, is in one. */
const SHARED = 5;
const ground =
  /^server\/(?:base|wire|corefile|metrics|runtime|transport|engine)\/|^server\/zone\/transfer-source$/;

/** Where a plugin begins. */
function own(plugin: string): string {
  return `server/plugins/${plugin}/${plugin}`;
}

/** Not what begins the program: it has to load on a runtime that is too old, and to say so. */
function isCore(name: string): boolean {
  const apart = ['faces/cli/serve/serve', 'faces/cli/signals', earlyHttp, spareThread, ...entries];
  return rooms.test(name) && !apart.includes(name);
}

/** Loaded before everything else. */
const earlyHttp = 'server/engine/contract/early-http';

/** Loaded before the rest, which the first worker need not wait for. */
const spareThread = 'server/engine/control/spare-thread';

/** A file finds others by where its source stands: `dist/core.js` as `dist/server/wire/query.js`, which it holds. */
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
 * `import { a } from 'node:fs'` reads every export of the module, and with them whole parts of the runtime that nobody uses
 * (`src/server/base/builtins.ts`). This reads those that are named.
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

/** The runtime keeps the text of all files; with one letter outside Latin-1 it takes two bytes for each. */
const asciiText: Plugin = {
  name: 'ascii-text',
  // Last of all: what takes the comments out writes all letters as they are.
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

/** @throws Error if a file would not do what its sources do */
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
