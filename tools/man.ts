/**
 * Writes the manual, `man/ndots.1` and a page per command, from the commands' own descriptions: `node tools/man.ts`.
 * With `--check` it only compares.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { manualPage, roff } from '../src/faces/cli/option-help.ts';
import { verbNames, verbSummaries } from '../src/faces/cli/verb-names.ts';
import { loadUsage } from '../src/faces/cli/verbs.ts';

const { version, man } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  version: string;
  man: readonly string[];
};
/** The release date given in the changelog. */
const date = /^## .*(\d{4}-\d{2}-\d{2})/m.exec(readFileSync('CHANGELOG.md', 'utf8'))?.[1] ?? '""';

function overview(): string {
  const lines = [
    `.TH NDOTS 1 ${date} "ndots ${version}" "ndots"`,
    '.SH NAME',
    'ndots \\- Kubernetes DNS you can see through',
    '.SH SYNOPSIS',
    '.B ndots',
    '.I verb',
    '[options]',
    '.SH DESCRIPTION',
    'Serves cluster DNS instead of CoreDNS, and explains which queries the resolver of a program sends for a name, and why.',
    '.SH VERBS',
  ];
  for (const [name, summary] of verbSummaries)
    lines.push('.TP', `.BR ndots\\-${name} (1)`, roff(summary));
  lines.push(
    '.SH EXIT STATUS',
    '0: yes. 1: no, or a Corefile that cannot be served. 2: it could not be determined. 3: wrong usage.',
    '.SH ENVIRONMENT',
    '.TP',
    '.BR NO_COLOR ", " FORCE_COLOR',
    'Disable colours, or always use them; by default, only terminals get colours.',
    '.TP',
    '.B KUBECONFIG',
    'Colon-separated files that describe the cluster; default ~/.kube/config.',
  );
  return `${lines.join('\n')}\n`;
}

const pages = new Map([['man/ndots.1', overview()]]);
for (const verb of verbNames) {
  const summary = verbSummaries.get(verb) ?? '';
  const usage = await loadUsage(verb);
  pages.set(`man/ndots-${verb}.1`, manualPage({ verb, summary, usage, version, date }));
}
for (const [file, text] of pages) {
  if (!process.argv.includes('--check')) writeFileSync(file, text);
  else if (!existsSync(file) || readFileSync(file, 'utf8') !== text) {
    console.error(`${file} does not match the option tables: run node tools/man.ts`);
    process.exitCode = 1;
  }
}
// npm installs only the pages listed there.
const unlisted = [...pages.keys()].filter((file) => !man.includes(file));
if (unlisted.length > 0) {
  console.error(`package.json does not list ${unlisted.join(', ')} under "man"`);
  process.exitCode = 1;
}
