import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { every } from '../src/server/base/clock.ts';
import { VirtualClock } from '../src/server/base/virtual-clock.ts';
import type { HttpHandler } from '../src/server/engine/contract/control-context.ts';
import type { Network } from '../src/server/transport/upstream-address.ts';
import type { Plugin } from '../src/server/engine/contract/plugin.ts';
import { printSyntax } from '../src/server/corefile/syntax.ts';
import { plugins } from './kit/plugins.ts';
import { testCertificate, testKey } from './kit/certificate.ts';
import { makeWorld } from './kit/world.ts';
import { zoneKey, type ZoneKey } from './kit/zone-keys.ts';

/**
 * The pages match the code. Each plugin has a page, its syntax matches the code, its Corefiles start, and its metrics
 * exist. `UPDATE_PAGES=1 node --test test/pages.test.ts` rewrites the Syntax sections.
 */

const pageOf = (name: string): string => `src/server/plugins/${name}/${name}.md`;

/**
 * The text between `## HEADING` and the next heading at the same level. Fenced blocks may contain lines that start with
 * #.
 */
function section(text: string, heading: string): string {
  let inside = false;
  let fenced = false;
  const lines: string[] = [];
  for (const line of text.split('\n')) {
    if (/^(```|~~~)/.test(line)) fenced = !fenced;
    if (!fenced && line.startsWith('## ')) inside = line === `## ${heading}`;
    else if (inside) lines.push(line);
  }
  return lines.join('\n').trim();
}

/**
 * The metric names in these sources. A name composed at run time (`coredns_cache_${kind}_total`) matches all its
 * values.
 */
function metricsIn(files: string): readonly RegExp[] {
  const sources = globSync(files).filter((file) => !file.endsWith('.test.ts'));
  const text = sources.map((file) => readFileSync(file, 'utf8')).join('\n');
  const names = [...text.matchAll(/['`]((?:coredns|ndots)_(?:[a-z0-9_]|\$\{[^}]*\})+)['`]/g)].map(
    ([, name]) => name!,
  );
  return [...new Set(names)].map(
    (name) => new RegExp(`^${name.replaceAll(/\$\{[^}]*\}/g, '[a-z0-9_]+')}$`),
  );
}

const headings = [
  'Description',
  'Syntax',
  'Examples',
  'Metrics',
  'Log lines',
  'Differences from CoreDNS',
];

describe('plugin pages', () => {
  for (const { name, syntax } of plugins) {
    const page = pageOf(name);

    test(`${name} has a page with all its sections`, () => {
      assert.ok(existsSync(page), `${page} is missing`);
      const text = readFileSync(page, 'utf8');
      assert.match(text, new RegExp(`^# ${name}\n`));
      for (const heading of headings)
        assert.notEqual(section(text, heading), '', `${page}: nothing under "${heading}"`);
    });

    test(`${name}: the Syntax section matches the declarations`, () => {
      const text = readFileSync(page, 'utf8');
      const declared = printSyntax(syntax).trim();
      const written = section(text, 'Syntax');
      // The fenced block and the list after it. Any further explanations are only on the page.
      const generated =
        /^```\n[^]*?^```$(?:\n\n(?:- .*(?:\n|$)| +- .*(?:\n|$))+)?/m.exec(written)?.[0].trim() ??
        '';
      if (process.env['UPDATE_PAGES'] === '1')
        writeFileSync(
          page,
          text.replace(generated, () => declared),
        );
      else
        assert.equal(
          generated,
          declared,
          'write it anew: UPDATE_PAGES=1 node --test test/pages.test.ts',
        );
    });

    test(`${name}: each property that the Syntax section shows is explained there`, () => {
      const [, block = '', rest = ''] = section(readFileSync(page, 'utf8'), 'Syntax').split('```');
      for (const [, word = ''] of block.matchAll(/^ {4}([a-z][\w-]*)/gm))
        assert.match(rest, new RegExp(`^- \`${word}\\b`, 'm'), `${page}: ${word}`);
    });

    test(`${name}: the metrics of the page are those of the code`, () => {
      const named = new Set(
        section(readFileSync(page, 'utf8'), 'Metrics').match(/\b(?:coredns|ndots)_[a-z0-9_]+/g) ??
          [],
      );
      const own = metricsIn(`src/server/plugins/${name}/**/*.ts`);
      const shared = metricsIn(
        'src/{server/{engine,transport,metrics,kube,zone,runtime},faces/cli}/**/*.ts',
      );
      for (const found of named) {
        const counted = [...own, ...shared].some((pattern) => pattern.test(found));
        assert.ok(counted, `${page} tells of ${found}, which nobody counts`);
      }
      for (const pattern of own) {
        assert.ok(
          [...named].some((found) => pattern.test(found)),
          `${page} tells nothing of ${pattern.source}`,
        );
      }
    });
  }

  test('there is no page for a plugin that does not exist', () => {
    const names = new Set(plugins.map(({ name }) => name));
    const pages = globSync('src/server/plugins/*/*.md').map((page) => page.split('/')[3]!);
    assert.deepEqual(
      pages.filter((name) => !names.has(name)),
      [],
    );
  });
});

/** These contact the internet as soon as the configuration is accepted, so only their syntax and links are tested. */
const outside: ReadonlySet<string> = new Set([
  'kubernetes',
  'etcd',
  'tls',
  'dnstap',
  'geoip',
  'on',
  'k8s_external',
  'secondary',
]);

/** The real plugins, except that none of them opens an address. */
const indoors: readonly Plugin[] = plugins.map((plugin) => {
  if (plugin.control === undefined) return plugin;
  if (outside.has(plugin.name)) {
    return { ...plugin, control: () => undefined };
  }
  const http = (_address: string, _path: string, _handler: HttpHandler): void => undefined;
  return {
    ...plugin,
    control: (options, context) => plugin.control!(options, { ...context, http }),
  };
});

