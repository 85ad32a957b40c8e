import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join, normalize } from 'node:path';
import { describe, test } from 'node:test';
import { parse, type Token } from 'acorn';
import { analyse } from 'scslre';

const sources = globSync('src/**/*.ts').toSorted();
const texts = new Map(sources.map((file) => [file, readFileSync(file, 'utf8')]));
const room = (file: string): string => file.split('/')[1]!;

/** The table "Who may import whom" of ARCHITECTURE.md: room → rooms it may import. */
function importTable(): ReadonlyMap<string, ReadonlySet<string>> {
  const page = readFileSync('ARCHITECTURE.md', 'utf8');
  const rows = [...page.matchAll(/^\| `(\w+)` \| ([^|]*) \|/gm)];
  return new Map(
    rows.map(([, name, list]) => [
      name!,
      new Set([...list!.matchAll(/`(\w+)`/g)].map(([, other]) => other!)),
    ]),
  );
}

function imports(file: string): readonly string[] {
  const text = texts.get(file)!;
  const found = [
    ...text.matchAll(/(?:^|\n)\s*(?:import|export)[^'"\n;]*?from\s+'([^']+)'/g),
    ...text.matchAll(/import\('([^']+)'\)/g),
    ...text.matchAll(/\n\} from '([^']+)'/g),
  ];
  return found.map(([, path]) => path!);
}

/** Expressions that could try many ways through one text, or that are made while the program runs. */
function slowExpressions(file: string, text: string): string[] {
  if (file.endsWith('.test.ts')) return [];
  const tokens: (Token & { readonly value?: unknown })[] = [];
  parse(stripTypeScriptTypes(text), {
    ecmaVersion: 'latest',
    sourceType: 'module',
    locations: true,
    onToken: tokens,
  });
  return tokens.flatMap((token, index) => {
    const [before, next, argument] = [-1, 1, 2].map((step) => tokens[index + step]?.type.label);
    const where = `${file}:${token.loc?.start.line}`;
    if (token.type.label === 'regexp') {
      const { pattern, flags } = token.value as {
        readonly pattern: string;
        readonly flags: string;
      };
      const { reports } = analyse(new RegExp(pattern, flags));
      return reports.length === 0 ? [] : [`${where}: /${pattern}/${flags} is not linear`];
    }
    const word = String(token.value);
    if (word === 'RegExp' && next === '(') return [`${where}: an expression made of texts`];
    const isImplied =
      before === '.' && next === '(' && ['match', 'matchAll', 'search'].includes(word);
    return isImplied && argument !== 'regexp' && argument !== 'name'
      ? [`${where}: ${word} makes an expression of a text`]
      : [];
  });
}

describe('the house', () => {
  const table = importTable();

  test('every room stands in the table of ARCHITECTURE.md', () => {
    const rooms = new Set(sources.map(room));
    for (const name of rooms) assert.ok(table.has(name), `src/${name} has no row in the table`);
  });

  test('a room imports only what the table of ARCHITECTURE.md allows', () => {
    const broken: string[] = [];
    for (const file of sources) {
      for (const path of imports(file)) {
        if (!path.startsWith('.')) continue;
        const target = normalize(join(dirname(file), path));
        if (!target.startsWith('src/')) continue; // package.json and the like
        const [from, to] = [room(file), room(target)];
        if (from !== to && !table.get(from)?.has(to)) broken.push(`${file} imports ${target}`);
        if (
          from === 'plugins' &&
          to === 'plugins' &&
          file !== 'src/plugins/order.ts' &&
          !file.endsWith('.test.ts')
        ) {
          const [a, b] = [file.split('/')[2], target.split('/')[2]];
          if (a !== b) broken.push(`${file} imports the plugin ${b}: plugins meet through ports`);
        }
      }
    }
    assert.deepEqual(broken, []);
  });

  test('only linux speaks FFI, only base and the outer rooms touch the process', () => {
    for (const [file, text] of texts) {
      if (room(file) !== 'linux') assert.doesNotMatch(text, /from 'koffi'/, file);
    }
  });

  test('wire, corefile and resolver do no input or output', () => {
    for (const file of sources.filter(
      (name) =>
        ['wire', 'resolver'].includes(room(name)) &&
        !name.endsWith('.test.ts') &&
        !name.includes('.laws.'),
    )) {
      const found = imports(file).filter((path) => path.startsWith('node:'));
      assert.deepEqual(found, [], file);
    }
  });

  // Clients, upstreams and files choose the texts. The pattern of a Corefile is base/pattern.ts's, which is linear.
  test('no expression of the runtime can take more than linear time', () => {
    assert.deepEqual(
      [...texts].flatMap(([file, text]) => slowExpressions(file, text)),
      [],
    );
  });

  test('no file is named for being a drawer', () => {
    for (const file of sources)
      assert.doesNotMatch(file, /\/(utils?|common|helpers?|types|index)\.ts$/);
  });

  test('no source file is longer than 600 lines', () => {
    for (const [file, text] of texts) {
      if (file.endsWith('.test.ts')) continue;
      const lines = text.split('\n').length;
      assert.ok(lines <= 600, `${file}: ${lines} lines`);
    }
  });

  test('nothing is left to be done', () => {
    for (const [file, text] of texts) assert.doesNotMatch(text, /\b(TODO|FIXME|XXX|HACK)\b/, file);
  });

  test('every page has one title', () => {
    const pages = globSync(['*.md', 'docs/**/*.md', 'src/**/*.md']);
    for (const page of pages) {
      const text = readFileSync(page, 'utf8').replace(/^(```|~~~)[^]*?^\1/gm, '');
      const titles = text.match(/^# .+$/gm) ?? [];
      assert.equal(titles.length, 1, `${page}: ${titles.length} titles`);
    }
  });

  test('the lock file holds every package that one of its packages names, for all platforms', () => {
    const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
      packages: Record<
        string,
        Partial<Record<'dependencies' | 'optionalDependencies', Record<string, string>>>
      >;
    };
    const missing = Object.entries(packages).flatMap(
      ([at, { dependencies, optionalDependencies }]) =>
        Object.keys({ ...dependencies, ...optionalDependencies })
          .filter(
            (name) =>
              !(`node_modules/${name}` in packages) && !(`${at}/node_modules/${name}` in packages),
          )
          .map((name) => `${at} names ${name}`),
    );
    assert.deepEqual(missing, []);
  });

  test('the lock file names no registry', () => {
    assert.doesNotMatch(readFileSync('package-lock.json', 'utf8'), /"resolved"/);
  });
});
