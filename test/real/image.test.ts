import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test, type TestContext } from 'node:test';
import { securityContextFor } from '../../src/tools/pods/ephemeral-container.ts';
import { nodeSecurityContext } from '../../src/tools/pods/node-pod.ts';
import { printed, start } from '../kit/child.ts';
import { helmTemplate, noHelm } from '../kit/helm.ts';
import { noImages, type Image } from '../kit/image.ts';
import { imageForTests, ended } from '../kit/image-suite.ts';
import { containersOf, type OurContainer } from '../kit/our-containers.ts';
import { confinementOf } from '../kit/security-context.ts';

/**
 * Actually executes the steps in deploy/Dockerfile, and starts the two resulting images as the kubelet starts CoreDNS.
 */

const corefile = `
.:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        manifests /etc/coredns/objects
    }
    prometheus :9153
    cache 30
}
`;

const { dependencies, optionalDependencies } = JSON.parse(
  readFileSync('package.json', 'utf8'),
) as Record<'dependencies' | 'optionalDependencies', object>;
const needed = Object.keys({ ...dependencies, ...optionalDependencies });

const service = `
apiVersion: v1
kind: Service
metadata: {name: backend, namespace: shop}
spec: {clusterIP: 10.3.0.116, ports: [{port: 80}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
`;

/** All parts of the chart that use this image. */
const everything = {
  ...Object.fromEntries(
    ['autoscaler', 'check', 'kuberhealthy', 'webhook'].map((part) => [part, { enabled: true }]),
  ),
  service: { clusterIP: '10.0.0.10' },
};

const files = {
  '/etc/coredns/Corefile': corefile,
  '/etc/coredns/objects/shop.yaml': service,
};
const run = (words: readonly string[]): ReturnType<typeof ended> => ended(words, 20_000);
type Built = (t: TestContext) => Image | null;

const isOfTools = ({ image }: OurContainer): boolean => /(?:^|\/)ndots-tools:/.test(image);
const chart = (seccompDirectory: string): readonly OurContainer[] =>
  containersOf(helmTemplate({ ...everything, seccompDirectory })).filter(
    ({ image }) => !image.startsWith('ndots-node-cache'),
  );
const reason = noHelm();

/** Prints the names of all files, and works even in an image without a shell. */
const listing = `
  const { readdirSync } = require('node:fs');
  const list = (directory) => {
    for (const each of readdirSync(directory || '/', { withFileTypes: true }))
      if (each.isDirectory()) /^\\/(proc|sys|dev|\\.host)$/.test(directory + '/' + each.name) || list(directory + '/' + each.name);
      else console.log(directory + '/' + each.name);
  };
  list('');`;

/** Starts the server in the image, queries it, and stops it. */
async function answers(
  t: TestContext,
  of: Image,
  words: readonly string[],
  also: () => void = () => undefined,
): Promise<void> {
  const child = start('ndots', words);
  t.after(() => child.stop());
  await printed(child, /^ndots-\d/m, 20_000);
  const asked = ['backend.shop.svc.cluster.local', '+short', '+time=2', '+tries=1'];
  for (const way of ['+notcp', '+tcp']) {
    const { text } = run(of.beside('dig', '@127.0.0.1', ...asked, way));
    assert.equal(text.trim(), '10.3.0.116', child.output());
  }
  also();
  assert.doesNotMatch(child.output(), /WARNING|ERROR/);
  child.signal('SIGTERM');
  assert.equal(await child.exitCode, 0);
}

/** For any manifest: the program must start, and open port 53 if that is permitted. */
function startsIn(
  built: Built,
  name: string,
  container: Omit<OurContainer, 'name' | 'image'>,
): void {
  const { command, security, podSecurity } = container;
  test(`it runs in the security context of ${name}`, async (t) => {
    const of = built(t);
    if (of === null) return;
    const verb = ['version'];
    const { text } = run(of.container(verb, command, {}, security, podSecurity));
    assert.match(text, /^ndots-\S+\n.*\nUDP: batched /);
    const words = (port: number): string[] =>
      of.container(
        ['serve', '-conf', '/etc/coredns/Corefile', '-dns.port', String(port)],
        ['ndots'],
        {},
        security,
        podSecurity,
      );
    const { capabilities } = confinementOf('65532:65532', security, podSecurity);
    if (capabilities?.includes('CAP_NET_BIND_SERVICE') ?? true) return answers(t, of, words(53));
    const refused = run(words(53));
    assert.match(refused.text, /listen udp .*:53: permission denied[^]*NET_BIND_SERVICE/);
    assert.equal(refused.code, 1);
  });
}

