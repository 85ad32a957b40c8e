/**
 * Covers `helm install` up to the first answer, and how that server reacts to changed tokens, CAs and API servers. The
 * test does the kubelet's work for the Deployment, namely the container's arguments, its ConfigMap and its account's
 * token.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { answered, printed, start, type Child } from '../kit/child.ts';
import type { KubeJson } from '../kit/apiserver/store.ts';
import { Cluster } from '../kit/cluster/cluster.ts';
import { noApiServer, testedMinors } from '../kit/cluster/programs.ts';
import { helm } from '../kit/helm.ts';

interface Deployment {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly serviceAccountName: string;
        readonly containers: readonly [{ readonly args: readonly string[] }];
      };
    };
  };
}

const root = process.getuid?.() === 0 ? null : 'needs root, for mounts and port 53';

for (const minor of testedMinors)
  describe(
    `helm install${minor === null ? '' : ` on Kubernetes ${minor}`}`,
    { skip: noApiServer(minor) ?? root ?? false },
    () => {
      const directory = mkdtempSync(join(tmpdir(), 'ndots-install-'));
      /**
       * The files that the kubelet would store for the pod: `account/token`, `account/ca.crt` and `config/Corefile`.
       */
      const file = (name: string): string => join(directory, name);
      let cluster: Cluster;
      let server: Child | null = null;

      before(async () => {
        cluster = await Cluster.start(minor);
      });
      after(async () => {
        await server?.stop();
        await cluster?.[Symbol.asyncDispose]();
        rmSync(directory, { recursive: true });
      });

      const run = (...words: readonly string[]): string =>
        helm(words, {
          KUBECONFIG: cluster.kubeconfig('admin'),
          // Its persistent files are in this directory.
          HOME: directory,
        });

      /** Writes a token that is valid for an hour and renews it before it expires, as kubelets do. */
      async function writeToken(account: string): Promise<void> {
        const words = ['create', 'token', account, '-n', 'kube-system'];
        writeFileSync(file('account/token'), (await cluster.kubectl(...words)).trim());
      }

      /** Runs the Deployment's only container in this network and with its files. */
      async function startPod(name: string): Promise<Child> {
        const get = ['get', '-n', 'kube-system', '-o', 'json'];
        const { spec } = JSON.parse(
          await cluster.kubectl(...get, 'deployment', name),
        ) as Deployment;
        const { containers, serviceAccountName } = spec.template.spec;
        const { data } = JSON.parse(await cluster.kubectl(...get, 'configmap', name)) as {
          readonly data: { readonly Corefile: string };
        };
        mkdirSync(file('config'), { recursive: true });
        mkdirSync(file('account'), { recursive: true });
        // Replaces the node's upstream, because this network has none, and a query to itself would be a loop.
        const corefile = data.Corefile.replace(/^\s*(?:loop|forward [^{\n]*(?:\{[^}]*\})?)$/gm, '');
        writeFileSync(file('config/Corefile'), corefile);
        writeFileSync(file('account/namespace'), 'kube-system');
        cpSync(cluster.authorityFile, file('account/ca.crt'));
        await writeToken(serviceAccountName);
        const mounts =
          'mount -t tmpfs none /run && mkdir -p /run/upper /run/work /run/secrets/kubernetes.io/serviceaccount && mount -t overlay overlay -o lowerdir=/etc,upperdir=/run/upper,workdir=/run/work /etc && mkdir -p /etc/coredns && mount --bind "$1" /etc/coredns && mount --bind "$2" /var/run/secrets/kubernetes.io/serviceaccount && shift 2 && exec "$@"';
        const { hostname, port } = new URL(cluster.url);
        return start(
          'ndots',
          [
            ...['unshare', '-m', 'sh', '-c', mounts, 'sh', file('config'), file('account')],
            ...[resolve('bin/ndots'), 'serve', ...containers[0].args],
          ],
          {
            env: {
              ...process.env,
              KUBERNETES_SERVICE_HOST: hostname,
              KUBERNETES_SERVICE_PORT: port,
            },
          },
        );
      }

      test('from nothing to the first answer, as the account that the chart made', async (t) => {
        const began = performance.now();
        const printedOut = run(
          ...['install', 'dns', 'deploy/helm/ndots', '-n', 'kube-system'],
          ...['--set', 'service.clusterIP=10.0.0.10', '--set', 'check.enabled=true'],
        );
        assert.match(printedOut, /STATUS: deployed/);
        const installed = performance.now();
        server = await startPod('dns-ndots');
        await answered(53, 'dns-ndots.kube-system.svc.cluster.local', 30_000);
        const answeredAt = performance.now();
        t.diagnostic(
          `installed in ${Math.round(installed - began)} ms, first answer ${Math.round(answeredAt - installed)} ms later`,
        );
        const { stdout } = spawnSync(
          'dig',
          ['@127.0.0.1', '+short', 'dns-ndots.kube-system.svc.cluster.local'],
          { encoding: 'utf8' },
        );
        assert.equal(stdout.trim(), '10.0.0.10');
        assert.equal((await fetch('http://127.0.0.1:8181/ready')).status, 200);
        assert.equal((await fetch('http://127.0.0.1:8080/health')).status, 200);
        assert.doesNotMatch(server.output(), /WARNING.*(forbidden|unsynced)|ERROR/i);
      });

      /** A Service that is created now is soon answered. */
      let made = 0;
      async function followsChanges(limitMs = 60_000): Promise<number> {
        const name = `made-${++made}`;
        await cluster.put([
          {
            apiVersion: 'v1',
            kind: 'Service',
            metadata: { name, namespace: 'default' },
            spec: { clusterIP: `10.0.1.${made}`, ports: [{ port: 80 }] },
          } as unknown as KubeJson,
        ]);
        return answered(53, `${name}.default.svc.cluster.local`, limitMs);
      }

      test('a new token is used when the old one is no longer valid', async (t) => {
        await writeToken('dns-ndots');
        // Old tokens become invalid when their account is deleted, for example after a leak.
        await cluster.kubectl('delete', 'serviceaccount', 'dns-ndots', '-n', 'kube-system');
        await cluster.kubectl('create', 'serviceaccount', 'dns-ndots', '-n', 'kube-system');
        await writeToken('dns-ndots');
        await cluster.killApiServer();
        await cluster.startApiServer();
        t.diagnostic(`a change is answered after ${Math.round(await followsChanges())} ms`);
      });

      test('an API server with another CA is trusted once the pod has its certificate, and nothing is forgotten until then', async (t) => {
        await cluster.killApiServer();
        cluster.renewAuthority();
        await cluster.startApiServer();
        await pause(3000);
        // The kubelet has not written it yet. Known names are still answered, and the log explains why there are no
        // updates.
        await answered(53, 'made-1.default.svc.cluster.local', 5000);
        await printed(server!, /no trusted TLS connection to the API server/, 20_000);
        cpSync(cluster.authorityFile, file('account/ca.crt'));
        t.diagnostic(`a change is answered after ${Math.round(await followsChanges())} ms`);
      });

      test('helm upgrade changes the given values, and uninstall leaves nothing', async () => {
        run(
          ...['upgrade', 'dns', 'deploy/helm/ndots', '-n', 'kube-system', '--reuse-values'],
          ...['--set', 'replicaCount=3', '--set', 'webhook.enabled=true'],
        );
        const get = (what: string): Promise<string> =>
          cluster.kubectl('get', what, '-A', '-o', 'name', '-l', 'app.kubernetes.io/instance=dns');
        assert.match(await get('deployments'), /dns-ndots-webhook/);
        run(
          ...['upgrade', 'dns', 'deploy/helm/ndots', '-n', 'kube-system', '--reuse-values'],
          ...['--set', 'autoscaler.enabled=true'],
        );
        // An autoscaler must not start with fewer replicas than there were before.
        const replicas = ['deployment', 'dns-ndots', '-o', 'jsonpath={.spec.replicas}'];
        assert.equal(await cluster.kubectl('get', '-n', 'kube-system', ...replicas), '3');
        run('uninstall', 'dns', '-n', 'kube-system', '--wait=false');
        const kinds =
          'deployments,daemonsets,services,configmaps,serviceaccounts,roles,rolebindings';
        const wide =
          'clusterroles,clusterrolebindings,mutatingwebhookconfigurations,poddisruptionbudgets';
        // The account was recreated by hand above, without the label.
        assert.equal(await get(`${kinds},${wide}`), '');
      });
    },
  );
