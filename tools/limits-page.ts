/**
 * Writes the second half of `docs/limits.md`: the fixed limits of `serve` and the reason for each, taken from the code.
 * Run `node tools/limits-page.ts`. With `--check`, it only reports whether the page is current.
 */
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const home = fileURLToPath(new URL('../', import.meta.url));
const page = `${home}docs/limits.md`;
/** Everything after this line is generated. */
const MARK = '<!-- Written by tools/limits-page.ts from here on. -->';

const rooms = [
  'base',
  'corefile',
  'dnssec',
  'engine',
  'etcd',
  'kube',
  'metrics',
  'plugins',
  'runtime',
  'transport',
  'wire',
  'zone',
];
/** The parts of these directories that only other commands use. */
const elsewhere =
  /^src\/server\/(runtime\/(packet|programs|termination)|metrics\/scrape|base\/x?slt)/;
const named = /^(?:[A-Z_]+_)?MAX(?:_[A-Z]+)*$|^IN_FLIGHT|^(?:BATCH|BACKLOG)_BYTES$|Limit$/;
/** Directories whose limits have no setting and only vary in tests. */
const unset = /^src\/server\/(?:base|metrics)\//;

export interface FixedLimit {
  readonly file: string;
  readonly name: string;
  readonly value: string;
  /** The limit's subject and its reason. Empty if the code gives none. */
  readonly text: string;
}

export function fixedLimits(): readonly FixedLimit[] {
  return globSync(`src/server/{${rooms.join(',')}}/**/*.ts`, { cwd: home })
    .filter((file) => !file.includes('.test.') && !elsewhere.test(file))
    .sort()
    .flatMap((file) => limitsOf(file, readFileSync(`${home}${file}`, 'utf8')));
}

function limitsOf(file: string, source: string): FixedLimit[] {
  const found: FixedLimit[] = [];
  let text = '';
  let comment: string[] | null = null;
  for (const line of source.split('\n')) {
    if (line.startsWith('/**')) comment = [];
    if (comment !== null) {
      comment.push(line.replace(/^\/?\s*\*+\/?\s?/, '').replace(/\s*\*\/$/, ''));
      if (!line.includes('*/')) continue;
      text = comment.join(' ').trim();
      comment = null;
      continue;
    }
    const constant =
      /^(?:export )?const ([A-Z_0-9]+)(?:: \w+)? = ([^;]+);/.exec(line) ??
      (unset.test(file)
        ? /^(?:export )?const (\w+Limit)(?:: Limit)? = limit\(\{ default: ([^,]+),/.exec(line)
        : null);
    if (constant === null) {
      text = '';
      continue;
    }
    const [, name = '', value = ''] = constant;
    if (named.test(name) && !value.startsWith('Buffer')) found.push({ file, name, value, text });
    text = '';
  }
  return found;
}

export function limitsPage(): string {
  const [written = ''] = readFileSync(page, 'utf8').split(MARK);
  const rows = fixedLimits()
    .filter(({ text }) => text !== '')
    .map(({ file, name, value, text }) => `| \`${name}\` (\`${file}\`) | \`${value}\` | ${text} |`);
  return `${written}${MARK}\n\n| bound | value | meaning |\n|---|---|---|\n${rows.join('\n')}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const text = limitsPage();
  if (!process.argv.includes('--check')) writeFileSync(page, text);
  else if (text !== readFileSync(page, 'utf8')) process.exitCode = 1;
}
