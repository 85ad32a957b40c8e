import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { costsAtMost } from '../../../../test/kit/growth.ts';
import { everything, Listener, until } from '../../../../test/kit/apiserver/rig.ts';
import { makeLog } from '../../base/log.ts';
import { Problem } from '../../base/problem.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import type { KubeObject } from '../store/objects.ts';
import { readManifests } from './manifest-file.ts';
import { parseYaml } from './yaml-document.ts';
import type { Source } from '../store/object-source.ts';
import { wholeObject, wholeRecords, type WholeRecord } from '../../../../test/kit/whole-records.ts';
import { manifestSource, type ManifestParts } from './manifest-directory.ts';

interface Bench {
  readonly directory: string;
  readonly clock: VirtualClock;
  readonly source: Source<WholeRecord>;
  readonly heard: Listener;
  readonly lines: string[];
  write(name: string, content: string): void;
  /** Resolves when the directory has been scanned again. */
  poll(): Promise<void>;
}

function bench(
  t: TestContext,
  files: Readonly<Record<string, string>>,
  parts: Partial<ManifestParts<WholeRecord>> = {},
): Bench {
  const directory = parts.directory ?? mkdtempSync(join(tmpdir(), 'ndots-'));
  if (parts.directory === undefined)
    t.after(() => rmSync(directory, { recursive: true, force: true }));
  const write = (name: string, content: string): void =>
    writeFileSync(join(directory, name), content);
  for (const [name, content] of Object.entries(files)) write(name, content);
  const clock = new VirtualClock();
  const lines: string[] = [];
  const source = manifestSource({
    directory,
    wanted: everything,
    reduction: wholeRecords,
    clock,
    log: makeLog((line) => lines.push(line)),
    ...parts,
  });
  const heard = new Listener();
  source.start(heard);
  t.after(() => source.stop());
  return { directory, clock, source, heard, lines, write, poll: () => clock.advance(1000) };
}

function problemOf(run: () => unknown): Problem {
  try {
    run();
  } catch (error) {
    assert.ok(error instanceof Problem, String(error));
    return error;
  }
  return assert.fail('no problem');
}

function get<K extends KubeObject['kind']>(
  heard: Listener,
  kind: K,
  key: string,
): Extract<KubeObject, { kind: K }> {
  const found = heard.state.get(`${kind} ${key}`);
  assert.ok(found, `${kind} ${key} among ${[...heard.state.keys()].join(', ')}`);
  return found as Extract<KubeObject, { kind: K }>;
}

const service = (name: string, extra = ''): string =>
  `apiVersion: v1\nkind: Service\nmetadata: {name: ${name}}\nspec: {ports: [{port: 80}]${extra}}\n`;

test('an empty file, and one rejected for its size, do not wait for a thread', (t) => {
  const { source, heard } = bench(t, {
    'empty.yaml': '',
    'huge.yaml': `# ${' '.repeat(17 * 1024 * 1024)}`,
    'web.yaml': service('web'),
  });
  assert.ok(source.synced);
  get(heard, 'Service', 'default/web');
});

