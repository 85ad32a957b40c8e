/**
 * Draws the documentation's images, in light and dark versions, into `docs/pictures/`: `node tools/pictures.ts`.
 * Diagrams come from the text files there, and terminal images from the current output of the commands.
 */
import { spawnSync } from 'node:child_process';
import { globSync, readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { diagramSvg } from './pictures/diagram.ts';
import { palettes, type Palette } from './pictures/palette.ts';
import { terminalSvg } from './pictures/terminal.ts';

/** Commands with a terminal image, by image name. The README shows these commands. */
export const commands: Readonly<Record<string, string>> = {
  trace:
    'npx ndots trace api.twilio.com --client musl --resolv-conf examples/pod/resolv.conf --corefile examples/Corefile --answers examples/pod/internet.yaml',
  doctor: 'npx ndots doctor examples/captures/tcp-blocked.pcapng',
};

export function pictures(): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const add = (name: string, draw: (palette: Palette) => string): void => {
    for (const [theme, palette] of Object.entries(palettes))
      found.set(`docs/pictures/${name}-${theme}.svg`, draw(palette));
  };
  for (const file of globSync('docs/pictures/*.txt').toSorted())
    add(basename(file, '.txt'), (palette) => diagramSvg(readFileSync(file, 'utf8'), palette));
  for (const [name, command] of Object.entries(commands)) {
    const output = outputOf(command);
    add(name, (palette) => terminalSvg(shortened(command), output, palette));
  }
  return found;
}

function outputOf(command: string): string {
  const [, , ...words] = command.split(' ');
  const { stdout, stderr } = spawnSync('bin/ndots', [...words, '--color', 'always'], {
    encoding: 'utf8',
    env: { ...process.env, TZ: 'UTC', COLUMNS: '100' },
  });
  if (stdout === '') throw new Error(`${command} printed nothing: ${stderr}`);
  return stdout;
}

/** If a command is wider than its output, cuts it after its first option. */
const shortened = (command: string): string =>
  command.length <= 100 ? command : `${command.slice(0, command.indexOf(' --resolv-conf'))} …`;

if (process.argv[1] === fileURLToPath(import.meta.url))
  for (const [file, text] of pictures()) writeFileSync(file, text);
