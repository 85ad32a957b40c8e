/** `ndots version`, and what the version is. */
import { readFileSync } from 'node:fs';
import { EXIT, type Command } from './command.ts';
import type { Usage } from './option.ts';
import { parseOptions } from './option-parse.ts';
import { usage } from './option-values.ts';

const manifest = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as { readonly version: string };

/** The version of ndots. */
export const coreVersion: string = manifest.version;

/** What `-version` prints: CoreDNS's two lines with our names. */
export function versionText(): string {
  return `ndots-${coreVersion}\n${process.platform}/${process.arch}, node${process.version}\n`;
}

/** What `ndots version` takes: nothing. */
export const versionUsage: Usage = {
  synopsis: '',
  examples: [],
  style: 'gnu',
  options: {},
  notes: [],
};

/** The verb `version`. */
export const version: Command = {
  name: 'version',
  async run(words, io) {
    const extra = parseOptions({}, words).words;
    if (extra.length > 0) throw usage(`no words are taken, and not "${extra.join(' ')}"`);
    const { batchedUdp } = await import('../linux/packet-loop.ts');
    io.out(versionText());
    const found = batchedUdp();
    io.out(`UDP: ${found.available ? 'batched (recvmmsg/sendmmsg)' : `plain (${found.reason})`}\n`);
    return EXIT.ok;
  },
};
