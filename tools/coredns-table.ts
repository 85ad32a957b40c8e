/**
 * `node tools/coredns-table.ts` writes `docs/coredns-plugins.md`: every CoreDNS directive and property, and how ndots
 * treats it. It combines the directives' declarations with the plugin pages ("Differences from CoreDNS"), so each fact
 * is written once. `--check` only reports whether the page is current.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Syntax } from '../src/server/corefile/syntax.ts';
import { loadPlugins, order } from '../src/server/plugins/order.ts';
import { directives, type Directive, type Property } from './coredns/properties.ts';
import { CELL_SENTENCES, sentences } from './prose/page-rules.ts';

const home = fileURLToPath(new URL('../', import.meta.url));
const page = `${home}docs/coredns-plugins.md`;

/** The treatment of a directive or property in ndots. */
export type Verdict = 'same' | 'better' | 'different' | 'ignored' | 'not supported';

export interface Row {
  readonly directive: string;
  /** Empty for the directive itself. */
  readonly property: string;
  readonly verdict: Verdict;
  readonly note: string;
}

const head = `# Plugins and properties

Lists every CoreDNS 1.14.7 directive and property, and how ndots handles it.

\`\`\`sh
ndots lint Corefile      # check your own Corefile
\`\`\`

| word | meaning |
|---|---|
| **same** | works as in CoreDNS |
| **better** | works as in CoreDNS, with additions |
| **different** | behaves differently for a Corefile or a client; see the note |
| **ignored** | accepted with a warning, but has no effect |
| **not supported** | rejected at startup, with the reason |

[Moving from CoreDNS](coredns.md) lists the differences by subject, including those that are not about plugins.

<!-- Written by tools/coredns-table.ts from here on, from the directives' declarations and the plugin pages. -->

| directive | property | ndots | note |
|---|---|---|---|
`;

export async function tableRows(): Promise<readonly Row[]> {
  const loaded = new Map((await loadPlugins()).map((plugin) => [plugin.name, plugin.syntax]));
  return directives.flatMap((directive) => {
    const syntax = loaded.get(directive.name);
    return syntax === undefined ? absentRows(directive) : presentRows(directive, syntax);
  });
}

function absentRows({ name, properties }: Directive): readonly Row[] {
  return properties.map(({ name: property }) => ({
    directive: name,
    property,
    verdict: 'not supported',
    note: property === '' ? '[replacements](coredns.md#not-supported)' : '',
  }));
}

function presentRows({ name, properties }: Directive, syntax: Syntax): readonly Row[] {
  const bullets = differencesOf(name);
  const all = properties.map(wordsOf).filter((words) => words.length > 0);
  const about = (bullet: string, words: readonly string[]): boolean =>
    quotedIn(bullet).some((quoted) => isAbout(quoted, words));
  return properties.map((property) => {
    const words = wordsOf(property);
    const [word = ''] = words;
    const own =
      property.name === ''
        ? bullets.filter((bullet) => !all.some((each) => about(bullet, each)))
        : bullets.filter((bullet) => about(bullet, words));
    return {
      directive: name,
      property: property.name,
      ...verdictOf(property, own, syntax, { directive: name, word }),
    };
  });
}

/** Splits a property name into words. `[QUEUE]` becomes `QUEUE`, and `edns0 local` becomes two words. */
function wordsOf({ name }: Property): readonly string[] {
  return name.split(/[ |]/).map(bare).filter(Boolean);
}

