import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { schemaErrors, type JsonSchema } from '../../../../test/kit/json-schema.ts';
import { runCommand, type Ran } from '../../../../test/kit/trace-command.ts';
import { writeMessage } from '../../../server/wire/message.ts';
import { diff } from './diff.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-diff-'));
after(() => rmSync(directory, { recursive: true, force: true }));

const schema = JSON.parse(readFileSync('docs/diff.schema.json', 'utf8')) as JsonSchema;

let made = 0;
function file(text: string, ending = ''): string {
  const path = join(directory, `${made++}${ending}`);
  writeFileSync(path, text);
  return path;
}

const run = (...words: string[]): Promise<Ran> => runCommand(diff, words);
const kubeadm = readFileSync('test/corefiles/kubeadm.corefile', 'utf8');

interface Change {
  readonly difference: 'answers' | 'upstreams' | 'ttls';
  readonly names: readonly string[];
  readonly questions: number;
  readonly witness: {
    readonly name: string;
    readonly type: string;
    readonly client: string;
    readonly moment: string;
    readonly before: Side;
    readonly after: Side;
  };
}

interface Side {
  readonly rcode: string;
  readonly block: string;
  readonly plugin: string;
  readonly upstreams: readonly string[];
  readonly answer: readonly { readonly ttl: number; readonly data: string }[];
}

async function changes(
  before: string,
  later: string,
  ...words: string[]
): Promise<readonly Change[]> {
  const { out, err } = await run(file(before), file(later), '-o', 'json', ...words);
  assert.deepEqual(schemaErrors(JSON.parse(out), schema), []);
  assert.equal(err, '');
  return (JSON.parse(out) as { changes: Change[] }).changes;
}

/** The Corefile after one replacement. It must contain `from`. */
function edited(text: string, from: string | RegExp, to: string): string {
  const changed = text.replace(from, to);
  assert.notEqual(changed, text);
  return changed;
}

describe('the first line', () => {
  test('shows a lost service before names that had no address anyway', async () => {
    const [first, ...others] = await changes(
      kubeadm,
      edited(kubeadm, 'kubernetes cluster.local', 'kubernetes cluster.locl'),
    );
    assert.equal(first?.difference, 'answers');
    assert.ok(first.names.some((name) => name.endsWith('.svc.cluster.local.')));
    assert.equal(first.witness.before.plugin, 'kubernetes');
    assert.deepEqual([first.witness.type, first.witness.before.answer.length], ['A', 1]);
    const denied = others.filter(({ witness }) => witness.before.answer.length === 0);
    assert.ok(denied.some(({ witness }) => witness.before.rcode === 'NOERROR'));
  });
});

describe('no answer changes when', () => {
  for (const name of [
    'kubeadm',
    'k3s',
    'aks',
    'eks',
    'openshift',
    'helm-chart',
    'deployment',
    'node-local-dns',
    'story-autopath',
  ])
    test(`nothing does: ${name}`, async () => {
      const path = `test/corefiles/${name}.corefile`;
      const { code, out } = await run(path, path);
      assert.equal(code, 0);
      assert.match(out, /no answer changes/);
    });

  for (const [what, from, to] of [
    ['directives change places', /( {4}loop\n)( {4}reload\n)/, '$2$1'],
    ['a comment is added', 'loop', 'loop # notices loops'],
    ['probes move', 'ready', 'ready :8282'],
    ['metrics go', / {4}prometheus :9153\n/, ''],
    ['a zone is written in capitals', 'cluster.local in-addr', 'CLUSTER.local in-addr'],
  ] as const)
    test(what, async () => assert.deepEqual(await changes(kubeadm, edited(kubeadm, from, to)), []));
});