describe('the example cluster', () => {
  const examples = new URL('../../../../examples/cluster', import.meta.url).pathname;

  test('is read without a complaint', (t) => {
    const { lines, heard } = bench(t, {}, { directory: examples });
    assert.deepEqual(lines, [
      `[INFO] ${examples}: 3 files, 4 namespaces, 6 services, 6 endpoint slices, 11 pods`,
    ]);
    assert.deepEqual(heard.names('Namespace'), ['critical-app', 'default', 'kube-system', 'shop']);
  });

  test("has the scenario's backend: one address, three pods, and the client", (t) => {
    const { heard } = bench(t, {}, { directory: examples });
    const backend = get(heard, 'Service', 'critical-app/backend');
    assert.deepEqual(backend.clusterIPs, ['10.3.0.116']);
    assert.deepEqual(backend.ports, [{ name: '', protocol: 'TCP', port: 80 }]);
    const [slice] = [...heard.state.values()].filter(
      (one) => one.kind === 'EndpointSlice' && one.service === 'backend',
    );
    assert.ok(slice?.kind === 'EndpointSlice');
    assert.deepEqual(
      slice.endpoints.map((endpoint) => endpoint.addresses[0]),
      ['172.17.0.4', '172.17.0.5', '172.17.0.6'],
    );
    assert.ok(slice.endpoints.every((endpoint) => endpoint.ready && endpoint.pod !== ''));
    assert.deepEqual(get(heard, 'Pod', 'critical-app/client').ips, ['172.17.0.7']);
  });

  test('has a headless database whose pods have their own names', (t) => {
    const { heard } = bench(t, {}, { directory: examples });
    const [slice] = [...heard.state.values()].filter(
      (one) => one.kind === 'EndpointSlice' && one.service === 'db',
    );
    assert.ok(slice?.kind === 'EndpointSlice');
    assert.deepEqual(
      slice.endpoints.map((endpoint) => [endpoint.hostname, endpoint.addresses[0]]),
      [
        ['db-0', '172.17.2.4'],
        ['db-1', '172.17.2.5'],
        ['db-2', '172.17.2.6'],
      ],
    );
  });

  test('has a dual-stack service with named ports, each resolved to the port of its pods', (t) => {
    const { heard } = bench(t, {}, { directory: examples });
    assert.deepEqual(get(heard, 'Service', 'shop/web').clusterIPs, ['10.3.0.80', 'fd00:10:3::80']);
    const slices = [...heard.state.values()].filter(
      (one) => one.kind === 'EndpointSlice' && one.service === 'web',
    );
    assert.deepEqual(
      slices.map((one) => one.kind === 'EndpointSlice' && one.ports.map((port) => port.port)),
      [
        [8080, 8443],
        [8080, 8443],
      ],
    );
  });
});