/** The texts between backquotes, split into words. */
function quotedIn(bullet: string): readonly (readonly string[])[] {
  return bullet
    .split('`')
    .filter((_, index) => index % 2 === 1)
    .map((text) => text.split(/[ (]/).map(bare).filter(Boolean));
}

const bare = (word: string): string => word.replaceAll(/[[\]…]/g, '');

/**
 * True if a text is about the property: `edns0 local append` is about `edns0 local` but not `edns0 nsid`, while `edns0`
 * is about both.
 */
function isAbout(quoted: readonly string[], words: readonly string[]): boolean {
  if (quoted.length === 0) return false;
  return words.every((word, index) => index >= quoted.length || word === quoted[index]);
}

function verdictOf(
  { better, different, missing }: Property,
  own: readonly string[],
  syntax: Syntax,
  { directive, word }: { readonly directive: string; readonly word: string },
): Pick<Row, 'verdict' | 'note'> {
  const retired = syntax.retired[word];
  if (retired !== undefined) return { verdict: 'ignored', note: retired };
  if (missing === true) return { verdict: 'not supported', note: noteOf(own, directive) };
  if (different !== undefined) return { verdict: 'different', note: different };
  if (own.length > 0) return { verdict: 'different', note: noteOf(own, directive) };
  return better === undefined ? { verdict: 'same', note: '' } : { verdict: 'better', note: better };
}

/** The differences, or a link to them if they are too long for a table cell. */
function noteOf(differences: readonly string[], directive: string): string {
  const note = differences.join(' ');
  if (sentences(note) <= CELL_SENTENCES) return note;
  const page = `../src/server/plugins/${directive}/${directive}.md`;
  const count = differences.length === 1 ? 'one difference' : `${differences.length} differences`;
  return `[${count}](${page}#differences-from-coredns)`;
}

/** The list under "Differences from CoreDNS" on a plugin's page, with links made relative to `docs/`. */
function differencesOf(name: string): readonly string[] {
  const text = readFileSync(`${home}src/server/plugins/${name}/${name}.md`, 'utf8');
  const section = text.split('## Differences from CoreDNS\n')[1] ?? '';
  return section
    .split(/^- /m)
    .slice(1)
    .map((bullet) => bullet.split('\n\n')[0]!.replaceAll(/\s+/g, ' ').trim())
    .map((bullet) =>
      bullet
        .replaceAll('](../../../../docs/', '](')
        .replaceAll('](../', '](../src/server/plugins/')
        .replaceAll('|', '\\|'),
    );
}

function printRow({ directive, property, verdict, note }: Row): string {
  const isKnown = order.some(({ name }) => name === directive);
  const link = isKnown
    ? `[${directive}](../src/server/plugins/${directive}/${directive}.md)`
    : directive;
  const word = property === '' ? '' : `\`${property.replaceAll('|', '\\|')}\``;
  return `| ${property === '' ? link : directive} | ${word} | ${verdict} | ${note} |`;
}

export async function tablePage(): Promise<string> {
  return `${head}${(await tableRows()).map(printRow).join('\n')}\n${await additions()}`;
}

/** Directives and properties that only ndots has. */
async function additions(): Promise<string> {
  const known = new Map(directives.map(({ name, properties }) => [name, properties]));
  const lines = (await loadPlugins()).flatMap(({ name, syntax }) => {
    const there = known.get(name);
    const link = `[${name}](../src/server/plugins/${name}/${name}.md)`;
    if (there === undefined) return [`| ${link} | | ${syntax.summary} |`];
    const words = new Set(there.flatMap((property) => property.name.split(/[ |]/)));
    return Object.values(syntax.properties)
      .filter((property) => property.words.every((word) => word !== '*' && !words.has(word)))
      .map(
        ({ show, help }) =>
          `| ${link} | \`${show.replaceAll('|', '\\|')}\` | ${help.replaceAll('|', '\\|')} |`,
      );
  });
  return `\n## Additions of ndots\n\n| directive | property | meaning |\n|---|---|---|\n${lines.join('\n')}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const wanted = await tablePage();
  if (process.argv.includes('--check')) {
    if (readFileSync(page, 'utf8') !== wanted) {
      console.error('docs/coredns-plugins.md is out of date: run node tools/coredns-table.ts');
      process.exitCode = 1;
    }
  } else writeFileSync(page, wanted);
}
