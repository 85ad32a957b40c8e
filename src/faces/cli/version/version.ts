/** `ndots version`, and the version itself. */
import { readFileSync } from 'node:fs';
import { EXIT, type Command } from '../command.ts';
import { group, one, type Usage } from '../option.ts';
import { parseOptions } from '../option-parse.ts';
import { choice, usage } from '../option-values.ts';

const manifest = JSON.parse(
  readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8'),
) as { readonly version: string };

export const coreVersion: string = manifest.version;

/** Prints the output of `-version`, which is CoreDNS's two lines with our names. */
export function versionText(): string {
  return `ndots-${coreVersion}\n${process.platform}/${process.arch}, node${process.version}\n`;
}

const table = {
  ...group('Output', {
    output: one('-o, --output', choice('FORMAT', ['text', 'json']), 'text or json'),
  }),
};

export const versionUsage: Usage = {
  synopsis: '',
  examples: [],
  style: 'gnu',
  options: table,
  notes: [],
};

export const version: Command = {
  name: 'version',
  async run(words, io) {
    const { values, words: extra } = parseOptions(table, words);
    if (extra.length > 0) throw usage(`unexpected words "${extra.join(' ')}"`);
    const { batchedUdp } = await import('../../../server/runtime/packet-loop.ts');
    const found = batchedUdp();
    if (values.output === 'json') {
      const document = {
        kind: 'Version',
        version: coreVersion,
        platform: `${process.platform}/${process.arch}`,
        node: process.version,
        udp: found.available ? { batched: true } : { batched: false, reason: found.reason },
      };
      io.out(`${JSON.stringify(document, null, 2)}\n`);
      return EXIT.ok;
    }
    io.out(versionText());
    io.out(`UDP: ${found.available ? 'batched (recvmmsg/sendmmsg)' : `plain (${found.reason})`}\n`);
    return EXIT.ok;
  },
};