describe('the images', { skip: noImages() ?? false }, () => {
  const stage = imageForTests('deploy/Dockerfile', files);
  describe('of the tools', () => ofTools((t) => stage(t, 'tools')));
  describe('of cluster DNS', () => ofServer((t) => stage(t, 'server')));
});

function ofTools(built: Built): void {
  test('has only the files that it needs to run, and batched UDP works', (t) => {
    const of = built(t);
    if (of === null) return;
    const { text } = run(of.container(['find /ndots -type f'], ['sh', '-c']));
    const modules = text.matchAll(/^\/ndots\/node_modules\/(@[^/\n]+\/)?([^/\n]+)\//gm);
    const names = new Set([...modules].map(([, scope = '', name]) => `${scope}${name}`));
    for (const name of needed) assert.ok(names.delete(name), name);
    for (const name of names) assert.match(name, /^@koromix\/koffi-linux-/);
    assert.match(text, /^\/ndots\/examples\/Corefile$/m);
    assert.doesNotMatch(text, /^\/ndots\/(src|tools|test)\/|^\/ndots\/dist\/.*\.ts$/m);
    assert.match(run(of.container(['version'])).text, /^ndots-\S+\n.*\nUDP: batched /);
    const heap = ['-p', 'v8.getHeapStatistics().heap_size_limit / 1024 / 1024'];
    // doctor examines large captures: 384 MiB, and the young generation.
    assert.equal(Math.round(Number(run(of.container(heap, ['node'])).text)), 390);
  });

  test('findings of lint and doctor are explained from within', (t) => {
    const of = built(t);
    if (of === null) return;
    for (const [verb, code] of [
      ['lint', 'CF01'],
      ['doctor', 'ND3001'],
    ] as const) {
      const { text } = run(of.container([verb, '--explain', code], ['ndots']));
      assert.match(text, new RegExp(code));
      assert.ok(text.length > 300, text);
    }
  });

  for (const container of containersOf(readFileSync('deploy/check/workload.yaml', 'utf8')))
    startsIn(built, `deploy/check/workload.yaml: ${container.name}`, container);

  for (const capabilities of [[], ['NET_RAW']])
    startsIn(built, ['ndots exec', ...capabilities].join(' with '), {
      command: null,
      args: null,
      security: securityContextFor(capabilities),
      podSecurity: {},
    });

  startsIn(built, 'ndots node', {
    command: null,
    args: null,
    security: nodeSecurityContext,
    podSecurity: {},
  });

  if (reason !== null) test('it runs in the security contexts of the chart', { skip: reason });
  else
    for (const seccompDirectory of ['', 'ndots'])
      for (const container of chart(seccompDirectory).filter(isOfTools))
        startsIn(
          built,
          `the chart: ${container.name}, seccompDirectory "${seccompDirectory}"`,
          container,
        );

  test('it has the verb that each container of manifests and the chart starts', (t) => {
    const of = built(t);
    if (of === null) return;
    const containers = [
      ...['check/workload', 'capture/daemonset', 'watch/daemonset'].flatMap((name) =>
        containersOf(readFileSync(`deploy/${name}.yaml`, 'utf8')),
      ),
      ...(reason === null ? chart('').filter(isOfTools) : []),
    ];
    for (const { name, image, args, command } of containers) {
      assert.match(image, /(?:^|\/)ndots-tools:/, name);
      const [verb = ''] = args ?? [];
      const { code, text } = run(of.container([verb, '--help'], command));
      assert.equal(code, 0, `${name}: ${text}`);
    }
  });
}

function ofServer(built: Built): void {
  test('holds the server, and no tools, shell or packages', (t) => {
    const of = built(t);
    if (of === null) return;
    const { text } = run(of.container(['-e', listing], ['node']));
    const bundled = text.match(/^\/ndots\/.*$/gm) ?? [];
    for (const file of bundled)
      assert.match(
        file,
        /^\/ndots\/(?:dist|examples|node_modules\/(?:@koromix\/)?koffi|package\.json)/,
      );
    assert.doesNotMatch(text, /\/(?:ba|da)?sh$|\/(?:npm|apt-get|perl)$|(?:doctor|lint)\.js$/m);
    assert.match(text, /^\/lib\/libc\.so\.6$/m);
    assert.match(run(of.container(['version'])).text, /^ndots-\S+\n.*\nUDP: batched /);
    const { code, text: refused } = run(of.container(['trace', 'redis.cache']));
    assert.match(
      refused,
      /^ndots: this image contains only the DNS server\. The ndots-tools image /,
    );
    assert.equal(code, 3);
  });

  test('ndots and coredns are on PATH, and /coredns is where the manifests of CoreDNS look', (t) => {
    const of = built(t);
    if (of === null) return;
    for (const program of ['ndots', 'coredns', '/coredns']) {
      const { code, text } = run(of.container(['-version'], [program]));
      assert.match(text, /^ndots-\S+\n/, program);
      assert.equal(code, 0, program);
    }
  });

  for (const [what, command] of [
    ['with the arguments of CoreDNS', null],
    ['with the command and arguments of CoreDNS', ['/coredns']],
  ] as const) {
    test(`${what} it answers on port 53 without root, and SIGTERM ends it`, async (t) => {
      const of = built(t);
      if (of === null) return;
      await answers(t, of, of.container(['-conf', '/etc/coredns/Corefile'], command), () => {
        for (const [port, path] of [
          [8080, 'health'],
          [8181, 'ready'],
          [9153, 'metrics'],
        ] as const) {
          const script = `process.stdout.write(String((await fetch('http://127.0.0.1:${port}/${path}')).status))`;
          const { text } = run(of.beside(process.execPath, '--input-type=module', '-e', script));
          assert.equal(text, '200', path);
        }
      });
    });
  }

  test('runc starts its containers, as containerd has it do', (t) => {
    const of = built(t);
    if (of !== null && of.runtime !== 'runc') t.skip('runc does not work here: setpriv does it');
  });

  for (const container of containersOf(readFileSync('deploy/kubeadm/ndots.yaml', 'utf8')))
    startsIn(built, `deploy/kubeadm/ndots.yaml: ${container.name}`, container);

  if (reason !== null) test('it runs in the security context of the chart', { skip: reason });
  else
    for (const seccompDirectory of ['', 'ndots'])
      for (const container of chart(seccompDirectory).filter((each) => !isOfTools(each)))
        startsIn(
          built,
          `the chart: ${container.name}, seccompDirectory "${seccompDirectory}"`,
          container,
        );

  const drop = ['ALL'];
  for (const [name, security] of [
    ['an empty one', {}],
    ['a privileged container', { privileged: true }],
    ['root without capabilities', { runAsUser: 0, capabilities: { drop } }],
    [
      'root with port 53 alone',
      { runAsUser: 0, capabilities: { drop, add: ['NET_BIND_SERVICE'] } },
    ],
    ['a user of the cluster', { runAsUser: 1000, runAsGroup: 3000, capabilities: { drop } }],
    [
      'a user of the cluster with port 53',
      {
        runAsUser: 1_000_650_000,
        allowPrivilegeEscalation: false,
        capabilities: { drop, add: ['NET_BIND_SERVICE'] },
      },
    ],
    [
      'port 53 with escalation',
      {
        allowPrivilegeEscalation: true,
        capabilities: { drop, add: ['NET_BIND_SERVICE'] },
      },
    ],
    ['no escalation alone', { allowPrivilegeEscalation: false }],
    [
      'NET_BIND_SERVICE dropped by name',
      { capabilities: { drop: ['NET_BIND_SERVICE'] }, readOnlyRootFilesystem: true },
    ],
  ] as const)
    startsIn(built, name, { command: null, args: null, security, podSecurity: {} });

  test('where the runtime opens low ports to all users it needs no capability', async (t) => {
    const of = built(t);
    if (of === null) return;
    const set = (from: number): unknown =>
      run(of.beside('sysctl', '-w', `net.ipv4.ip_unprivileged_port_start=${from}`));
    set(0);
    t.after(() => set(1024));
    const restricted = securityContextFor([]);
    await answers(t, of, of.container(['-conf', '/etc/coredns/Corefile'], null, {}, restricted));
  });
}
