/** Writes `man/ndots.1` from the help texts of the verbs: `node tools/man.ts`. With `--check` it only compares. */
import { readFileSync, writeFileSync } from 'node:fs';
import { loadVerb, verbNames, verbSummaries } from '../src/cli/verbs.ts';

const FILE = 'man/ndots.1';

/** Text as roff takes it: backslashes and leading dots are no commands. */
function literal(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/gm, '\\&$1');
}

async function page(): Promise<string> {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  const lines = [
    `.TH NDOTS 1 "" "ndots ${version}" "ndots"`,
    '.SH NAME',
    'ndots \\- Kubernetes DNS you can see through',
    '.SH SYNOPSIS',
    ...verbNames.map((name) => `.B ndots ${name}\n[options]\n.br`),
    '.SH DESCRIPTION',
    'Serves cluster DNS in place of CoreDNS, and explains which queries the resolver of a program sends for a name, and why.',
  ];
  for (const name of verbNames) {
    const { help } = await loadVerb(name);
    lines.push(
      `.SH ndots ${name}`,
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
