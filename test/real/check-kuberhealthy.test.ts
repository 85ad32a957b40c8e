/** `ndots check run` as a checker pod for Kuberhealthy versions 2 and 3. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { explainHost } from '../../src/tools/probe/kuberhealthy/explanation.ts';
import { findReportingAddresses } from '../../src/tools/probe/kuberhealthy/reporting-address.ts';
import { resolutionCheck } from '../../src/tools/probe/kuberhealthy/run.ts';
import { start } from '../kit/child.ts';
import { kuberhealthy, type KuberhealthyStandIn } from '../kit/kuberhealthy.ts';
import { serveAnswers, type LocalAnswers } from '../kit/local-answers.ts';
import { freePorts } from '../kit/free-ports.ts';

const storyHost = 'kube-health.localhost';

describe('a Kuberhealthy checker', () => {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-kuberhealthy-'));
  let receiver: KuberhealthyStandIn;
  let server: LocalAnswers;
  let silent: LocalAnswers;
  let fine: string;
  let broken: string;

  before(async () => {
    receiver = await kuberhealthy(['run-1', 'run-late']);
    server = await serveAnswers({
      rules: [{ name: 'kubernetes.default.svc.cluster.local.', type: 'A', answer: '10.96.0.1' }],
    });
    const [dead] = await freePorts(1);
    fine = join(directory, 'fine.yaml');
    broken = join(directory, 'broken.yaml');
    const vip = `vip: 127.0.0.1:${server.port}`;
    const checks = 'checks: [{ check: vip-fresh-port }, { check: replica-answers }]';
    const shared = `${vip}\ntimeout: 2s\n${checks}\n`;
    writeFileSync(fine, `replicas: ['127.0.0.1:${server.port}']\n${shared}`);
    silent = await serveAnswers({ rules: [{ name: '*', answer: 'DROP' }] });
    writeFileSync(
      join(directory, 'silent.yaml'),
      `vip: 127.0.0.1:${silent.port}\ntimeout: 60s\nchecks: [{ check: vip-fresh-port }]\n`,
    );
    writeFileSync(broken, `replicas: ['127.0.0.1:${dead}']\n${shared}`);
  });
  after(async () => {
    rmSync(directory, { recursive: true });
    await Promise.all([receiver.close(), server.close(), silent.close()]);
  });

  async function run(
    path: string,
    words: readonly string[],
    env: NodeJS.ProcessEnv = {},
  ): Promise<{ code: number | null; text: string }> {
    const child = start('ndots', [resolve('bin/ndots'), 'check', 'run', ...words], {
      env: {
        ...process.env,
        KH_REPORTING_URL: `http://127.0.0.1:${receiver.port}${path}`,
        KH_RUN_UUID: 'run-1',
        KH_CHECK_RUN_DEADLINE: String(Math.floor(Date.now() / 1000) + 120),
        ...env,
      },
    });
    const code = await child.exitCode;
    return { code, text: child.output() };
  }

  for (const [version, path] of [
    [2, '/externalCheckStatus'],
    [3, '/check'],
  ] as const) {
    test(`version ${version}: OK, and failures with their errors, are accepted`, async () => {
      const good = await run(path, ['-f', fine]);
      assert.equal(good.code, 0, good.text);
      const bad = await run(path, ['-f', broken]);
      assert.equal(bad.code, 0, bad.text);
      const [first, second] = receiver.reports.slice(-2);
      assert.deepEqual(first?.body, { OK: true, Errors: [] });
      assert.equal(second?.status, 200);
      assert.equal(second.body?.OK, false);
      assert.match(second.body.Errors.join('\n'), /^DNS failed: replica-answers 127\.0\.0\.1:/);
    });
  }

  for (const [what, id, status] of [
    ['that comes after the timeout', 'run-late', 410],
    ['of a run that another has followed', 'run-0', 400],
  ] as const)
    test(`a report ${what} (${status}) is not a failure`, async () => {
      receiver.late.add('run-late');
      const { code, text } = await run('/check', ['-f', fine], { KH_RUN_UUID: id });
      assert.equal(code, 0, text);
      assert.equal(receiver.reports.at(-1)?.status, status);
      assert.match(text, /too late/);
    });

  test('a wrong path is reported, and not tried for half a minute', async () => {
    const { code, text } = await run('/chekc', ['-f', fine]);
    assert.equal(code, 2, text);
    assert.match(text, /answers 404: this version of Kuberhealthy does not serve the path/);
  });

  test('a check that cannot be made is reported as unknown, not as OK', async () => {
    const { code } = await run('/check', ['-f', join(directory, 'gone.yaml')]);
    assert.equal(code, 0);
    const { body } = receiver.reports.at(-1)!;
    assert.equal(body?.OK, false);
    assert.match(body.Errors[0]!, /^DNS unknown: .*gone\.yaml cannot be read/);
  });

  test('checks that do not end are reported before the deadline', async () => {
    const { code } = await run('/check', ['-f', join(directory, 'silent.yaml')], {
      KH_CHECK_RUN_DEADLINE: String(Math.floor(Date.now() / 1000) + 7),
    });
    assert.equal(code, 0);
    assert.match(receiver.reports.at(-1)!.body!.Errors[0]!, /deadline/);
  });

  test('with DNS fully down, the variables of the service have the report address', async () => {
    const { code, text } = await run('/check', ['-f', broken], {
      KH_REPORTING_URL: `http://kuberhealthy.nowhere.invalid:${receiver.port}/check`,
      KUBERHEALTHY_SERVICE_HOST: '127.0.0.1',
    });
    assert.equal(code, 0, text);
    assert.match(text, /reports go to .*the variable KUBERHEALTHY_SERVICE_HOST/);
    const { headers } = receiver.reports.at(-1)!;
    assert.equal(headers.host, `kuberhealthy.nowhere.invalid:${receiver.port}`);
  });

  test('the Box story: a reporting host below localhost is reached, and explained', async () => {
    const { code, text } = await run('/externalCheckStatus', ['-f', fine], {
      KH_REPORTING_URL: `http://${storyHost}:${receiver.port}/externalCheckStatus`,
    });
    assert.equal(code, 0, text);
    assert.equal(receiver.reports.at(-1)?.headers.host, `${storyHost}:${receiver.port}`);
    assert.match(text, /RFC 6761/);
    assert.match(text, /Go without cgo .*: .*no such host/);
  });
});

describe('the Box story, by the models of clients', () => {
  const settings = {
    resolvConf:
      'nameserver 10.96.0.10\nsearch default.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n',
    hosts: '127.0.0.1 localhost\n',
    hostAliases: null,
    env: {},
    host: { hostname: 'kh-7fbbd69ffc-8tr6d', addresses: ['172.17.0.7'], loopback: [4, 6] as const },
  };

  test('CentOS has nss-myhostname: libc and Go with cgo find the host, Go without cgo does not', async () => {
    const nsswitch = 'hosts: files dns myhostname\n';
    const lines = await explainHost(storyHost, { ...settings, nsswitch });
    assert.match(lines[0]!, /^Go without cgo .*no such host/);
    assert.match(lines[1]!, /^Go with cgo: (::1 127\.0\.0\.1|127\.0\.0\.1 ::1)/);
    assert.match(lines[2]!, /^glibc .*: (::1 127\.0\.0\.1|127\.0\.0\.1 ::1)/);
    assert.match(lines[3]!, /^musl /);
  });

  test('in an image built from scratch, no Go program finds it', async () => {
    const lines = await explainHost(storyHost, { ...settings, nsswitch: null });
    assert.match(lines[0]!, /no such host/);
    assert.match(lines[1]!, /no such host/);
  });
});

describe('the address for reports', () => {
  const url = new URL('http://kuberhealthy.monitoring.svc/check');

  test('the API server is queried if neither DNS nor a variable has the address', async () => {
    const { addresses, failures } = await findReportingAddresses(url, {
      env: {},
      lookup: () => Promise.reject(new Error('getaddrinfo EAI_AGAIN')),
      clusterIp: async (namespace, name) =>
        namespace === 'monitoring' && name === 'kuberhealthy' ? '10.96.3.4' : null,
    });
    assert.deepEqual(
      addresses.map(({ host, port }) => [host, port]),
      [['10.96.3.4', 80]],
    );
    assert.equal(failures.length, 2);
  });
});

describe('the environment of dns-resolution-check', () => {
  test('is accepted unchanged', () => {
    const env = {
      HOSTNAME: 'kubernetes.default',
      NAMESPACE: 'kube-system',
      DNS_POD_SELECTOR: 'k8s-app=kube-dns',
      NODE_NAME: 'node-1',
    };
    assert.deepEqual(resolutionCheck(env, 'dns-status-internal-123'), {
      name: 'kubernetes.default',
      labels: 'k8s-app=kube-dns',
      namespace: 'kube-system',
      remarks: [],
    });
  });

  test('the pod’s own host name is not a name to check, and the variable of old examples is reported', () => {
    const env = { HOSTNAME: 'pod-1', DNS_NODE_SELECTOR: 'apps=k8s-dns' };
    const { name, remarks } = resolutionCheck(env, 'pod-1');
    assert.equal(name, 'kubernetes.default');
    assert.equal(remarks.length, 2);
  });
});
