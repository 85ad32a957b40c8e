import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import type { Clock } from '../../src/server/base/clock.ts';
import { makeLog } from '../../src/server/base/log.ts';
import { seededRandom } from '../../src/server/base/random.ts';
import { parseCorefile } from '../../src/server/corefile/parse.ts';
import { plugins as all } from '../kit/plugins.ts';
import type { Network } from '../../src/server/transport/upstream-address.ts';
import type { Plugin } from '../../src/server/engine/contract/plugin.ts';
import { EmbeddedServer } from '../../src/server/engine/embedded.ts';

export interface CorefileServer extends AsyncDisposable {
  readonly embedded: EmbeddedServer;
  readonly log: readonly string[];
  readonly directory: string;
}

/**
 * An in-memory server for a Corefile, not yet started. `{FOLDER}` in the Corefile is replaced with a directory that
 * contains the files.
 * @param ends plugins for the end of the chain
 * @param home the Corefile's directory, which is not removed; by default, a new one that is removed at the end
 */
export function corefileServer(
  corefile: string,
  files: Readonly<Record<string, string>>,
  clock: Clock,
  network: Network,
  ends: readonly Plugin[] = [],
  home?: string,
): CorefileServer {
  const directory = home ?? mkdtempSync(join(tmpdir(), 'ndots-coredns-'));
  let text = corefile.replaceAll('{FOLDER}', directory);
  for (const [nth, [name, content]] of Object.entries(files).entries()) {
    const path = join(directory, isAbsolute(name) ? `file-${nth}` : name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    if (isAbsolute(name)) text = text.replaceAll(name, path);
  }
  const plugins = [...all, ...ends];
  const log: string[] = [];
  const embedded = new EmbeddedServer({
    plugins: () => Promise.resolve(plugins),
    clock,
    random: seededRandom(1),
    directory,
    log: makeLog((line) => log.push(line)),
    env: {},
    network,
    operational: true,
    onFatal: (reason) => log.push(`[FATAL] ${reason}`),
    load: () =>
      parseCorefile({
        file: 'Testfile',
        text,
        dnsPort: 53,
        env: {},
        directives: plugins.map(({ name }) => name),
        syntaxes: plugins.map(({ syntax }) => syntax),
        readFile: (path) => readFileSync(path, 'utf8'),
        glob: () => [],
      }),
  });
  return {
    embedded,
    log,
    directory,
    async [Symbol.asyncDispose]() {
      await embedded.stop();
      if (home === undefined) rmSync(directory, { recursive: true, force: true });
    },
  };
}