const quiet: Network = {
  upstream: (parts) => ({
    parts,
    start: () => undefined,
    close: () => undefined,
  }),
};

interface Fence {
  readonly page: string;
  readonly line: number;
  readonly text: string;
}

function fencesOf(page: string): readonly Fence[] {
  const text = readFileSync(page, 'utf8');
  return [...text.matchAll(/^```corefile\n([^]*?)^```$/gm)].map((found) => ({
    page,
    line: text.slice(0, found.index).split('\n').length,
    text: found[1]!,
  }));
}

describe('the text on pages', () => {
  const pages = globSync(['*.md', 'docs/**/*.md', 'deploy/*.md', 'examples/**/*.md']).toSorted();
  for (const page of pages.filter((file) => file !== 'CHANGELOG.md')) {
    test(`${page}: no heading occurs twice, no table is split, each sentence ends`, () => {
      const lines = readFileSync(page, 'utf8')
        .replaceAll(/^ *```[^]*?^ *```$/gm, '```')
        .split('\n');
      const found = lines.filter((line, index) => {
        const before = lines[index - 1] ?? '';
        const after = lines[index + 1] ?? '';
        if (/^#{1,2} /.test(line)) return before !== '' || lines.indexOf(line) !== index;
        if (line === '') return /[a-z`],$/.test(before) && !before.startsWith('|');
        return before.startsWith('|') && after.startsWith('|') && !line.startsWith('|');
      });
      assert.deepEqual(found, []);
    });
  }
});

describe('examples that pages refer to', () => {
  const pages = globSync(['*.md', 'docs/**/*.md', 'deploy/*.md', 'examples/**/*.md']).toSorted();
  // Clones do not have the files that git ignores.
  const isKept = (name: string): boolean =>
    existsSync(name) && spawnSync('git', ['check-ignore', '-q', name]).status !== 0;
  for (const page of pages)
    test(`${page}: they are there`, () => {
      const named = readFileSync(page, 'utf8').match(/(?<![\w/.])examples\/[\w./-]*\w/g) ?? [];
      assert.deepEqual(
        named.filter((name) => !isKept(name)),
        [],
      );
    });
});

const zoneKeys = new Map<string, ZoneKey>();

/** Either file of the pair `K….key` and `K….private`. */
function zoneKeyContent(file: string): string {
  const base = file.replace(/\.(?:key|private)$/, '');
  const owner = /K(.*\.)(?:\+\d+){2}$/.exec(base)?.[1] ?? 'example.org.';
  const pair = zoneKeys.get(base) ?? zoneKey(owner, 13, base.endsWith('256') ? 256 : 257);
  zoneKeys.set(base, pair);
  return file.endsWith('.key') ? pair.key : pair.secret;
}

/** Keys, certificates and zones are parsed, while other files only have to exist. */
function contentOf(file: string): string {
  if (/(?:^|\/)db\./.test(file))
    return '@ 300 IN SOA ns host 1 7200 3600 86400 60\n@ 300 IN NS ns\n';
  if (/\.(?:key|private)$/.test(file)) return zoneKeyContent(file);
  if (!file.endsWith('.pem')) return '';
  return file.includes('key') ? testKey : testCertificate;
}

test('each page is found from the index by its visible words', () => {
  const index = readFileSync('docs/README.md', 'utf8');
  const pages = globSync('docs/*.md').map((path) => basename(path));
  assert.deepEqual(
    pages.filter((page) => page !== 'README.md' && !index.includes(`(${page}`)),
    [],
  );
});

describe('Corefiles on pages', () => {
  const pages = globSync(['src/server/plugins/**/*.md', 'docs/*.md', 'README.md']).toSorted();
  for (const { page, line, text } of pages.flatMap(fencesOf)) {
    test(`${page}:${line} starts`, async (t) => {
      const directory = mkdtempSync(join(tmpdir(), 'ndots-page-'));
      t.after(() => rmSync(directory, { recursive: true }));
      const files: Record<string, string> = {};
      // `# file: NAME` in a fence is a file next to the Corefile. Imported files are empty.
      for (const [, name] of text.matchAll(/^# file: (\S+)$/gm)) {
        mkdirSync(dirname(resolve(directory, name!)), { recursive: true });
        writeFileSync(resolve(directory, name!), contentOf(name!));
        files[name!] = '';
      }
      const clock = new VirtualClock();
      // Other threads sign zones at the same time.
      const ticks = every(clock, 1, () => undefined);
      t.after(() => ticks.cancel());
      const world = await makeWorld(text, {
        clock,
        directory,
        files,
        plugins: indoors,
        network: quiet,
        env: {},
      });
      assert.ok(world.server.endpoints.length > 0);
      await world.close();
    });
  }

  test('every plugin is shown in a Corefile of its page', () => {
    for (const { name } of plugins) {
      const shown = fencesOf(pageOf(name)).some(({ text }) =>
        new RegExp(`^\\s*${name}\\b`, 'm').test(text),
      );
      assert.ok(shown, `${pageOf(name)} shows no use of ${name}`);
    }
  });
});

test('no page has a command that installs a package of our name from a registry', () => {
  const pages = globSync(['*.md', 'docs/**/*.md', 'deploy/**/*.md', 'examples/**/*.md']);
  const commands = pages.flatMap((page) =>
    [...readFileSync(page, 'utf8').matchAll(/npm (?:install|i|exec|x)\b[^\n`]*/g)].map(
      ([command]) => `${page}: ${command}`,
    ),
  );
  assert.deepEqual(
    commands.filter((command) => /\sndots(?:@\S*)?(?:\s|$)/.test(command)),
    [],
  );
});