describe('a change is shown by its effect:', () => {
  /** Lists each difference as its kind, its name, and the plugins on both sides. */
  const found = async (from: string | RegExp, to: string, text = kubeadm): Promise<string[]> =>
    (await changes(text, edited(text, from, to))).map(
      ({ difference, witness: { name, type, before, after: later } }) =>
        `${difference} ${name} ${type}: ${before.plugin} ${before.rcode} → ${later.plugin} ${later.rcode}`,
    );

  test('another cache limit gives another TTL', async () => {
    const list = await changes(kubeadm, edited(kubeadm, 'cache 30', 'cache 60'));
    assert.deepEqual([...new Set(list.map(({ difference }) => difference))], ['ttls']);
    const [{ witness }] = list as [Change];
    assert.deepEqual([witness.before.answer[0]!.ttl, witness.after.answer[0]!.ttl], [30, 60]);
  });

  test('another TTL of kubernetes gives another TTL, also in the SOA of negative replies', async () => {
    const list = await changes(kubeadm, edited(kubeadm, 'ttl 30', 'ttl 5'));
    assert.deepEqual([...new Set(list.map(({ difference }) => difference))], ['ttls']);
    assert.ok(list.some(({ witness }) => witness.before.answer.length === 0));
  });

  test('wraps to the width of the terminal and cuts nothing, because a difference may be last', async () => {
    const paths = [file(kubeadm), file(edited(kubeadm, 'ttl 30', 'ttl 5'))];
    for (const columns of [40, 80]) {
      const { out } = await runCommand(diff, paths, {}, { columns });
      assert.doesNotMatch(out, /\w…/);
      assert.match(out.replaceAll(/\s+/g, ' '), /SOA ns\.dns\.[^+]+ 1800 86400 5 /);
      for (const line of out.split('\n').slice(1))
        assert.ok(line.length <= columns, `${line.length}: ${line}`);
    }
  });

  test('another upstream is one class, without a changed answer', async () => {
    const list = await changes(kubeadm, edited(kubeadm, '/etc/resolv.conf', '10.0.0.2 10.0.0.3'));
    assert.deepEqual(
      list.map(({ difference }) => difference),
      ['upstreams'],
    );
    assert.deepEqual(list[0]!.witness.before.upstreams, ['/etc/resolv.conf']);
    assert.deepEqual(list[0]!.witness.after.upstreams, ['10.0.0.2', '10.0.0.3']);
  });

  test('does not query names that are not cached: disable success ZONE', async () => {
    const text = edited(
      kubeadm,
      /cache 30( \{[^}]*\})?/,
      'cache 30 {\n disable success corp\n disable denial cluster.local\n}',
    );
    const [change] = await changes(text, edited(text, '/etc/resolv.conf', '10.0.0.2'));
    const { names } = change!;
    assert.ok(names.includes('corp.'), names.join(' '));
    assert.ok(!names.includes('success.') && !names.includes('denial.'), names.join(' '));
  });

  test('pod names that disappear', async () =>
    assert.deepEqual(await found('pods insecure', 'pods disabled'), [
      'answers 10-9-9-9.default.pod.cluster.local. A: kubernetes NOERROR → kubernetes NXDOMAIN',
      'answers default.pod.cluster.local. A: kubernetes NOERROR → kubernetes NXDOMAIN',
    ]));

  test('hosts that answers for all names', async () => {
    const list = await found('loop', 'hosts {\n        10.0.0.1 db.example.org\n    }\n    loop');
    assert.ok(
      list.some((each) => each.includes('forward NOERROR → hosts SERVFAIL')),
      list.join('\n'),
    );
  });

  test('a fallthrough that leaks', async () => {
    const list = await changes(
      kubeadm,
      edited(kubeadm, 'fallthrough in-addr.arpa ip6.arpa', 'fallthrough'),
    );
    const leak = list.find(({ witness }) => witness.name.endsWith('cluster.local.'));
    assert.equal(leak?.witness.after.plugin, 'forward');
  });

  test('a stub zone: only its names, by its block', async () => {
    const list = await changes(
      kubeadm,
      `${kubeadm}corp.example:53 {\n    forward . 10.1.0.53\n}\n`,
    );
    assert.ok(list.length > 0);
    for (const { names, witness } of list) {
      assert.ok(
        names.every((name) => /(^|\.|-)corp\.example\.$/.test(name)),
        names.join(' '),
      );
      assert.deepEqual([witness.before.block, witness.after.block], ['.', 'corp.example.']);
    }
  });

  test('a rewrite with a regular expression: queries a name that matches', async () => {
    const list = await found(
      'loop',
      'rewrite name regex ^(api|web)-[0-9]+\\.old\\.example\\.org\\.$ {1}.new.example.org answer auto\n    loop',
    );
    assert.match(list[0] ?? '', /(api|web)-0\.old\.example\.org\. A/);
  });

  test('a template by a pattern', async () => {
    const list = await found(
      'loop',
      'template IN A example.org {\n        match "^ip-(?P<a>[0-9]+)[.]example[.]org[.]$"\n        answer "{{ .Name }} 60 IN A 10.0.0.{{ .Group.a }}"\n        fallthrough\n    }\n    loop',
    );
    assert.ok(
      list.includes('answers ip-0.example.org. A: forward NOERROR → template NOERROR'),
      list.join('\n'),
    );
  });

  test('an acl: queries from a client in its range', async () => {
    const list = await changes(
      kubeadm,
      edited(kubeadm, 'loop', 'acl {\n        block net 10.9.0.0/16\n    }\n    loop'),
    );
    assert.deepEqual(
      list.map(({ difference }) => difference),
      ['answers', 'answers'],
    );
    for (const { witness } of list)
      assert.deepEqual([witness.client, witness.after.rcode], ['10.9.0.1', 'REFUSED']);
  });

  test('a view that captures some clients', async () => {
    const text =
      ".:53 {\n    view inside {\n        expr incidr(client_ip(), '10.9.0.0/16')\n    }\n    forward . 10.0.0.2\n}\n.:53 {\n    forward . 10.0.0.3\n}\n";
    const list = await changes(text, edited(text, '10.9.0.0/16', '10.8.0.0/16'));
    const clients = new Set(list.map(({ witness }) => witness.client.split('.')[1]));
    assert.deepEqual(clients, new Set(['8', '9']));
  });

  for (const [what, line, witness] of [
    [
      'an acl for a zone of one label',
      'acl corp {\n        block\n    }',
      'answers corp. A: forward NOERROR → acl REFUSED',
    ],
    [
      'a template for a zone of one label',
      'template ANY ANY lan {\n        rcode NXDOMAIN\n    }',
      'answers lan. A: forward NOERROR → template NXDOMAIN',
    ],
    [
      'a cache that leaves a zone of one label out',
      'cache 30 {\n        disable success corp\n    }',
      'upstreams corp. A: forward NOERROR → forward NOERROR',
    ],
    [
      'a rewrite of a first label: CoreDNS takes a prefix for whole labels',
      'rewrite name prefix staging- prod-',
      'answers staging-.example.com. A: forward NOERROR → forward NOERROR',
    ],
    [
      'names of the machine itself, which local answers',
      'local',
      'answers localhost. A: forward NOERROR → local NOERROR',
    ],
    [
      'addresses that dns64 makes, for clients of IPv6',
      'dns64',
      'answers v4-x.example.com. AAAA: forward NOERROR → forward NOERROR',
    ],
    [
      'a rewrite of the result code of one name',
      'rewrite rcode old.corp.example SERVFAIL NOERROR',
      'answers old.corp.example. TYPE65282: forward SERVFAIL → forward NOERROR',
    ],
    [
      'a rewrite of result codes by a pattern',
      String.raw`rewrite rcode regex (.*)\.corp\.example NXDOMAIN NOERROR`,
      'answers nx-x.corp.example. A: forward NXDOMAIN → forward NOERROR',
    ],
    [
      'a rewrite of the target of an alias',
      'rewrite cname exact lb.cloud.example. lb.corp.example.',
      'answers to-lb.cloud.example. A: forward NOERROR → cache NOERROR',
    ],
  ] as const)
    test(what, async () => {
      const text = '.:53 {\n    cache 30\n    forward . 10.0.0.2\n}\n';
      const list = line.startsWith('cache')
        ? await found('cache 30', line, text)
        : await found('    cache', `    ${line}\n    cache`, text);
      assert.ok(list.includes(witness), list.join('\n'));
    });

  test('a removed second cache', async () => {
    const list = await changes(kubeadm, edited(kubeadm, /cache 30 \{[^}]*\}/, ''));
    assert.ok(list.length > 0);
    assert.notEqual(list[0]!.difference, 'answers');
  });

  test('serve_stale: compares the replies while upstreams are silent', async () => {
    const text = '.:53 {\n    cache 30\n    forward . 10.0.0.2\n}\n';
    const list = await changes(
      text,
      edited(text, 'cache 30', 'cache 30 {\n        serve_stale\n    }'),
    );
    const stale = list.find(({ witness }) => witness.moment === 'stale');
    assert.deepEqual(
      [stale?.witness.before.rcode, stale?.witness.after.rcode],
      ['SERVFAIL', 'NOERROR'],
    );
  });

  test('an address without a listener', async () => {
    const list = await found('.:53 {', '.:53 {\n    bind 169.254.20.10');
    assert.ok(
      list.some((each) => each.endsWith('→  no server')),
      list.join('\n'),
    );
  });
});

