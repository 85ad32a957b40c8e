/** Writes `man/ndots.1` from the help texts of the verbs: `node tools/man.ts`. With `--check` it only compares. */
import { readFileSync, writeFileSync } from 'node:fs';
import { loadVerb, verbNames, verbSummaries } from '../src/cli/verbs.ts';

const FILE = 'man/ndots.1';

/** Text as roff takes it: backslashes and leading dots are no commands, and what is not ASCII has a name. */
function literal(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('…', '...')
    .replace(/^([.'])/gm, '\\&$1')
    .replace(
      // eslint-disable-next-line no-control-regex -- everything outside ASCII
      /[^\u0000-\u007f]/gu,
      (letter) => `\\[u${letter.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}]`,
    );
}

async function page(): Promise<string> {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  // The day of the release that the changelog describes.
  const released =
    /^## .*(\d{4}-\d{2}-\d{2})/m.exec(readFileSync('CHANGELOG.md', 'utf8'))?.[1] ?? '""';
  const lines = [
    `.TH NDOTS 1 ${released} "ndots ${version}" "ndots"`,
    '.SH NAME',
    'ndots \\- Kubernetes DNS you can see through',
    '.SH SYNOPSIS',
    verbNames.map((name) => `.B ndots ${name}\n[options]`).join('\n.br\n'),
    '.SH DESCRIPTION',
    'Serves cluster DNS in place of CoreDNS, and explains which queries the resolver of a program sends for a name, and why.',
  ];
  for (const name of verbNames) {
    const { help } = await loadVerb(name);
    lines.push(
      `.SH NDOTS ${name.toUpperCase()}`,
      literal(verbSummaries.get(name) ?? ''),
      '.PP',
      '.nf',
      literal(help.trimEnd()),
      '.fi',
    );
  }
  lines.push(
    '.SH EXIT STATUS',
    '0: yes. 1: no, or a Corefile that cannot be served. 2: it could not be found out. 3: wrong usage.',
    '.SH SIGNALS (serve)',
    'SIGTERM and SIGINT end it, SIGQUIT at once; SIGUSR1 loads the Corefile anew.',
  );
  return `${lines.join('\n')}\n`;
}

const text = await page();
if (process.argv.includes('--check')) {
  if (readFileSync(FILE, 'utf8') !== text) {
    console.error(`${FILE} is not what the help texts say: run node tools/man.ts`);
    process.exitCode = 1;
  }
} else writeFileSync(FILE, text);
