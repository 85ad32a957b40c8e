import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import fc from 'fast-check';
import { parseAllDocuments } from 'yaml';
import { pcapFile } from '../../../../test/kit/packets.ts';
import { stories } from '../../../../test/kit/stories.ts';
import { runCommand, traceJson, type Ran } from '../../../../test/kit/trace-command.ts';
import { clientLabels } from '../../../tools/resolver/clients.ts';
import { LINK } from '../../../tools/capture/read/packets/frame.ts';
import { capture as captureVerb } from '../capture/capture.ts';
import { plan } from './plan.ts';
import type { WorkloadPlan } from './plan-workloads.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-plan-'));
after(() => rmSync(directory, { recursive: true, force: true }));
const file = (name: string, text: string): string => {
  writeFileSync(join(directory, name), text);
  return join(directory, name);
};
const run = (...words: readonly string[]): Promise<Ran> => runCommand(plan, words);
async function json(...words: readonly string[]): Promise<readonly WorkloadPlan[]> {
  const { out, err } = await run(...words, '-o', 'json');
  assert.notEqual(out, '', err);
  return JSON.parse(out) as readonly WorkloadPlan[];
}

const twelve = file(
  'twelve.conf',
  'nameserver 10.96.0.10\nsearch default.svc.cluster.local svc.cluster.local cluster.local c.sandbox.internal google.internal\noptions ndots:5\n',
);

const pod = (
  name: string,
  namespace: string,
  ip: string,
  owner: object | null,
  spec: object = {},
) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name,
    namespace,
    labels: { app: name, 'pod-template-hash': '7d4b9c' },
    ...(owner === null ? {} : { ownerReferences: [{ controller: true, ...owner }] }),
  },
  spec: { containers: [{ name: 'a' }], ...spec },
  status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] },
});
const service = (name: string, namespace: string) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace },
  spec: { clusterIP: '10.96.7.7', ports: [{ port: 80 }] },
});
const cart = { dnsConfig: { options: [{ name: 'single-request-reopen' }] } };
const manifests = file(
  'cluster.json',
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'List',
    items: [
      pod('cart-7d4b9c-a', 'shop', '10.244.1.7', { kind: 'ReplicaSet', name: 'cart-7d4b9c' }, cart),
      pod('loner', 'shop', '10.244.1.9', null),
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'cart', namespace: 'shop' },
        spec: {
          selector: { matchLabels: { app: 'cart' } },
          template: {
            metadata: { labels: { app: 'cart' } },
            spec: { containers: [{ name: 'a' }], ...cart },
          },
        },
      },
      service('backend', 'shop'),
      service('ledger', 'money'),
    ],
  }),
);

/** CoreDNS query log lines for one lookup. Each name is queried for both families, and only the last one exists. */
function logOf(client: string, names: readonly string[]): string {
  return names
    .flatMap((name, index) => {
      const rcode = index === names.length - 1 ? 'NOERROR' : 'NXDOMAIN';
      return ['A', 'AAAA'].map(
        (type, family) =>
          `[INFO] ${client}:41000 - ${100 + 2 * index + family} "${type} IN ${name} udp 41 false 512" ${rcode} qr,rd,ra 68 0.0003s`,
      );
    })
    .join('\n');
}
const walk = (name: string): readonly string[] => [
  `${name}.shop.svc.cluster.local.`,
  `${name}.svc.cluster.local.`,
  `${name}.cluster.local.`,
  `${name}.`,
];