describe('ndots diff', () => {
  test('reads Corefiles in ConfigMaps', async () => {
    const map = (text: string): string =>
      file(
        `kind: ConfigMap\nmetadata: { name: coredns }\ndata:\n  Corefile: |\n${text.replace(/^(?=.)/gm, '    ')}`,
        '.yaml',
      );
    assert.equal((await run(map(kubeadm), file(kubeadm))).code, 0);
    assert.equal((await run(map(kubeadm), map(edited(kubeadm, 'cache 30', 'cache 31')))).code, 1);
  });

  test('queries the names in a list and in a log', async () => {
    const list = file('one.shop.example AAAA\n');
    const log = file(
      '.:53\nCoreDNS-1.14.7\nlinux/amd64, go1.26.0, 5f2d1ab\n[INFO] 10.0.0.9:4711 - 17 "A IN two.shop.example. udp 40 false 512" NOERROR qr,rd 60 0.001s\n',
    );
    const stub = `${kubeadm}shop.example:53 {\n    forward . 10.1.0.53\n}\n`;
    const count = (text: string): number => (JSON.parse(text) as { questions: number }).questions;
    const without = (await run(file(kubeadm), file(stub), '-o', 'json')).out;
    for (const names of [list, log]) {
      const { out } = await run(file(kubeadm), file(stub), '--names', names, '-o', 'json');
      const all = JSON.stringify((JSON.parse(out) as { changes: unknown }).changes);
      assert.match(all, /shop\.example/);
      assert.equal(count(out), count(without) + 1);
    }
  });

  test('reports invalid names, which it does not query', async () => {
    const list = file(`www.example.com\n${'x'.repeat(64)}.example\nmail.example.com MXX\n\n# a\n`);
    const { out, err } = await run(file(kubeadm), file(kubeadm), '--names', list, '-o', 'json');
    assert.ok((JSON.parse(out) as { questions: number }).questions > 2);
    assert.match(err, /2 lines are neither NAME nor NAME TYPE…, and ignored; the first: "xxxxxx/);
    const log = file(
      `[INFO] 10.244.0.9:40000 - 1 "A IN ${'y'.repeat(64)}.example. udp 41 false 512" NOERROR qr,rd,ra 68 0.001s\n[INFO] 10.244.0.9:40000 - 2 "A IN www.example. udp 41 false 512" NOERROR qr,rd,ra 68 0.001s\n`,
    );
    const logged = await run(file(kubeadm), file(kubeadm), '--names', log);
    assert.match(logged.err, /a logged name is not valid, at line 1$/m);
  });

  test('reports unreadable manifests, and missing ones', async () => {
    const words = [file(kubeadm), file(kubeadm), '--manifests'];
    const at = join(directory, String(made++));
    mkdirSync(at);
    const none = await run(...words, at);
    assert.equal(none.code, 0);
    assert.match(none.err, /^ndots diff: there are no objects in /);
    writeFileSync(join(at, 'a.yaml'), 'kind: [');
    const broken = await run(...words, at);
    assert.match(broken.err, /^ndots diff: this is not YAML: [^]*a\.yaml:1:8/);
    assert.equal(broken.err.match(/this is not YAML/g)!.length, 1);
  });

  test('queries objects in every namespace, and reports that it omits some', async () => {
    const service = (namespace: string, nth: number): string =>
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: `s${nth}`, namespace },
        spec: { clusterIP: `10.96.${nth >> 8}.${nth & 255}`, ports: [{ port: 80 }] },
      });
    const many = Array.from({ length: 250 }, (_, nth) => service('web', nth + 1));
    const manifests = file([...many, service('shop', 300)].join('\n---\n'), '.yaml');
    const some = edited(kubeadm, 'pods insecure', 'pods insecure\n       namespaces web');
    const { out, code } = await run(
      ...[file(kubeadm), file(some), '-o', 'json', '--manifests', manifests],
    );
    assert.equal(code, 1);
    const { changes: found, notCompared } = JSON.parse(out) as {
      changes: Change[];
      notCompared: string[];
    };
    assert.ok(
      found.some(({ names }) => names.includes('s300.shop.svc.cluster.local.')),
      out,
    );
    assert.ok(notCompared.includes('the names of 51 of 251 Service objects'), out);
  });

  test('reports its progress', async () => {
    const told: string[] = [];
    await runCommand(
      diff,
      [file(kubeadm), file(kubeadm)],
      {},
      { progress: (text) => told.push(text) },
    );
    assert.match(told[0]!, /^question 1 of \d+$/);
    const [, at, of] = /^question (\d+) of (\d+), .*$/.exec(told.at(-1)!)!;
    assert.equal(at, of);
  });

  test('queries the names in a capture', async () => {
    const query = writeMessage({
      id: 1,
      flags: 0x0100,
      rcode: 0,
      question: [{ name: 'three.shop.example.', type: 1, class: 1 }],
      answer: [],
      authority: [],
      additional: [],
      edns: null,
    });
    // A capture of a single raw IP packet, with file header, packet header, IPv4 and UDP.
    const size = 28 + query.length;
    const head = Buffer.alloc(24 + 16 + 28);
    head.writeUInt32LE(0xa1b2c3d4, 0);
    head.writeUInt16LE(2, 4);
    head.writeUInt32LE(65_535, 16);
    head.writeUInt32LE(101, 20);
    head.writeUInt32LE(size, 32);
    head.writeUInt32LE(size, 36);
    Buffer.from([0x45, 0, 0, size, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 9, 10, 96, 0, 10]).copy(
      head,
      40,
    );
    Buffer.from([0x12, 0x67, 0, 53, 0, size - 20, 0, 0]).copy(head, 60);
    const path = join(directory, 'one.pcap');
    writeFileSync(path, Buffer.concat([head, query]));
    const { out } = await run(file(kubeadm), file(kubeadm), '--names', path, '-o', 'json');
    const plain = (await run(file(kubeadm), file(kubeadm), '-o', 'json')).out;
    const count = (text: string): number => (JSON.parse(text) as { questions: number }).questions;
    assert.equal(count(out), count(plain) + 1);
  });

  test('sets the exit code according to --fail-on', async () => {
    const ttl = [file(kubeadm), file(edited(kubeadm, 'cache 30', 'cache 60'))];
    assert.equal((await run(...ttl)).code, 1);
    assert.equal((await run(...ttl, '--fail-on', 'upstreams')).code, 0);
    const pods = [file(kubeadm), file(edited(kubeadm, 'pods insecure', 'pods disabled'))];
    assert.equal((await run(...pods, '--fail-on', 'answers')).code, 1);
    assert.equal((await run(...pods, '--fail-on', 'never')).code, 0);
  });

  test('if the second Corefile cannot be served, every answer changes; if the first cannot, it is a failure', async () => {
    const broken = file('.:53 {\n    forward\n}\n');
    const second = await run(file(kubeadm), broken);
    assert.equal(second.code, 1);
    assert.match(second.err, /cannot be served/);
    assert.equal((await run(broken, file(kubeadm))).code, 2);
    assert.equal((await run(join(directory, 'nowhere'), broken)).code, 2);
    assert.equal((await run(broken)).code, 3);
  });

  test('an example query shows the plugin, the reply and the upstream', async () => {
    const { out } = await run(
      file(kubeadm),
      file(`${kubeadm}corp.example:53 {\n    forward . 10.1.0.53\n}\n`),
    );
    assert.match(out, /^other upstreams: corp\.example\. A from \S+ {3}\(\d+ questions\)$/m);
    assert.match(out, /^ {2}- NOERROR ra {3}by forward of \. {3}asks \/etc\/resolv\.conf$/m);
    assert.match(out, /^ {2}\+ NOERROR ra {3}by forward of corp\.example\. {3}asks 10\.1\.0\.53$/m);
  });
});

test('the text says what was simulated, if an example depends on it', async () => {
  const forwards = (upstream: string): string => `. {\n    forward . ${upstream}\n}\n`;
  const { out } = await run(file(forwards('10.0.0.2')), file(forwards('10.0.0.3')));
  const flat = out.replaceAll(/\s+/g, ' ');
  assert.match(flat, /Upstreams \(10\.0\.0\.2, 10\.0\.0\.3\) were simulated/);
  assert.match(flat, /198\.18\.0\.0\/15 and 2001:db8::\/32 are invented/);
  const same = await run(file(forwards('10.0.0.2')), file(forwards('10.0.0.2')));
  assert.doesNotMatch(same.out, /simulated/);
});
