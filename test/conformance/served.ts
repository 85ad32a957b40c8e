import { systemClock } from '../../src/base/clock.ts';
import { makeLog } from '../../src/base/log.ts';
import { seededRandom } from '../../src/base/random.ts';
import { parseCorefile } from '../../src/corefile/parse.ts';
import { SharedRegistry } from '../../src/metrics/shared-registry.ts';
import type { Serve } from '../../src/net/listener.ts';
import { DataPlane } from '../../src/server/worker/data-plane.ts';
import type { Plugin } from '../../src/server/contract/plugin.ts';
import { Server } from '../../src/server/control/server.ts';
import { inlinePort } from '../../src/server/control/worker-ports.ts';
import { typeNumber } from '../../src/wire/iana.ts';
import { readMessage, type Message } from '../../src/wire/message.ts';
import { parseName } from '../../src/wire/name.ts';
import { makeQuery } from '../../src/wire/query.ts';
import { stamp } from '../../src/wire/stamp.ts';

/** A server in real time, since its source is reached over real sockets; questions are asked without any. */
export interface Served {
  readonly log: readonly string[];
  ask(name: string, type: string): Promise<Message>;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function serveCorefile(
  text: string,
  plugins: readonly Plugin[],
  folder: string,
): Promise<Served> {
  const log: string[] = [];
  const endpoints = new Map<string, Serve>();
  const sink = makeLog((line) => log.push(line));
  const random = seededRandom(1);
  const server = new Server({
    plugins: () => Promise.resolve(plugins),
    clock: systemClock,
    random,
    folder,
    log: sink,
    env: {},
    workers: 1,
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
    spawn: () =>
      inlinePort(
        (send) =>
          new DataPlane({
            plugins: () => Promise.resolve(plugins),
            clock: systemClock,
            random,
            send,
            log: sink,
            metrics: new SharedRegistry((registration) => send({ kind: 'register', registration })),
            network: {
              upstream: () => {
                throw new Error('there is no network here');
              },
            },
            listen: (endpoint, serve) => ({
              endpoint,
              port: endpoint.port,
              adopt: () => undefined,
              open: () => {
                endpoints.set(endpoint.server, serve);
                return Promise.resolve();
              },
              close: () => Promise.resolve(),
            }),
          }),
      ),
    onFatal: (reason) => log.push(reason),
  });
  await server.start();
  const [serve] = endpoints.values();
  return {
    log,
    async ask(name, type) {
      const query = makeQuery(parseName(name), typeNumber(type)!);
      query.proto = 'tcp';
      const reply = await serve!(query);
      const out = new Uint8Array(70_000);
      return readMessage(out, 0, stamp(reply, query, out, 0));
    },
    [Symbol.asyncDispose]: async () => void (await server.stop()),
  };
}
