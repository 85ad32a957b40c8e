/** A whole server in real time, queried without sockets. */
import { systemClock } from '../../src/server/base/clock.ts';
import { makeLog } from '../../src/server/base/log.ts';
import { seededRandom } from '../../src/server/base/random.ts';
import { parseCorefile } from '../../src/server/corefile/parse.ts';
import type { Plugin } from '../../src/server/engine/contract/plugin.ts';
import { EmbeddedServer, type Sender } from '../../src/server/engine/embedded.ts';
import { typeNumber } from '../../src/server/wire/iana.ts';
import { readMessage, type Message } from '../../src/server/wire/message.ts';
import { parseName } from '../../src/server/wire/name.ts';
import { makeQuery } from '../../src/server/transport/query.ts';

/**
 * A whole server in real time, because its source uses real sockets. Queries are passed in directly, without sockets.
 */
export interface Served {
  readonly log: readonly string[];
  ask(name: string, type: string): Promise<Message>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function serveCorefile(
  text: string,
  plugins: readonly Plugin[],
  directory: string,
): Promise<Served> {
  const log: string[] = [];
  const embedded = new EmbeddedServer({
    plugins: () => Promise.resolve(plugins),
    clock: systemClock,
    random: seededRandom(1),
    directory,
    log: makeLog((line) => log.push(line)),
    env: {},
    network: {
      upstream: () => {
        throw new Error('there is no network here');
      },
    },
    operational: true,
    onFatal: (reason) => log.push(reason),
    load: () =>
      parseCorefile({
        file: 'Corefile',
        text,
        dnsPort: 53,
        env: {},
        directives: plugins.map(({ name }) => name),
        readFile: (path) => {
          throw new Error(`no file ${path}`);
        },
        glob: () => [],
      }),
  });
  await embedded.start();
  const server = embedded.open[0]!.server;
  return {
    log,
    async ask(name, type) {
      const { bytes, start, end } = makeQuery(parseName(name), typeNumber(type)!);
      const reply = await embedded.exchange(bytes.subarray(start, end), sender, server);
      return readMessage(reply!);
    },
    [Symbol.asyncDispose]: () => embedded.stop(),
  };
}

const sender: Sender = {
  proto: 'tcp',
  address: Uint8Array.of(10, 244, 0, 9),
  port: 40_000,
  local: '10.96.0.10',
  localPort: 53,
};
