/**
 * `ndots check serve --kuberhealthy` with a real API server, where Kuberhealthy's own clients are the checkers in its
 * pods.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { after, afterEach, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { parseAllDocuments } from 'yaml';
import type { KubeJson } from '../kit/apiserver/store.ts';
import { printed, start, type Child } from '../kit/child.ts';
import { Cluster, type User } from '../kit/cluster/cluster.ts';
import { noApiServer } from '../kit/cluster/programs.ts';
import { noReporter, reporterProgram } from '../kit/kuberhealthy-client/client.ts';
import { freePorts } from '../kit/free-ports.ts';

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly fieldRef: { readonly fieldPath: string } };
}

interface MadePod {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels: Record<string, string>;
    readonly annotations: Record<string, string>;
    readonly ownerReferences: readonly { readonly kind: string; readonly name: string }[];
  };
  readonly spec: {
    readonly restartPolicy: string;
    readonly containers: readonly { readonly env: readonly Variable[] }[];
    readonly initContainers?: readonly { readonly env: readonly Variable[] }[];
  };
}

const deployed = (file: string): KubeJson[] =>
  parseAllDocuments(readFileSync(`deploy/check/${file}`, 'utf8')).map(
    (document) => document.toJS() as KubeJson,
  );

const namespace = (name: string): KubeJson =>
  ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }) as KubeJson;

const podSpec = {
  restartPolicy: 'Never',
  initContainers: [{ name: 'before', image: 'checker' }],
  containers: [
    {
      name: 'main',
      image: 'checker',
      env: [
        { name: 'TARGET', value: 'kubernetes.default' },
        { name: 'KH_RUN_UUID', value: 'of somebody else' },
      ],
    },
  ],
};

const healthCheck = (name: string, spec: object = {}, annotations: object = {}): KubeJson =>
  ({
    apiVersion: 'kuberhealthy.github.io/v2',
    kind: 'HealthCheck',
    metadata: { name, namespace: 'team', annotations },
    spec: { runInterval: '1h', timeout: '1m', podSpec: { spec: podSpec }, ...spec },
  }) as unknown as KubeJson;

const khCheck = (name: string, spec: object = {}): KubeJson =>
  ({
    apiVersion: 'comcast.github.io/v1',
    kind: 'KuberhealthyCheck',
    metadata: { name, namespace: 'team' },
    spec: { runInterval: '1h', timeout: '1m', podSpec, ...spec },
  }) as unknown as KubeJson;

const khJob = (name: string, spec: object = {}): KubeJson =>
  ({
    apiVersion: 'comcast.github.io/v1',
    kind: 'KuberhealthyJob',
    metadata: { name, namespace: 'team' },
    spec: { timeout: '1m', podSpec, ...spec },
  }) as unknown as KubeJson;

const skip = noApiServer() ?? noReporter() ?? false;

describe('in Kuberhealthy’s place, on a real API server', { skip }, () => {
  let cluster: Cluster;
  let children: Child[] = [];

  before(async () => {
    reporterProgram(2);
    reporterProgram(3);
    cluster = await Cluster.start();
    assert.deepEqual(await cluster.put(deployed('crds.yaml')), []);
    assert.deepEqual(await cluster.put([namespace('kuberhealthy'), namespace('team')]), []);
    assert.deepEqual(await cluster.put(deployed('rbac.yaml')), []);
    const service = deployed('workload.yaml').filter(({ kind }) => kind === 'Service');
    assert.deepEqual(await cluster.put(service), []);
    await cluster.kubectl('wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s');
  });
  after(async () => {
    await cluster?.[Symbol.asyncDispose]();
  });
  afterEach(async () => {
    for (const child of children) child.signal('SIGKILL');
    await Promise.all(children.map((child) => child.exitCode));
    children = [];
    for (const kind of ['healthchecks', 'khchecks', 'khjobs', 'khstates', 'pods', 'events'])
      await cluster.kubectl('delete', kind, '--all', '-n', 'team', '--grace-period=0', '--force');
    await cluster.kubectl('delete', 'lease', '--all', '-n', 'kuberhealthy');
  });

  async function serve(
    words: readonly string[] = [],
    env: NodeJS.ProcessEnv = {},
    user: User = 'kuberhealthy',
  ): Promise<{ child: Child; port: number }> {
    const [port] = await freePorts(1);
    const child = start(
      'ndots',
      [
        ...['bin/ndots', 'check', 'serve', '--kuberhealthy', '--listen', `127.0.0.1:${port}`],
        ...['--kubeconfig', cluster.kubeconfig(user), ...words],
      ],
      {
        env: {
          ...process.env,
          POD_NAMESPACE: 'kuberhealthy',
          POD_NAME: `replica-${children.length}`,
          KH_CHECK_REPORT_URL: `http://127.0.0.1:${port}`,
          ...env,
        },
      },
    );
    children.push(child);
    await printed(child, /in Kuberhealthy's place/, 30_000);
    return { child, port };
  }

  const json = async <T>(...words: string[]): Promise<T> =>
    JSON.parse(await cluster.kubectl('get', ...words, '-o', 'json')) as T;

  async function until<T>(ask: () => Promise<T | null>, what: string): Promise<T> {
    const end = Date.now() + 30_000;
    for (;;) {
      const found = await ask();
      if (found !== null) return found;
      assert.ok(
        Date.now() < end,
        `${what} did not come\n${children.map((child) => child.output()).join('')}`,
      );
      await pause(150);
    }
  }

  const podsOf = async (check: string, count = 1): Promise<readonly MadePod[]> =>
    until(async () => {
      const { items } = await json<{ items: MadePod[] }>('pods', '-n', 'team');
      const its = items.filter(({ metadata }) => metadata.name.startsWith(`${check}-`));
      return its.length >= count ? its : null;
    }, `a pod of ${check}`);

  const podOf = async (check: string): Promise<MadePod> => (await podsOf(check))[0]!;

  interface Status {
    readonly ok: boolean;
    readonly errors?: readonly string[];
    readonly currentUUID: string;
    readonly successCount?: number;
    readonly failureCount?: number;
    readonly consecutiveFailures?: number;
    readonly runDuration?: number;
    readonly lastRunUnix?: number;
  }
  const statusUntil = (name: string, wanted: (status: Status) => boolean): Promise<Status> =>
    until(async () => {
      const { status } = await json<{ status?: Status }>('healthcheck', name, '-n', 'team');
      return status !== undefined && wanted(status) ? status : null;
    }, `the status of ${name}`);

  interface State {
    readonly OK: boolean;
    readonly Errors: readonly string[];
    readonly uuid: string;
    readonly RunDuration: string;
    readonly LastRun: string | null;
    readonly AuthoritativePod: string;
  }
  const stateUntil = (name: string, wanted: (state: State) => boolean): Promise<State> =>
    until(async () => {
      const all = await json<{ items: { metadata: { name: string }; spec: State }[] }>(
        'khstates',
        '-n',
        'team',
      );
      const found = all.items.find(({ metadata }) => metadata.name === name)?.spec;
      return found !== undefined && wanted(found) ? found : null;
    }, `the state of ${name}`);

  /** Replaces the kubelet: runs the real client with the pod's environment. */
  const play = (
    version: 2 | 3,
    pod: MadePod,
    ...errors: string[]
  ): Promise<{ code: number; text: string }> => {
    const env = Object.fromEntries(
      pod.spec.containers[0]!.env.map(({ name, value }) => [name, value ?? 'team']),
    );
    return new Promise((resolve) => {
      execFile(
        reporterProgram(version),
        errors,
        { env, timeout: 60_000 },
        (error, out, complaints) => {
          resolve({ code: error === null ? 0 : 1, text: `${out}${complaints}` });
        },
      );
    });
  };

  const urlOf = (pod: MadePod): string =>
    pod.spec.containers[0]!.env.find(({ name }) => name === 'KH_REPORTING_URL')!.value!;

  /** A pod's report path, with the run's secret. */
  const pathOf = (pod: MadePod): string => {
    const { pathname, search } = new URL(urlOf(pod));
    return `${pathname}${search}`;
  };

  const runOf = (pod: MadePod): string =>
    pod.spec.containers[0]!.env.find(({ name }) => name === 'KH_RUN_UUID')!.value!;

  const post = (
    port: number,
    path: string,
    run: string | null,
    body: string,
    headers: Record<string, string> = { 'content-type': 'application/json' },
    method = 'POST',
  ): Promise<{ status: number; text: string }> =>
    new Promise((resolve, reject) => {
      const sent = request(
        {
          host: '127.0.0.1',
          port,
          path,
          method,
          headers: { ...headers, ...(run !== null && { 'kh-run-uuid': run }) },
        },
        (response) => {
          let text = '';
          response.on('data', (piece: Buffer) => (text += piece.toString()));
          response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
        },
      );
      sent.on('error', reject);
      sent.end(body);
    });

  const page = async (port: number, path: string, accept = '*/*'): Promise<string> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { accept } });
    return response.text();
  };

  test('a HealthCheck gets its pod, and the report of version 3’s own client becomes its status', async () => {
    const { port } = await serve();
    await cluster.put([
      healthCheck('dns', {
        extraLabels: { team: 'a' },
        podSpec: { metadata: { annotations: { note: 'b' } }, spec: podSpec },
      }),
    ]);
    const pod = await podOf('dns');
    const run = runOf(pod);
    assert.match(run, /^[0-9a-f-]{36}$/);
    const { metadata, spec } = pod;
    assert.deepEqual(metadata.labels, { team: 'a', healthcheck: 'dns', 'kh-run-uuid': run });
    assert.equal(metadata.annotations['note'], 'b');
    assert.equal(metadata.annotations['kuberhealthyCheckName'], 'dns');
    assert.deepEqual(
      metadata.ownerReferences.map(({ kind, name }) => [kind, name]),
      [['HealthCheck', 'dns']],
    );
    const before = await statusUntil('dns', () => true);
    assert.equal(before.currentUUID, run);
    const variables = spec.containers[0]!.env;
    assert.deepEqual(
      variables.map(({ name, value, valueFrom }) => [name, value ?? valueFrom?.fieldRef.fieldPath]),
      [
        ['TARGET', 'kubernetes.default'],
        ['KH_REPORTING_URL', `http://127.0.0.1:${port}/check`],
        ['KH_RUN_UUID', run],
        ['KH_POD_NAMESPACE', 'metadata.namespace'],
        ['KH_CHECK_RUN_DEADLINE', String(before.lastRunUnix! + 60)],
      ],
    );
    assert.deepEqual(spec.initContainers![0]!.env, variables.slice(1));
    const { code, text } = await play(3, pod);
    assert.equal(code, 0, text);
    const status = await statusUntil('dns', ({ ok }) => ok);
    assert.equal(status.currentUUID, '');
    assert.equal(status.successCount, 1);
    assert.ok(status.runDuration! > 0);
    const shown = JSON.parse(await page(port, '/json')) as {
      OK: boolean;
      CheckDetails: Record<string, { ok: boolean; namespace: string; timeoutSeconds: number }>;
      CurrentMaster: string;
    };
    assert.equal(shown.OK, true);
    assert.equal(shown.CurrentMaster, 'replica-0');
    assert.deepEqual(
      [shown.CheckDetails['dns']?.ok, shown.CheckDetails['dns']?.namespace],
      [true, 'team'],
    );
  });

  test('a KuberhealthyCheck gets its pod, and the report of version 2’s own client becomes its KuberhealthyState', async () => {
    const { port } = await serve();
    await cluster.put([khCheck('old')]);
    const pod = await podOf('old');
    const run = runOf(pod);
    assert.deepEqual(pod.metadata.labels, {
      app: 'kuberhealthy-check',
      'kuberhealthy-check-name': 'old',
      'kuberhealthy-run-id': run,
    });
    assert.equal(pod.metadata.annotations['comcast.github.io/check-name'], 'old');
    const prefix = `http://127.0.0.1:${port}/externalCheckStatus?token=`;
    assert.ok(urlOf(pod).startsWith(prefix), urlOf(pod));
    const { code, text } = await play(2, pod, 'no answer from 10.0.0.10');
    assert.equal(code, 0, text);
    const state = await stateUntil('old', ({ OK }) => !OK);
    assert.deepEqual(state.Errors, ['no answer from 10.0.0.10']);
    assert.equal(state.uuid, run);
    assert.equal(state.AuthoritativePod, 'replica-0');
    // As in Kuberhealthy 2, the same run may send a different report later.
    await play(2, pod);
    await stateUntil('old', ({ OK }) => OK);
    const shown = JSON.parse(await page(port, '/')) as {
      OK: boolean;
      CheckDetails: Record<string, { OK: boolean }>;
    };
    assert.equal(shown.CheckDetails['team/old']?.OK, true);
    const metrics = await page(port, '/metrics');
    assert.match(metrics, /^kuberhealthy_check\{.*check="team\/old".*status="1".*\} 1$/m);
    assert.match(metrics, /^kuberhealthy_running\{current_master="replica-0"\} 1$/m);
    assert.match(metrics, /^kuberhealthy_cluster_state 1$/m);
  });

  test('a report of another run is refused as Kuberhealthy refuses it', async () => {
    const { port } = await serve();
    await cluster.put([healthCheck('new'), khCheck('old')]);
    const fine = '{"OK": true, "Errors": []}';
    const [newPod, oldPod] = [await podOf('new'), await podOf('old')];
    const [run, oldRun] = [runOf(newPod), runOf(oldPod)];
    const own = pathOf(newPod);
    const refused: readonly (readonly [number, ...Parameters<typeof post>])[] = [
      [405, port, '/check', run, '', {}, 'GET'],
      [415, port, '/check', run, fine, { 'content-type': 'text/plain' }],
      [400, port, '/check', null, fine],
      [400, port, '/check', 'ffffffff-0000-0000-0000-000000000000', fine],
      [400, port, '/check', oldRun, fine],
      [400, port, '/externalCheckStatus', run, fine],
      [400, port, '/externalCheckStatus', null, fine],
      [403, port, '/check', run, fine],
      [400, port, own, run, 'OK'],
      [400, port, own, run, '[]'],
      [400, port, own, run, '{"OK": "true"}'],
      [400, port, own, run, '{"OK": true, "Errors": ["but"]}'],
      [400, port, own, run, '{"OK": false, "Errors": []}'],
      [400, port, own, run, '{"OK": false, "Errors": ["one", ""]}'],
      [400, port, own, run, '{"OK": false, "Errors": [1]}'],
      [413, port, own, run, JSON.stringify({ OK: false, Errors: ['x'.repeat(300_000)] })],
    ];
    for (const [status, ...sent] of refused) {
      const answer = await post(...sent);
      assert.equal(
        answer.status,
        status,
        `${JSON.stringify(sent.slice(1)).slice(0, 120)}: ${answer.text}`,
      );
    }
    assert.equal((await statusUntil('new', () => true)).currentUUID, run);
    // Go accepts keys in any case.
    assert.equal((await post(port, own, run, '{"ok": true, "errors": null}')).status, 200);
    const second = await post(port, own, run, fine);
    assert.equal(second.status, 400);
    assert.match(second.text, /invalid or expired/);
    assert.equal((await post(port, pathOf(oldPod), oldRun, fine)).status, 200);
  });

  test('a run without a report has failed, with the state of its pod, and its late report is refused: 410', async () => {
    const { port } = await serve();
    await cluster.put([
      healthCheck('silent', { timeout: '3s' }),
      khCheck('quiet', { timeout: '3s' }),
    ]);
    const pod = await podOf('silent');
    await podOf('quiet');
    const status = { phase: 'Pending', containerStatuses: [waiting] };
    const patch = ['--subresource=status', '--type=merge', '-p', JSON.stringify({ status })];
    await cluster.kubectl('patch', 'pod', pod.metadata.name, '-n', 'team', ...patch);
    // After the deadline but before the end of the run.
    await pause(3200);
    const late = await post(port, pathOf(pod), runOf(pod), '{"OK": true}');
    assert.ok([410, 400].includes(late.status), `${late.status} ${late.text}`);
    const failed = await statusUntil('silent', ({ failureCount }) => failureCount === 1);
    assert.match(
      failed.errors![0]!,
      /^check run [0-9a-f-]{36} timed out after 3s \(started at .*Z\): pod silent-\w+ is Pending: ImagePullBackOff \(no such image\)$/,
    );
    assert.equal(failed.currentUUID, '');
    const state = await stateUntil('quiet', ({ OK }) => !OK);
    assert.match(
      state.Errors[0]!,
      /^Check execution error: team\/quiet: timed out waiting for checker pod to report in: pod/,
    );
    assert.match(await page(port, '/metrics'), /^kuberhealthy_cluster_state 0$/m);
  });

  test('a check that names checks of ndots is run without a pod', async () => {
    await serve();
    const file = (server: string): object => ({
      'ndots.dev/checks': `vip: ${server}\ntimeout: 200ms\ntries: 1\nchecks: [{check: vip-fresh-port}]\n`,
    });
    await cluster.put([
      healthCheck('own', { podSpec: {} }, file('127.0.0.1:9')),
      healthCheck('mistaken', { podSpec: {} }, { 'ndots.dev/checks': 'chekcs: []' }),
    ]);
    const status = await statusUntil('own', ({ failureCount }) => failureCount === 1);
    assert.match(
      status.errors![0]!,
      /^DNS failed: vip-fresh-port 127\.0\.0\.1:9: .*no server listens/,
    );
    const mistaken = await statusUntil('mistaken', ({ failureCount }) => failureCount === 1);
    assert.match(mistaken.errors![0]!, /^DNS unknown: .*chekcs/);
    const { items } = await json<{ items: unknown[] }>('pods', '-n', 'team');
    assert.deepEqual(items, []);
  });

  test('malformed checks fail separately and affect no other', async () => {
    const { child } = await serve();
    const wrong = healthCheck('wrong', { runInterval: 'often', timeout: '-3s', podSpec: {} });
    const long = healthCheck(`l${'o'.repeat(80)}ng`);
    const nopod = khCheck('nopod', { podSpec: { containers: [{ name: 'X Y' }] } });
    await cluster.put([wrong, long, nopod, healthCheck('right')]);
    const status = await statusUntil('wrong', ({ failureCount }) => (failureCount ?? 0) > 0);
    assert.match(status.errors![0]!, /^failed to create check pod: .*422 Invalid/);
    const state = await stateUntil('nopod', ({ OK }) => !OK);
    assert.match(state.Errors[0]!, /failed to create pod for checker: .*X Y/);
    await podOf('right');
    const longPod = await podOf(`l${'o'.repeat(56)}`);
    assert.equal(longPod.metadata.name.length, 63);
    assert.equal(longPod.metadata.annotations['kuberhealthyCheckName'], `l${'o'.repeat(80)}ng`);
    assert.match(child.output(), /team\/wrong: spec\.runInterval is "often", which is no time/);
    assert.match(child.output(), /team\/wrong: spec\.timeout is "-3s"/);
  });

  test('one replica leads; when it is killed the other continues, and accepts the reports throughout', async () => {
    const first = await serve();
    await printed(first.child, /is the leader and holds the lease/, 10_000);
    const second = await serve();
    await cluster.put([healthCheck('dns', { runInterval: '2s' })]);
    const pod = await podOf('dns');
    // The other replica accepts the report, and the first one notices that the run is over.
    assert.equal((await post(second.port, pathOf(pod), runOf(pod), '{"OK": true}')).status, 200);
    const again = (await podsOf('dns', 2)).find((each) => runOf(each) !== runOf(pod))!;
    first.child.signal('SIGKILL');
    await first.child.exitCode;
    assert.equal(
      (await post(second.port, pathOf(again), runOf(again), '{"OK": true}')).status,
      200,
    );
    await podsOf('dns', 3);
    assert.match(second.child.output(), /is the leader and holds the lease/);
    second.child.signal('SIGTERM');
    assert.equal(await second.child.exitCode, 0, second.child.output());
    const lease = await json<{ spec: { holderIdentity?: string } }>(
      ...['lease', 'kuberhealthy-controller', '-n', 'kuberhealthy'],
    );
    assert.equal(lease.spec.holderIdentity ?? '', '', 'given up for the next one');
  });

  test('a report while the API server is away is held, and delivered when it is back', async () => {
    const { child } = await serve();
    await cluster.put([healthCheck('dns')]);
    const pod = await podOf('dns');
    await cluster.killApiServer();
    const [answer] = await Promise.all([
      play(3, pod),
      pause(3000).then(() => cluster.startApiServer()),
    ]);
    assert.equal(answer.code, 0, `${answer.text}\n${child.output()}`);
    await statusUntil('dns', ({ ok }) => ok);
  });

  test('checkers get the address of the service, and its name only on request', async () => {
    const env = { KH_CHECK_REPORT_URL: undefined };
    const first = await serve([], env);
    await cluster.put([healthCheck('dns')]);
    const urlOf = (pod: MadePod): string =>
      pod.spec.containers[0]!.env.find(({ name }) => name === 'KH_REPORTING_URL')!.value!;
    const { spec } = await json<{ spec: { clusterIP: string } }>(
      ...['service', 'kuberhealthy', '-n', 'kuberhealthy'],
    );
    const address = spec.clusterIP.includes(':') ? `[${spec.clusterIP}]` : spec.clusterIP;
    assert.equal(urlOf(await podOf('dns')), `http://${address}:80/check`);
    first.child.signal('SIGTERM');
    await first.child.exitCode;
    await serve(['--report-by', 'name'], env);
    await cluster.put([healthCheck('named')]);
    const named = urlOf(await podOf('named'));
    assert.equal(
      new URL(named).host,
      ['kuberhealthy', 'kuberhealthy', 'svc.cluster.local'].join('.'),
    );
  });

  test('finished pods are cleared away, all but the last ones', async () => {
    await serve(['--keep-completed', '1', '--keep-failed', '1']);
    await cluster.put([healthCheck('dns', { runInterval: '2s' })]);
    for (let count = 1; count <= 4; count++) {
      const pods = await podsOf('dns', count);
      const { items } = await json<{ items: { status: { currentUUID: string } }[] }>(
        ...['healthchecks', '-n', 'team'],
      );
      const pod = pods.find((each) => runOf(each) === items[0]!.status.currentUUID);
      if (pod === undefined) {
        count--;
        await pause(100);
        continue;
      }
      await play(3, pod);
      const status = { phase: count % 2 === 0 ? 'Failed' : 'Succeeded' };
      const patch = ['--subresource=status', '--type=merge', '-p', JSON.stringify({ status })];
      await cluster.kubectl('patch', 'pod', pod.metadata.name, '-n', 'team', ...patch);
    }
    await cluster.kubectl(
      ...['patch', 'healthcheck', 'dns', '-n', 'team', '--type=merge'],
      ...['-p', '{"spec": {"runInterval": "1h"}}'],
    );
    await until(async () => {
      const { items } = await json<{ items: { status: { phase: string } }[] }>(
        'pods',
        '-n',
        'team',
      );
      const ended = items.filter(({ status }) => status.phase !== 'Pending');
      return ended.length === 2 ? true : null;
    }, 'two pods that are left');
  });

  test('a KuberhealthyJob runs once, and the report of version 2’s own client completes it', async () => {
    const { port } = await serve();
    await cluster.put([khJob('once')]);
    const pod = await podOf('once');
    const { code, text } = await play(2, pod, 'no answer from 10.0.0.10');
    assert.equal(code, 0, text);
    const phase = async (): Promise<string> =>
      (await json<{ spec: { phase?: string } }>('khjob', 'once', '-n', 'team')).spec.phase ?? '';
    await until(async () => ((await phase()) === 'Completed' ? true : null), 'the end of the job');
    const shown = JSON.parse(await page(port, '/')) as {
      OK: boolean;
      CheckDetails: object;
      JobDetails: Record<string, { OK: boolean; Errors: string[] }>;
    };
    assert.deepEqual(shown.CheckDetails, {});
    assert.deepEqual(shown.JobDetails['team/once']?.Errors, ['no answer from 10.0.0.10']);
    assert.match(await page(port, '/metrics'), /^kuberhealthy_job\{check="team\/once".*\} 0$/m);
    await pause(3000);
    assert.equal((await podsOf('once')).length, 1);
  });

  test('kubectl describe shows the events of a check, and so does /api/events; /api/run runs it again', async () => {
    const { port } = await serve();
    await cluster.put([healthCheck('dns'), khCheck('old')]);
    await play(3, await podOf('dns'), 'no answer');
    await play(2, await podOf('old'));
    const described = await until(async () => {
      // kubectl (1.32) omits events by default when it describes objects of several kinds.
      const words = ['describe', 'healthcheck,khcheck', '-n', 'team', '--show-events=true'];
      const told = await cluster.kubectl(...words);
      return /CheckReported[^]*CheckReported/.test(told) ? told : null;
    }, 'the events');
    assert.match(described, /Normal +PodCreated .*kuberhealthy.* created pod dns-\w{5}/);
    assert.match(described, /Warning +CheckReported .* no answer/);
    assert.match(described, /Normal +CheckReported .* check reported OK/);
    const query = '?namespace=team&healthcheck=dns';
    const events = JSON.parse(await page(port, `/api/events${query}`)) as { reason: string }[];
    assert.deepEqual(events.map(({ reason }) => reason).toSorted(), [
      'CheckReported',
      'PodCreated',
    ]);
    const asked = await until(async () => {
      const answer = await post(port, `/api/run${query}`, null, '');
      return answer.status === 429 ? null : answer;
    }, 'ten seconds');
    assert.equal(asked.status, 202, asked.text);
    await podsOf('dns', 2);
    assert.equal((await post(port, `/api/run${query}`, null, '')).status, 409);
  });

  test('a report without a run is known by the address of its pod', async () => {
    const { port } = await serve();
    await cluster.put([khCheck('old')]);
    const pod = await podOf('old');
    const status = { phase: 'Running', podIP: '127.0.0.1', podIPs: [{ ip: '127.0.0.1' }] };
    const patch = ['--subresource=status', '--type=merge', '-p', JSON.stringify({ status })];
    await cluster.kubectl('patch', 'pod', pod.metadata.name, '-n', 'team', ...patch);
    const body = '{"OK": false, "Errors": ["no answer"]}';
    const answer = await until(async () => {
      const each = await post(port, '/externalCheckStatus', null, body);
      return each.status === 200 ? each : null;
    }, 'the address of the pod');
    assert.equal(answer.status, 200);
    await stateUntil('old', ({ Errors }) => Errors[0] === 'no answer');
  });

  test('a refusal by Pod Security Admission is the error of the run; otherwise the pod is as the check defines it', async () => {
    await serve();
    const label = (level: string): Promise<string> =>
      cluster.kubectl('label', 'namespace', 'team', enforced(level), '--overwrite');
    const hostile = { podSpec: { spec: { ...podSpec, hostNetwork: true, hostPID: true } } };
    await label('restricted');
    try {
      await cluster.put([healthCheck('refused', hostile)]);
      const status = await statusUntil('refused', ({ failureCount }) => failureCount === 1);
      assert.match(
        status.errors![0]!,
        /^failed to create check pod: .*violates PodSecurity "restricted:latest": host namespaces/,
      );
    } finally {
      await label('privileged');
    }
    await cluster.put([healthCheck('taken', hostile)]);
    const pod = await podOf('taken');
    assert.equal((pod.spec as { hostNetwork?: boolean }).hostNetwork, true);
  });

  test('a process is killed between a run and its report: the next one accepts the report', async () => {
    const first = await serve();
    await cluster.put([healthCheck('dns'), khCheck('old')]);
    const [pod, old] = [await podOf('dns'), await podOf('old')];
    first.child.signal('SIGKILL');
    await first.child.exitCode;
    const { port } = await serve();
    const fine = '{"OK": true, "Errors": []}';
    assert.equal((await post(port, pathOf(pod), runOf(pod), fine)).status, 200);
    assert.equal((await post(port, pathOf(old), runOf(old), fine)).status, 200);
    assert.equal((await podsOf('dns')).length, 1);
  });

  test('a check with Kuberhealthy’s finalizer can be deleted', async () => {
    await serve();
    const kept = healthCheck('kept');
    (kept.metadata as { finalizers?: string[] }).finalizers = ['kuberhealthy.io/healthcheck'];
    await cluster.put([kept]);
    await podOf('kept');
    await cluster.kubectl('delete', 'healthcheck', 'kept', '-n', 'team', '--timeout=20s');
  });
});

const enforced = (level: string): string => `pod-security.kubernetes.io/enforce=${level}`;

const waiting = {
  name: 'main',
  image: 'checker',
  imageID: '',
  ready: false,
  restartCount: 0,
  state: { waiting: { reason: 'ImagePullBackOff', message: 'no such image' } },
};