describe('ndots plan', () => {
  test('a name that costs twelve queries costs two with ndots:2 or with a trailing dot', async () => {
    const names = file('names.txt', 'www.google.com 100\n');
    const { code, out } = await run(names, '--resolv-conf', twelve);
    assert.equal(code, 1);
    assert.match(out, /^ {2}queries +ndots:5 now +ndots:4 +ndots:3 +ndots:2 +ndots:1$/m);
    for (const client of ['glibc', 'musl', 'go'])
      assert.match(out, new RegExp(`^  ${client} +1200 +1200 +1200 +200 +200$`, 'm'));
    assert.match(out, /www\.google\.com\. with a final dot: 2 instead of 12 queries, 100 lookups/);
    assert.match(
      out,
      /ndots:2 breaks no name that was looked up, and saves glibc, musl and go 1000 of 1200 queries\s+\(83 %\)\./,
    );
    for (const line of out.split('\n')) assert.ok(line.length <= 100, line);
  });

  test('the search domains of the node are those that clients appended', async () => {
    const name = 'www.google.com';
    const walked = [
      ...walk(name).slice(0, -1),
      `${name}.corp.example.`,
      `${name}.lab.example.`,
      `${name}.`,
    ];
    const log = file('node.log', `${logOf('10.244.1.7', walked)}\n`);
    const [found] = await json(log, '--manifests', manifests, '-c', 'glibc');
    assert.equal(found!.workload.name, 'deploy/cart');
    assert.equal(found!.plans[0]!.choices[0]!.queries, 12);
    const short = file('short.log', `${logOf('10.244.1.7', walk(name))}\n`);
    const [without] = await json(short, '--manifests', manifests, '-c', 'glibc');
    assert.equal(without!.plans[0]!.choices[0]!.queries, 8);
  });

  test('a name in another namespace breaks for musl, which never searches names with that many dots', async () => {
    const names = file('names.txt', 'ledger.money 10\nbackend 10\n');
    const [found] = await json(names, '--manifests', manifests, '--from', 'deploy/shop/cart');
    const broken = Object.fromEntries(
      found!.plans.map(({ client, choices }) => [
        client,
        choices
          .filter((one) => one.broken.length > 0)
          .map(({ ndots, broken: [one] }) => [ndots, one!.name]),
      ]),
    );
    assert.deepEqual(broken, { glibc: [], musl: [[1, 'ledger.money']], go: [] });
    assert.equal(found!.best, null);
    const { code, out } = await run(names, '--manifests', manifests, '--from', 'deploy/shop/cart');
    assert.match(out, /✗ ledger\.money: broken for musl from ndots:1 on/);
    assert.match(out, /No lower ndots saves queries without breaking a name/);
    assert.equal(code, 0);
  });

  test('for a query log, pods are grouped by workload, and patches keep existing options', async () => {
    const log = file(
      'coredns.log',
      [
        logOf('10.244.1.7', walk('api.stripe.com')),
        logOf('10.244.1.7', ['backend.shop.svc.cluster.local.']),
        logOf('10.244.1.9', walk('api.stripe.com')),
        logOf('10.9.9.9', walk('api.stripe.com')),
      ].join('\n'),
    );
    const found = await json(log, '--manifests', manifests);
    assert.deepEqual(
      found
        .map(({ workload: { name, namespace }, names, lookups, best }) =>
          [name, namespace, names, lookups, best].join(' '),
        )
        .toSorted((a, b) => a.localeCompare(b)),
      [' shop 1 1 2', 'deploy/cart shop 2 2 2', 'pod/loner shop 1 1 2'],
    );
    const cartPlan = found.find(({ workload }) => workload.name === 'deploy/cart')!;
    assert.deepEqual(
      cartPlan.plans[0]!.choices.map(({ queries }) => queries),
      [10, 10, 10, 4, 4],
    );
    const { out } = await run(log, '--manifests', manifests, '-o', 'patch');
    const patches = parseAllDocuments(out).map((document) => document.toJS() as unknown);
    assert.deepEqual(
      patches.filter((each) => each !== null),
      [
        {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          metadata: { name: 'cart', namespace: 'shop' },
          spec: {
            template: {
              spec: {
                dnsConfig: {
                  options: [{ name: 'single-request-reopen' }, { name: 'ndots', value: '2' }],
                },
              },
            },
          },
        },
      ],
    );
    assert.match(out, /# pod\/loner in shop: ndots:2, in its pod template/);
  });

  test('distinguishes a name with a trailing dot from one that was searched', async () => {
    const log = file('coredns.log', logOf('10.244.1.7', ['api.stripe.com.']));
    const [found] = await json(log, '--manifests', manifests);
    assert.deepEqual(
      found!.plans.map(({ dotted }) => dotted),
      [[], [], []],
    );
    assert.deepEqual(
      found!.plans[0]!.choices.map(({ queries }) => queries),
      [2, 2, 2, 2, 2],
    );
    assert.equal(found!.best, null);
  });

  test('the documented example prints the documented output, and kubectl accepts its patch', async () => {
    const page = readFileSync('docs/plan.md', 'utf8');
    const words = /^npx ndots plan (.+)$/m.exec(page)![1]!.split(' ');
    const { out } = await run(...words);
    assert.ok(page.includes(`\`\`\`\n${out}\`\`\`\n`), out);
    const patch = await run(...words, '-o', 'patch');
    assert.match(patch.out, /^# kubectl -n shop patch deploy\/cart --patch-file FILE$/m);
  });

  test('for a list without services, names that may be services are left alone', async () => {
    const list = file(
      'list.txt',
      'redis.cache\nweb-0.web.shop\napi.shop.svc\nwww.eu.example.com\nexample.com\n',
    );
    const [found] = await json(list);
    const may = ['redis.cache', 'web-0.web.shop', 'api.shop.svc'];
    assert.deepEqual(found!.unknown, may);
    assert.equal(found!.best, 3);
    for (const { choices, dotted } of found!.plans) {
      assert.deepEqual(choices.at(-1)!.unknown, may);
      assert.deepEqual(
        dotted.map(({ name }) => name),
        ['www.eu.example.com', 'example.com'],
      );
    }
    const alone = file('alone.txt', 'redis.cache\n');
    const { out, code } = await run(alone);
    assert.match(out, /breaks a name: 1 name \(redis\.cache\)/);
    assert.doesNotMatch(out, /breaks nothing|final dot:/);
    assert.equal(code, 0);
    assert.match((await run(alone, '-o', 'patch')).out, /^# .* nothing is proposed\.$/m);
  });

  test('a patch is a single document that kubectl accepts, and one of several is selected', async () => {
    const log = file(
      'two.log',
      [
        logOf('10.244.1.7', walk('api.stripe.com')),
        logOf('10.244.1.8', walk('www.example.com')),
      ].join('\n'),
    );
    const second = {
      metadata: { name: 'web', namespace: 'shop', uid: 'w' },
      status: { podIP: '10.244.1.8' },
    };
    const made = parseAllDocuments(readFileSync(manifests, 'utf8')).map(
      (each) => each.toJS() as unknown,
    );
    const pod = { apiVersion: 'v1', kind: 'Pod', spec: { containers: [] }, ...second };
    const owner = {
      ...{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'web', uid: 's', controller: true },
    };
    Object.assign(pod.metadata, { ownerReferences: [owner] });
    const both = file(
      'both.yaml',
      [
        ...made,
        pod,
        {
          apiVersion: 'apps/v1',
          kind: 'StatefulSet',
          metadata: { name: 'web', namespace: 'shop', uid: 's' },
          spec: { template: { spec: {} } },
        },
      ]
        .map((each) => JSON.stringify(each))
        .join('\n---\n'),
    );
    const several = await run(log, '--manifests', both, '-o', 'patch');
    assert.equal(several.code, 3);
    assert.match(several.err, /kubectl applies one at a time/);
    assert.match(several.err, /--workload sts\/web -n shop/);
    const one = await run(
      log,
      '--manifests',
      both,
      '-o',
      'patch',
      '--workload',
      'sts/web',
      '-n',
      'shop',
    );
    assert.equal(parseAllDocuments(one.out).length, 1);
    assert.match(one.out, /kind: StatefulSet/);
    const none = await run(log, '--manifests', both, '--workload', 'sts/wob');
    assert.match(none.err, /Did you mean sts\/web\?/);
  });

  test('on a narrow terminal clients are side by side, and nothing is cut', async () => {
    const words = ['examples/plan/coredns.log', '--manifests', 'examples/plan/cluster.yaml'];
    const { out } = await runCommand(plan, words, {}, { columns: 40 });
    for (const line of out.split('\n')) assert.ok(line.length <= 40, line);
    assert.doesNotMatch(out, /…/);
    assert.match(out, /^ {2}queries +glibc +musl +go$/m);
    assert.match(out, /^ {2}ndots:1 +78 +54 ✗1 +78$/m);
    assert.match(out.replaceAll(/\s+/g, ' '), /ledger\.money: broken for musl from ndots:1 on/);
    const many = await runCommand(
      plan,
      [...words, '-c', 'glibc,musl,go,c-ares,java,python'],
      {},
      { columns: 40 },
    );
    assert.ok(many.out.match(/^ {2}queries/gm)!.length > 2);
    for (const line of many.out.split('\n')) assert.ok(line.length <= 40, line);
  });

  test('the reported current cost equals the queries on the wire', async () => {
    const story = stories.find(({ name }) => name === 'clean: pods of all sorts')!;
    const capture = join(directory, 'clean.pcap');
    writeFileSync(capture, pcapFile(LINK.RAW, await story.packets(1)));
    const { err } = await runCommand(captureVerb, [capture, '-o', 'json']);
    const [, queries] = /(\d+) queries, (\d+) lookups/.exec(err)!;
    const [found] = await json(capture, '-c', 'glibc');
    assert.equal(found!.plans[0]!.choices[0]!.queries, Number(queries));
    assert.equal(found!.best, 2);
  });

  test('the reported savings equal the prediction of trace', async () => {
    const labels = fc.array(fc.stringMatching(/^[a-z]{1,6}$/), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(
        labels,
        fc.constantFrom('glibc', 'musl', 'go'),
        fc.integer({ min: 1, max: 5 }),
        async (parts, client, ndots) => {
          const name = parts.join('.');
          const names = file('one.txt', `${name} 1\n`);
          const [found] = await json(names, '--resolv-conf', twelve, '-c', client);
          const [{ choices }] = found!.plans as [WorkloadPlan['plans'][number]];
          // Names with dots count as external if they come from a list.
          const answers = file(
            'answers.yaml',
            parts.length === 1
              ? 'rules: []\n'
              : `rules:\n- {name: ${name}., type: A, answer: 192.0.2.1}\n- {name: ${name}., type: AAAA, answer: '2001:db8::1'}\n`,
          );
          const fixed = [name, '--client', client, '--answers', answers, '--resolv-conf', twelve];
          const asked = async (...words: readonly string[]): Promise<number> =>
            (await traceJson([...fixed, ...words])).totals.queries;
          assert.equal(choices[0]!.queries, await asked());
          assert.equal(
            choices.find((one) => one.ndots === ndots)!.queries,
            await asked('--ndots', String(ndots)),
          );
        },
      ),
      { numRuns: 40 },
    );
  });

  test('hostile names and empty files give an error message', async () => {
    const nothing = await run(file('empty.txt', '# nothing\n'));
    assert.equal(nothing.code, 2);
    assert.match(nothing.err, /the input contains no name lookups/);
    const odd = file(
      'odd.txt',
      `${'a.'.repeat(127)} 5\n${'x'.repeat(300)}\n\u0000\n..\n-\nA\\032B.example 3\n__proto__.example 7\nconstructor 1\n"; rm -rf / 2\n`,
    );
    const { code, out, err } = await run(odd, '--resolv-conf', twelve);
    assert.ok(code === 0 || code === 1, err);
    assert.match(out, /__proto__\.example/);
    assert.equal((await run(join(directory, 'nowhere'))).code, 2);
    for (const words of [
      [],
      ['a', '--from', 'deploy/x'],
      ['a', '--cluster', '--manifests', 'b'],
      ['a', '-c', 'gibc'],
    ])
      assert.equal((await run(...words)).code, 3, words.join(' '));
  });
});

test('a text that is not a list of names is rejected', async () => {
  const { code, out, err } = await run('README.md');
  assert.deepEqual([code, out], [2, '']);
  assert.match(err, /README\.md is not a capture, a query log, or a list of names/);
});

test('an empty file is reported once', async () => {
  const { code, err } = await run(file('empty.log', ''));
  assert.equal(code, 2);
  assert.equal(err.trim().split('\n').length, 1, err);
});

describe('start lines of a server are not names', () => {
  const starts: Readonly<Record<string, string>> = {
    CoreDNS:
      '.:53\n[INFO] plugin/reload: Running configuration SHA512 = 1b226df7\nCoreDNS-1.14.7\nlinux/amd64, go1.26.0, 5f2d1ab\n',
    ndots: '.:53 on 127.0.0.1\nexample.org.:53\nndots-0.1.0\nlinux/x64, node 26.0.0, 1 worker\n',
    'kubectl logs --timestamps':
      '2026-07-22T10:00:00.000000001Z .:53\n2026-07-22T10:00:00.000000002Z CoreDNS-1.14.7\n',
    'a rule that is no level': 'backend\nCoreDNS-1.14.7\n',
  };
  for (const [whose, start] of Object.entries(starts))
    test(whose, async () => {
      const asked = logOf('10.244.1.7', walk('api.stripe.com'));
      const log = file('started.log', `${start}${asked}\n`);
      const found = await json(log, '--manifests', manifests);
      assert.deepEqual(
        found.map(({ workload: { name } }) => name),
        ['deploy/cart'],
      );
      assert.doesNotMatch((await run(log)).err, /listed names|neither NAME/);
      const { code, out, err } = await run(file('start.log', start));
      assert.deepEqual([code, out], [2, '']);
      assert.match(err, /the input contains no name lookups/);
      assert.doesNotMatch(err, /listed names|neither NAME/);
    });

  test('but names in a list may look like them', async () => {
    const [found] = await json(file('names.txt', 'ndots-1.example.org 3\n'));
    assert.deepEqual([found!.names, found!.lookups], [1, 3]);
  });
});

describe('a file that is not a list of names', () => {
  test('is reported with its kind and the next step', async () => {
    const packed = join(directory, 'names.xz');
    writeFileSync(packed, Buffer.from('fd377a585a000004e6d6b446', 'hex'));
    const { code, err } = await run(packed);
    assert.equal(code, 2);
    assert.match(
      err,
      /names\.xz is compressed with xz, which ndots does not read \[capture-foreign\]\n {2}Decompress it first \(xz -dc\)/,
    );
  });
});

test('plans for a log beyond its limits, and reports the names and clients it skips', async () => {
  const line = (client: string, n: number): string =>
    `[INFO] ${client}:4000 - 1 "A IN n${n}.example. udp 40 false 512" NXDOMAIN qr,aa,rd 100 0.001s\n`;
  let text = '';
  for (let n = 0; n < 200_000; n++) text += line('10.0.0.1', n);
  for (let n = 0; n < 50; n++) text += line(`10.0.1.${n}`, n);
  const path = file('many.log', text);
  const { out, err } = await run(path, '-c', 'musl', '--resolv-conf', twelve, '-o', 'json');
  assert.match(err, /so 50 lookups are left out/);
  assert.equal((JSON.parse(out) as readonly WorkloadPlan[]).length, 1);
});

test('-c all plans for every client that is known', async () => {
  const names = file('all.txt', 'api.shop 3\n');
  const [found] = await json(names, '--resolv-conf', twelve, '-c', 'all');
  const named = found!.plans.map(({ client }) => client);
  assert.equal(named.length, clientLabels.length);
  // If a library has two releases, each has its own label.
  assert.equal(new Set(named).size, named.length);
  assert.ok(named.includes('glibc@2.36') && named.includes('curl'), named.join());
});

describe('a directory of manifests', () => {
  const names = file('few.txt', 'api.shop 3\n');

  test('without objects is reported once', async () => {
    const empty = mkdtempSync(join(directory, 'empty-'));
    const { err } = await run(names, '--resolv-conf', twelve, '--manifests', empty);
    assert.equal(err.split(`there are no objects in ${empty} [no-manifests]\n`).length, 2, err);
  });

  test('with an error is reported once, although it is read twice', async () => {
    const wrong = file('wrong.yaml', 'a: b: c\n');
    const { err } = await run(names, '--resolv-conf', twelve, '--manifests', wrong);
    assert.equal(err.split('this is not YAML').length, 2, err);
  });
});