describe('a directory of manifests', () => {
  test('is synced when started, and gives late workers everything', (t) => {
    const { source, heard } = bench(t, { 'a.yaml': service('web') });
    assert.equal(source.synced, true);
    assert.deepEqual([...heard.syncedKinds].sort(), [
      'EndpointSlice',
      'Namespace',
      'Pod',
      'Service',
    ]);
    assert.deepEqual(
      new Set([...source.snapshot()].map(wholeObject)),
      new Set(heard.state.values()),
    );
  });

  test('is read at every depth, in YAML and JSON, with many documents and lists', (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-'));
    t.after(() => rmSync(directory, { recursive: true }));
    mkdirSync(join(directory, 'deep/er'), { recursive: true });
    writeFileSync(
      join(directory, 'a.yml'),
      `${service('one')}---\n# nothing\n---\n${service('two')}`,
    );
    writeFileSync(
      join(directory, 'deep/er/list.json'),
      JSON.stringify({
        kind: 'List',
        items: [
          { kind: 'Service', metadata: { name: 'three', namespace: 'x' } },
          { kind: 'ServiceList', items: [{ kind: 'Service', metadata: { name: 'four' } }] },
        ],
      }),
    );
    writeFileSync(join(directory, 'README.md'), 'kind: Service');
    writeFileSync(join(directory, 'other.yaml'), 'replicaCount: 3\n---\nkind: Ingress\n');
    const { heard, lines } = bench(t, {}, { directory });
    assert.deepEqual(heard.names('Service'), ['four', 'one', 'three', 'two']);
    assert.deepEqual(heard.names('Namespace'), ['default', 'x']);
    assert.equal(lines.length, 1, lines.join('\n'));
  });

  test('reports the differences when a file is changed, added or removed', async (t) => {
    const made = bench(t, { 'a.yaml': service('one'), 'b.yaml': service('two') });
    made.heard.forget();
    await made.poll();
    assert.equal(made.heard.all.length, 0);
    made.write('a.yaml', service('one', ', externalIPs: [192.0.2.1]'));
    rmSync(join(made.directory, 'b.yaml'));
    made.write('c.yaml', service('three'));
    await made.poll();
    assert.deepEqual(
      made.heard.all.map((change) => [
        change.verb,
        change.verb === 'put' ? change.object.name : change.name,
      ]),
      [
        ['put', 'one'],
        ['put', 'three'],
        ['delete', 'two'],
      ],
    );
  });

  test('may be a mounted ConfigMap, which changes by swapping a link', async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-'));
    t.after(() => rmSync(directory, { recursive: true }));
    const then = new Date('2026-01-01T00:00:00Z');
    for (const [version, name] of [
      ['..1', 'one'],
      ['..2', 'two'],
    ] as const) {
      mkdirSync(join(directory, version));
      writeFileSync(join(directory, version, 'a.yaml'), service(name));
      // The size and time are the same, so only the file itself differs.
      utimesSync(join(directory, version, 'a.yaml'), then, then);
    }
    symlinkSync('..1', join(directory, '..data'));
    symlinkSync('..data/a.yaml', join(directory, 'a.yaml'));
    const made = bench(t, {}, { directory });
    assert.deepEqual(made.heard.names('Service'), ['one']);
    symlinkSync('..2', join(directory, '..new'));
    renameSync(join(directory, '..new'), join(directory, '..data'));
    await made.poll();
    assert.deepEqual(made.heard.names('Service'), ['two']);
  });

  test('may contain a link to itself', (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-'));
    t.after(() => rmSync(directory, { recursive: true }));
    symlinkSync('.', join(directory, 'again'));
    writeFileSync(join(directory, 'a.yaml'), service('one'));
    const { heard, lines } = bench(t, {}, { directory });
    assert.deepEqual(heard.names('Service'), ['one']);
    assert.equal(lines.length, 1);
  });

  test('that is missing, or neither a directory nor a file, is a problem before anything starts', () => {
    const parts = {
      wanted: everything,
      reduction: wholeRecords,
      clock: new VirtualClock(),
      log: makeLog(() => {}),
    };
    const missing = problemOf(() => manifestSource({ ...parts, directory: '/no/such/folder' }));
    assert.match(missing.message, /cannot read \/no\/such\/folder: no such file/);
    assert.equal(missing.remedy, 'create it, or specify another directory');
    const device = problemOf(() => manifestSource({ ...parts, directory: '/dev/null' }));
    assert.match(device.message, /\/dev\/null is neither a file nor a directory/);
  });

  test('may be a single file with any name', (t) => {
    const made = bench(t, { 'a.yaml': service('one'), 'b.yaml': service('two') });
    made.write('objects', service('three'));
    for (const [name, found] of [
      ['a.yaml', 'one'],
      ['objects', 'three'],
    ] as const) {
      const { heard } = bench(t, {}, { directory: join(made.directory, name) });
      assert.deepEqual(heard.names('Service'), [found]);
    }
  });

  test('that disappears later keeps its objects, and is reported once', async (t) => {
    const made = bench(t, { 'a.yaml': service('one') });
    renameSync(made.directory, `${made.directory}-gone`);
    t.after(() => rmSync(`${made.directory}-gone`, { recursive: true, force: true }));
    for (let i = 0; i < 5; i++) await made.poll();
    assert.deepEqual(made.heard.names('Service'), ['one']);
    assert.equal(made.lines.filter((line) => line.startsWith('[ERROR]')).length, 1);
    assert.match(made.lines.at(-1)!, /the objects stay unchanged/);
    renameSync(`${made.directory}-gone`, made.directory);
    await made.poll();
    assert.match(made.lines.at(-1)!, /can be read again/);
  });

  test('with an unreadable file reports it and keeps the rest', (t) => {
    if (process.getuid?.() === 0) {
      t.skip('root may read everything');
      return;
    }
    const directory = mkdtempSync(join(tmpdir(), 'ndots-'));
    t.after(() => rmSync(directory, { recursive: true }));
    writeFileSync(join(directory, 'a.yaml'), service('one'));
    writeFileSync(join(directory, 'b.yaml'), service('two'));
    chmodSync(join(directory, 'b.yaml'), 0);
    const { heard, lines } = bench(t, {}, { directory });
    assert.deepEqual(heard.names('Service'), ['one']);
    assert.match(lines[0]!, /cannot read .*b\.yaml: EACCES/);
  });

  test('with an unreadable subdirectory reports it once, and again when it comes back', async (t) => {
    const made = bench(t, { 'a.yaml': service('one') });
    const closed = join(made.directory, 'closed');
    const root = process.getuid?.() === 0;
    const told = (): number =>
      made.lines.filter((line) => /cannot read .*closed/.test(line)).length;
    chmodSync(made.directory, 0o755);
    mkdirSync(closed, { mode: 0 });
    if (root) process.seteuid?.(65534);
    try {
      for (let i = 0; i < 5; i++) await made.poll();
      assert.equal(told(), 1);
      if (root) process.seteuid?.(0);
      chmodSync(closed, 0o755);
      await made.poll();
      chmodSync(closed, 0);
      if (root) process.seteuid?.(65534);
      for (let i = 0; i < 3; i++) await made.poll();
      assert.equal(told(), 2);
    } finally {
      if (root) process.seteuid?.(0);
      chmodSync(closed, 0o755);
    }
  });

  test('with a subdirectory that became unreadable keeps its objects until it is readable or gone', async (t) => {
    const made = bench(t, { 'a.yaml': service('one') });
    const closed = join(made.directory, 'closed');
    const root = process.getuid?.() === 0;
    chmodSync(made.directory, 0o755);
    mkdirSync(closed);
    writeFileSync(join(closed, 'b.yaml'), service('two'));
    await made.poll();
    chmodSync(closed, 0);
    if (root) process.seteuid?.(65534);
    try {
      for (let i = 0; i < 3; i++) await made.poll();
      assert.deepEqual(made.heard.names('Service'), ['one', 'two']);
    } finally {
      if (root) process.seteuid?.(0);
      chmodSync(closed, 0o755);
    }
    rmSync(closed, { recursive: true });
    await made.poll();
    assert.deepEqual(made.heard.names('Service'), ['one']);
  });

  test('with other labels is excluded, including services, slices and pods', (t) => {
    const labelled = (name: string, tier: string): string =>
      `kind: Service\nmetadata: {name: ${name}, labels: {tier: ${tier}}}\nspec: {selector: {app: ${name}}, ports: [{port: 1}]}\n---\n` +
      `kind: Pod\nmetadata: {name: ${name}, labels: {app: ${name}, tier: ${tier}}}\n---\n`;
    const { heard } = bench(
      t,
      { 'a.yaml': labelled('a', 'front') + labelled('b', 'back') },
      { wanted: { ...everything, labels: 'tier=front' } },
    );
    assert.deepEqual(heard.names('Service'), ['a']);
    assert.deepEqual(heard.names('Pod'), ['a']);
    assert.equal(heard.names('EndpointSlice').length, 1);
  });
});

