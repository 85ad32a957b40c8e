import assert from 'node:assert/strict';
import { Resolver } from 'node:dns/promises';
import { after, before, describe, test } from 'node:test';
import type { KubeJson } from '../kit/apiserver/store.ts';
import { Cluster } from '../kit/cluster/cluster.ts';
import { noApiServer } from '../kit/cluster/programs.ts';
import { serveProcess, type ServeProcess } from '../kit/serve-process.ts';

const service = (name: string, clusterIP: string): KubeJson => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: 'default' },
  spec: { clusterIP, ports: [{ name: 'http', port: 80 }] },
});

describe(
  'a real API server whose database was restored from an older backup',
  { skip: noApiServer() ?? false },
  () => {
    let cluster: Cluster;
    let server: ServeProcess;

    before(async () => {
      cluster = await Cluster.start();
      server = await serveProcess(
        `errors\nkubernetes cluster.local {\n kubeconfig ${cluster.kubeconfig('admin')}\n}`,
      );
    });

    after(async () => {
      await server?.stop();
      await cluster?.[Symbol.asyncDispose]();
    });

    /** A service's address, or the error code. */
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

    test('is followed back: later objects are gone, deleted ones exist again', async (t) => {
      await cluster.put([service('kept', '10.0.0.11'), service('deleted', '10.0.0.12')]);
      await becomes('deleted', '10.0.0.12');
      const backup = await cluster.backUp();
      await cluster.kubectl('delete', 'service', 'deleted');
      const others = Array.from({ length: 300 }, (_, nth) =>
        service(`other-${nth}`, `10.0.${1 + (nth >> 7)}.${1 + (nth & 127)}`),
      );
      await cluster.put([service('made', '10.0.0.13'), ...others]);
      await becomes('made', '10.0.0.13');
      await becomes('deleted', 'ENOTFOUND');
      await becomes('other-299', '10.0.3.44');
      await cluster.restore(backup);
      const began = Date.now();
      await becomes('made', 'ENOTFOUND');
      await becomes('deleted', '10.0.0.12');
      t.diagnostic(`right ${Date.now() - began} ms after the server was ready again`);
      assert.equal(await lookUp('kept'), '10.0.0.11');
      assert.match(
        server.child.output(),
        /but was at \d+ before, as after a restore from a backup/,
      );
      await cluster.put([service('later', '10.0.0.14')]);
      await becomes('later', '10.0.0.14');
    });
  },
);
