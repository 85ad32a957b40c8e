/** Bundles the playground (`src/faces/playground/`): the page, its worker, and a chunk for each engine. */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { rolldown, type OutputChunk, type Plugin } from 'rolldown';

const room = 'src/faces/playground';

/**
 * Browser replacements for Node modules. They are only needed for the in-memory server, which `diff`, `lint` and the
 * example cluster use. It can read files and open sockets, but does neither here.
 */
const machine: Readonly<Record<string, string>> = {
  'node:fs': 'files',
  'node:fs/promises': 'files',
  'node:net': 'network',
  'node:dgram': 'network',
  'node:dns/promises': 'network',
  'node:buffer': 'system',
  'node:crypto': 'system',
  'node:module': 'system',
  'node:os': 'system',
  'node:timers/promises': 'system',
  'node:url': 'system',
  'node:util': 'system',
  'node:worker_threads': 'system',
};

/** Replaced with a package that has the same functions, because paths are only text. */
const pure: Readonly<Record<string, string>> = { 'node:path': 'pathe' };

/** The Node modules that a bundle may import. */
export type Allowed = 'pure' | 'machine';

/** Records each import of a Node module that browsers do not have. */
export class NodeImports {
  readonly found: { readonly module: string; readonly by: string }[] = [];

  plugin(allowed: Allowed): Plugin {
    return {
      name: 'node-imports',
      resolveId: {
        order: 'pre',
        handler: (source, importer) => {
          if (Object.hasOwn(pure, source)) return this.#package(pure[source]!);
          const standIn = Object.hasOwn(machine, source) ? machine[source] : undefined;
          if (allowed === 'machine' && standIn !== undefined)
            return resolve(room, 'machine', `${standIn}.ts`);
          if (!source.startsWith('node:') && source !== 'koffi') return null;
          this.found.push({ module: source, by: relative('src', importer ?? '') });
          return { id: source, external: true };
        },
      },
    };
  }

  #package(name: string): string {
    return resolve(new URL(import.meta.resolve(name)).pathname);
  }
}

const evaluatedFiles: ReadonlySet<string> = new Set(['example-files.ts', 'example-capture.ts']);

/** Evaluates some files when the page is built, and bundles their exported values. */
const evaluated: Plugin = {
  name: 'evaluated',
  async load(id) {
    if (!evaluatedFiles.has(relative(resolve(room), id))) return null;
    const made = (await import(pathToFileURL(id).href)) as Record<string, unknown>;
    return Object.entries(made)
      .map(([name, value]) => `export const ${name} = ${JSON.stringify(value)};`)
      .join('\n');
  },
};

export interface BuiltFile {
  readonly name: string;
  readonly bytes: Uint8Array;
  /** The files that it imports statically, or null if the file is not a script. */
  readonly imports: readonly string[] | null;
  /** The files that it imports dynamically. */
  readonly lazy: readonly string[];
}

/** Bundles an entry point for browsers. */
export async function bundleForBrowser(
  input: Readonly<Record<string, string>>,
  allowed: Allowed,
): Promise<{ readonly chunks: readonly OutputChunk[]; readonly missing: NodeImports['found'] }> {
  const imports = new NodeImports();
  const built = await rolldown({
    input: { ...input },
    platform: 'browser',
    plugins: [imports.plugin(allowed), evaluated],
    transform: { target: 'es2024' },
    checks: { ineffectiveDynamicImport: false },
  });
  const { output } = await built.generate({
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
    minify: true,
    comments: false,
  });
  await built.close();
  return { chunks: output.filter((each) => each.type === 'chunk'), missing: imports.found };
}

/** The files of `ndots console` that a browser loads before a tool is opened. */
export interface BuiltConsole {
  readonly first: readonly string[];
}

/** Writes the page for `ndots console` to a directory. */
export async function buildConsole(directory: string): Promise<BuiltConsole> {
  const page = await bundleForBrowser({ console: 'src/faces/console/console.ts' }, 'pure');
  const worker = await bundleForBrowser(
    { 'engine-worker': 'src/faces/console/tool-worker.ts' },
    'machine',
  );
  const [first] = [...page.missing, ...worker.missing];
  if (first !== undefined) throw new Error(`${first.by} imports ${first.module}`);
  mkdirSync(directory, { recursive: true });
  for (const { fileName, code } of [...page.chunks, ...worker.chunks])
    writeFileSync(join(directory, fileName), code);
  for (const [name, from] of [
    ['icon.svg', `${room}/icon.svg`],
    ['web.css', 'src/faces/web/web.css'],
    ['console.css', 'src/faces/console/console.css'],
  ] as const)
    copyFileSync(from, join(directory, name));
  // Restricts the styles of the playground's panels to the tools.
  const panels = readFileSync(`${room}/playground.css`, 'utf8');
  writeFileSync(join(directory, 'tools.css'), `.tools {\n${panels}\n}\n`);
  const scripts = page.chunks.map((chunk) => builtFile(chunk));
  return {
    first: [...loadedWith(scripts, 'console.js'), 'icon.svg', 'web.css', 'console.css'],
  };
}

function builtFile({ fileName, code, imports, dynamicImports }: OutputChunk): BuiltFile {
  const bytes = new TextEncoder().encode(code);
  return { name: fileName, bytes, imports, lazy: dynamicImports };
}

/** Writes the page to a directory that any static host can serve. */
export async function buildPlayground(directory: string): Promise<readonly BuiltFile[]> {
  const { chunks, missing } = await bundleForBrowser(
    { page: `${room}/page.ts`, 'engine-worker': `${room}/engine-worker.ts` },
    'machine',
  );
  const [first] = missing;
  if (first !== undefined) throw new Error(`${first.by} imports ${first.module}`);
  mkdirSync(directory, { recursive: true });
  const files: BuiltFile[] = [];
  for (const chunk of chunks) {
    writeFileSync(join(directory, chunk.fileName), chunk.code);
    files.push(builtFile(chunk));
  }
  for (const [name, from] of copied) {
    copyFileSync(from, join(directory, name));
    files.push({ name, bytes: readFileSync(from), imports: null, lazy: [] });
  }
  return files;
}

/** The files that a browser loads together with a file, including the file itself. */
export function loadedWith(files: readonly BuiltFile[], name: string): ReadonlySet<string> {
  const loaded = new Set<string>();
  const add = (one: string): void => {
    if (loaded.has(one)) return;
    loaded.add(one);
    files.find((file) => file.name === one)?.imports?.forEach(add);
  };
  add(name);
  return loaded;
}

const copied: readonly (readonly [string, string])[] = [
  ['icon.svg', `${room}/icon.svg`],
  ['index.html', `${room}/index.html`],
  ['web.css', 'src/faces/web/web.css'],
  ['playground.css', `${room}/playground.css`],
];