describe('an invalid file', () => {
  const bad: readonly [string, string, RegExp][] = [
    [
      'broken YAML',
      `${service('ok')}---\nkind: Service\n metadata: {name: x}\n`,
      /a\.yaml:6:\d+: this is not YAML/,
    ],
    ['a tab', 'kind: Service\nmetadata:\n\tname: x\n', /a\.yaml:3:1: .*never with tabs/],
    [
      'a missing name',
      'kind: Service\nmetadata:\n  namespace: x\n',
      /a\.yaml:3:3: this Service has no metadata\.name/,
    ],
    [
      'a number as name',
      'kind: Service\nmetadata:\n  name: 7\n',
      /a\.yaml:3:9: metadata\.name must be a string/,
    ],
    [
      'an impossible name',
      'kind: Pod\nmetadata:\n  name: A_b\n',
      /a\.yaml:3:9: 'A_b' is not a valid object name/,
    ],
    [
      'an impossible namespace',
      'kind: Pod\nmetadata:\n  name: a\n  namespace: 12\n',
      /a\.yaml:4:14: '12' is not a valid namespace/,
    ],
    [
      'a wrong type',
      'kind: Service\nmetadata: {name: a}\nspec:\n  type: Nodeport\n',
      /a\.yaml:4:9: 'Nodeport' is not a service type.*did you mean NodePort\?/,
    ],
    [
      'no target',
      'kind: Service\nmetadata: {name: a}\nspec:\n  type: ExternalName\n',
      /a\.yaml:4:3: an ExternalName service needs spec\.externalName/,
    ],
    [
      'no address',
      'kind: Service\nmetadata: {name: a}\nspec:\n  clusterIP: 10.0.0.256\n',
      /a\.yaml:4:14: '10\.0\.0\.256' is not an address/,
    ],
    [
      'ports that are no list',
      'kind: Service\nmetadata: {name: a}\nspec:\n  ports: {port: 80}\n',
      /a\.yaml:4:10: ports must be a list, but this is an object/,
    ],
    [
      'a port too high',
      'kind: Service\nmetadata: {name: a}\nspec:\n  ports:\n  - port: 70000\n',
      /a\.yaml:5:11: '70000' is not a port/,
    ],
    [
      'an unknown protocol',
      'kind: Service\nmetadata: {name: a}\nspec:\n  ports:\n  - {port: 1, protocol: tcp}\n',
      /a\.yaml:5:25: 'tcp' is not a service protocol/,
    ],
    [
      'replicas in words',
      'kind: Deployment\nmetadata: {name: a}\nspec:\n  replicas: three\n  template: {}\n',
      /a\.yaml:4:13: 'three' is not a valid number of replicas/,
    ],
    [
      'no template',
      'kind: Deployment\nmetadata: {name: a}\nspec:\n  replicas: 3\n',
      /a\.yaml:4:3: spec\.template is missing/,
    ],
    [
      'a slice of names',
      'kind: EndpointSlice\nmetadata: {name: a}\nendpoints:\n- addresses: [x]\n',
      /a\.yaml:4:15: 'x' is not an address/,
    ],
    [
      'a bad annotation',
      'kind: Pod\nmetadata:\n  name: a\n  annotations:\n    ndots.dev/pod-ips: 10.0.0.9-10.0.0.1\n',
      /a\.yaml:5:24: '10\.0\.0\.9-10\.0\.0\.1' is not a list of addresses/,
    ],
    [
      'a list instead of an object',
      '- kind: Service\n',
      /a\.yaml:1:1: expected a Kubernetes object, but this is a list/,
    ],
  ];
  for (const [name, content, words] of bad) {
    test(`with ${name} is reported with its position, and the rest stays`, (t) => {
      const { lines, heard } = bench(t, { 'a.yaml': content, 'b.yaml': service('other') });
      assert.match(lines[0]!, words);
      assert.ok(lines[0]!.startsWith('[ERROR]'));
      assert.equal(lines.filter((line) => line.startsWith('[ERROR]')).length, 1, lines.join('\n'));
      assert.ok(heard.names('Service').includes('other'));
    });
  }

  test('contributes its good parts, as long as it was never valid as a whole', (t) => {
    const { heard, lines } = bench(t, {
      'a.yaml': `${service('good')}---\nkind: Service\nmetadata: {}\n`,
    });
    assert.deepEqual(heard.names('Service'), ['good']);
    assert.match(lines[0]!, /until then this object is ignored/);
  });

  test('that was valid keeps its last valid content until it is valid again', async (t) => {
    const made = bench(t, { 'a.yaml': service('one') + '---\n' + service('two') });
    made.write('a.yaml', `${service('three')}---\nkind: [`);
    await made.poll();
    assert.deepEqual(made.heard.names('Service'), ['one', 'two']);
    assert.match(
      made.lines.at(-2)!,
      /a\.yaml:6:\d+: .*until then the previous version of the file is used/,
    );
    const told = made.lines.length;
    await made.poll();
    assert.equal(made.lines.length, told, 'told once');
    made.write('a.yaml', service('three'));
    await made.poll();
    assert.deepEqual(made.heard.names('Service'), ['three']);
  });

  test('does not exhaust memory with aliases of aliases', (t) => {
    const lines = ['a0: &a0 [x,x,x,x,x,x,x,x,x]'];
    for (let i = 1; i < 12; i++) {
      lines.push(
        `a${i}: &a${i} [${Array(9)
          .fill(`*a${i - 1}`)
          .join(',')}]`,
      );
    }
    const made = bench(t, { 'a.yaml': lines.join('\n') });
    assert.match(made.lines[0]!, /this is not YAML: .*alias/i);
  });

  test('is passed on as a problem too', (t) => {
    const problems: Problem[] = [];
    bench(t, { 'a.yaml': 'kind: [' }, { problem: (problem) => problems.push(problem) });
    assert.equal(problems[0]!.code, 'yaml-syntax');
  });

  test('duplicate object: the first one counts, and it is reported once', async (t) => {
    const made = bench(t, {
      'a.yaml': service('web', ', clusterIP: 10.96.0.77'),
      'b.yaml': service('web', ', clusterIP: 10.96.0.78'),
    });
    assert.deepEqual(get(made.heard, 'Service', 'default/web').clusterIPs, ['10.96.0.77']);
    assert.match(made.lines[0]!, /b\.yaml:1:1: Service default\/web already exists; .*a\.yaml:1/);
    made.write('c.yaml', service('other'));
    await made.poll();
    assert.equal(made.lines.filter((line) => line.includes('already')).length, 1);
  });

  test('two services with one address are both served, and reported', (t) => {
    const made = bench(t, {
      'a.yaml':
        service('one', ', clusterIP: 10.96.0.77') +
        '---\n' +
        service('two', ', clusterIP: 10.96.0.77'),
    });
    assert.deepEqual(made.heard.names('Service'), ['one', 'two']);
    assert.match(
      made.lines[0]!,
      /default\/two has the same address 10\.96\.0\.77 as service default\/one/,
    );
  });
});

