import { readFileSync } from 'node:fs';
import { EXIT, type Command } from './command.ts';

const manifest = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
) as { readonly version: string };

/** The version of ndots. */
export const coreVersion: string = manifest.version;

/** What `-version` prints: CoreDNS's two lines with our names. */
export function versionText(): string {
  return `ndots-${coreVersion}\n${process.platform}/${process.arch}, node${process.version}\n`;
}

export const version: Command = {
  name: 'version',
  summary: 'version, runtime, and which transports this machine gives',
  help: 'ndots version: version, runtime, and which transports this machine gives\n',
  options: [],
  async run(words, io) {
    if (words.length > 0) {
      io.err(`ndots version takes no words, not '${words.join(' ')}'\n`);
      return EXIT.usage;
    }
    const { batchedUdp } = await import('../linux/packet-loop.ts');
    io.out(versionText());
    const found = batchedUdp();
    io.out(`UDP: ${found.available ? 'batched (recvmmsg/sendmmsg)' : `plain (${found.reason})`}\n`);
    return EXIT.ok;
  },
};
