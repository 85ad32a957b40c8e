import assert from 'node:assert/strict';
import { Resolver } from 'node:dns/promises';
import { after, before, describe, test } from 'node:test';
import { noRealApiServer, RealApiServer } from '../kit/real-api-server.ts';
import { serveProcess, type ServeProcess } from '../kit/serve-process.ts';

describe(
  'a real API server whose database was restored from an older backup',
  {
    skip: noRealApiServer(),
  },
  () => {
    let api: RealApiServer;
    let server: ServeProcess;

    before(async () => {
      api = await RealApiServer.start();
      server = await serveProcess(
        `errors\nkubernetes cluster.local {\n kubeconfig ${api.kubeconfig}\n}`,
      );
    });

    after(async () => {
      await server?.stop();
      await api?.end();
    });

    /** The address of a service, or the error's code. */
    const lookUp = async (name: string): Promise<string> => {
      const resolver = new Resolver({ timeout: 2000, tries: 1 });
      resolver.setServers([`127.0.0.1:${server.port}`]);
      try {
        return (await resolver.resolve4(`${name}.default.svc.cluster.local`)).join();
      } catch (error) {
        return (error as NodeJS.ErrnoException).code!;
      }
    };
    const becomes = async (name: string, wanted: string, limitMs = 30_000): Promise<void> => {
      const end = Date.now() + limitMs;
      for (let found = ''; (found = await lookUp(name)) !== wanted;) {
        assert.ok(Date.now() < end, `${name} is ${found}, should be ${wanted}`);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    };

    test('is followed back: what was made since is gone, what was deleted since is there again', async (t) => {
      await api.createService('kept', '10.96.0.11');
      await api.createService('deleted', '10.96.0.12');
      await becomes('deleted', '10.96.0.12');
      await api.down();
      api.backup();
      await api.up();
      await api.deleteService('deleted');
      await api.createService('made', '10.96.0.13');
      for (let i = 0; i < 300; i++)
        await api.createService(`other-${i}`, `10.96.${1 + (i >> 7)}.${1 + (i & 127)}`);
      await becomes('made', '10.96.0.13');
      await becomes('deleted', 'ENOTFOUND');
      await becomes('other-299', '10.96.3.44');
      await api.down();
      api.restore();
      await api.up();
      const began = Date.now();
      await becomes('made', 'ENOTFOUND');
      await becomes('deleted', '10.96.0.12');
      t.diagnostic(`right ${Date.now() - began} ms after the server was ready again`);
      assert.equal(await lookUp('kept'), '10.96.0.11');
      assert.match(server.child.output(), /behind \d+ of before, as after a restore from a backup/);
      await api.createService('later', '10.96.0.14');
      await becomes('later', '10.96.0.14');
    });
  },
);