describe('a malicious manifest', () => {
  test('nested 200 000 deep is one problem, and the other files are served', async (t) => {
    const deep = '['.repeat(200_000) + ']'.repeat(200_000);
    const made = bench(t, { 'a.yaml': deep, 'b.yaml': service('web') });
    await until(() => made.source.synced);
    assert.deepEqual(made.heard.names('Service'), ['web']);
    assert.match(made.lines.join('\n'), /a\.yaml:1:\d+: this is nested too deeply to be read/);
  });

  test('nested deeply in a file that is read immediately is a problem, too', (t) => {
    const made = bench(t, { 'a.yaml': '- '.repeat(20_000) + 'a', 'b.yaml': service('web') });
    assert.deepEqual(made.heard.names('Service'), ['web']);
    assert.match(made.lines.join('\n'), /nested too deeply/);
  });

  test('with ten times as many keys does not take a hundred times as long', async () => {
    const keys = (count: number): string =>
      Array.from({ length: count }, (_, index) => `k${index}: 1`).join('\n');
    const [many, few] = [keys(20_000), keys(2000)];
    await costsAtMost(
      30,
      () => parseYaml(many, 'keys.yaml'),
      () => parseYaml(few, 'keys.yaml'),
    );
  });

  test('of a million documents, none of them an object, has its first hundred errors reported', () => {
    const { problems } = readManifests('--- 1\n'.repeat(1e5), 'a.yaml');
    assert.equal(problems.length, 101);
    assert.match(
      problems[100]!.message,
      /there are 100 errors, so the rest of the file is not read/,
    );
  });

  for (const [name, text] of Object.entries({
    'a list of millions of entries': `[${'{},'.repeat(1e6)}]`,
    'a text of many MiB': `a: "${'x'.repeat(3e6)}"`,
    'millions of keys': 'a: 1\n'.repeat(1e6),
    'a list without end': `items: [${'[[1'.repeat(60)}`,
  })) {
    test(`with ${name} is a problem before much is built`, () => {
      const { manifests, problems } = readManifests(text, 'a.yaml', 8 * 1024 * 1024);
      assert.equal(manifests.length, 0);
      assert.equal(problems.length, 1);
      assert.match(
        problems[0]!.message,
        /reading this needs more than 8 MiB of memory|is not YAML|nested too deeply/,
      );
    });
  }

  test('that grows beyond the manifest memory keeps its previous version, and so do the others', async (t) => {
    const made = bench(
      t,
      { 'a.yaml': service('web'), 'b.yaml': service('db') },
      { memory: 1 << 20 },
    );
    assert.deepEqual(made.heard.names('Service'), ['db', 'web']);
    const many = Array.from({ length: 900 }, (_, index) => service(`web-${index}`)).join('---\n');
    made.write('a.yaml', many);
    await made.poll();
    await until(() => made.lines.some((line) => line.includes('1 MiB')));
    assert.match(
      made.lines.find((line) => line.includes('1 MiB'))!,
      /a\.yaml:\d+:1: the objects read so far need more than 1 MiB of memory; .*manifest_memory.*previous version/,
    );
    assert.deepEqual(made.heard.names('Service'), ['db', 'web']);
  });

  test('that exceeds the manifest memory together with the other files is left out', async (t) => {
    const many = (name: string): string =>
      Array.from({ length: 500 }, (_, index) => service(`${name}-${index}`)).join('---\n');
    const told: string[] = [];
    const made = bench(
      t,
      { 'a.yaml': many('a'), 'b.yaml': many('b') },
      { memory: 1 << 20, problem: ({ code }) => told.push(code) },
    );
    await until(() => made.source.synced);
    assert.equal(made.heard.names('Service').length, 500);
    assert.deepEqual(told, ['manifest-too-large']);
  });

  test('with a duplicate key is a problem with its position', (t) => {
    const made = bench(t, { 'a.yaml': 'kind: Service\nmetadata: {name: a, name: b}\n' });
    assert.match(made.lines[0]!, /a\.yaml:2:21: the key 'name' appears twice in one mapping/);
  });

  test('with many objects is read while this thread keeps working', async (t) => {
    const many = Array.from({ length: 3000 }, (_, index) => service(`web-${index}`)).join('---\n');
    let turns = 0;
    const made = bench(t, { 'a.yaml': many });
    assert.equal(made.source.synced, false);
    await until(() => (turns++, made.source.synced));
    assert.equal(made.heard.names('Service').length, 3000);
    assert.ok(turns > 3, `${turns} turns of the event loop`);
  });

  test('that is a named pipe is skipped and blocks nothing', (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-'));
    t.after(() => rmSync(directory, { recursive: true, force: true }));
    execFileSync('mkfifo', [join(directory, 'a.yaml')]);
    writeFileSync(join(directory, 'b.yaml'), service('web'));
    const made = bench(t, {}, { directory });
    assert.deepEqual(made.heard.names('Service'), ['web']);
  });

  test('with a misspelled kind suggests the right one', (t) => {
    const made = bench(t, {
      'a.yaml': service('web').replace('Service', 'Srevice'),
      'b.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n',
      'c.yaml': 'apiVersion: example.org/v1\nkind: Mode\nmetadata: {name: a}\n',
    });
    const told = made.lines.filter((line) => line.includes('kind'));
    assert.equal(told.length, 1);
    assert.match(told[0]!, /a\.yaml:2:7: there is no kind 'Srevice'; did you mean Service\?/);
  });

  test('that is a Helm chart template is identified as one', (t) => {
    const made = bench(t, {
      'a.yaml': '{{- if .Values.x }}\napiVersion: v1\nkind: Service\n{{- end }}\n',
      'b.yaml': service('web').replace('web', '{{ .Release.Name }}'),
    });
    for (const file of ['a', 'b']) {
      const line = made.lines.find((each) => each.includes(`${file}.yaml`))!;
      assert.match(line, /this is a Helm chart template.*helm template CHART/);
    }
  });
});
