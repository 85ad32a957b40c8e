import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { serveAnswers, type LocalAnswers } from '../../../../test/kit/local-answers.ts';
import { runTrace, traceJson } from '../../../../test/kit/trace-command.ts';
import { clientLabels } from '../../../tools/resolver/clients.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-trace-'));
after(() => rmSync(directory, { recursive: true, force: true }));

function file(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

const pod = file(
  'pod.conf',
  'search ns1.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.96.0.10\noptions ndots:5\n',
);
const hosts = file('hosts', '127.0.0.1 localhost\n');
const answers = file(
  'net.yaml',
  "rules:\n  - { name: www.example.com, answer: '203.0.113.80' }\n  - { name: api.ns1.svc.cluster.local, answer: '10.96.1.1' }\n",
);
const planned = ['--resolv-conf', pod, '--hosts', hosts, '--answers', answers, '--plan'];

describe('missing objects', () => {
  test('are reported with the path of the directory, not with a line of the generated Corefile', async () => {
    const { code, err } = await runTrace(['web', '--manifests', '/nowhere/at/all']);
    assert.equal(code, 2);
    assert.match(err, /cannot read \/nowhere\/at\/all: /);
    assert.doesNotMatch(err, /--manifests:/);
  });

  test('are reported if the directory is empty', async () => {
    const empty = mkdtempSync(join(tmpdir(), 'ndots-none-'));
    const { err } = await runTrace(['web', '--manifests', empty]);
    assert.match(err, /there are no objects in .*ndots-none-/);
    const pod = await runTrace(['web', '--from', 'deploy/web', '--manifests', empty]);
    rmdirSync(empty);
    assert.match(pod.err, /no Deployment "web" in .*\n {2}there are no objects in /);
  });
});

describe('ndots trace -o json', () => {
  test('has the result and every query with its time, place, reason and answer', async () => {
    const { result, queries } = await traceJson(['www.example.com', ...planned]);
    assert.equal(result.ok, true);
    assert.equal(result.error, null);
    assert.deepEqual(result.addresses, ['203.0.113.80']);
    assert.equal(queries.length, 8);
    assert.deepEqual(
      queries.map((query) => query.port),
      [1, 1, 2, 2, 3, 3, 4, 4],
    );
    const [first] = queries;
    assert.equal(first?.name, 'www.example.com.ns1.svc.cluster.local.');
    assert.equal(first?.answer, 'NXDOMAIN');
    assert.match(first?.why ?? '', /fewer than ndots \(5\)/);
    assert.match(queries.at(-1)?.outcome ?? '', /\[glibc-stop\]/);
  });

  test('every client produces a document that matches the schema', async () => {
    const schema = JSON.parse(readFileSync('docs/trace.schema.json', 'utf8')) as Schema;
    for (const label of clientLabels) {
      const document = await traceJson(['api', '--client', label, ...planned]);
      assert.deepEqual(
        misfits(document, schema.$defs?.['trace'] ?? {}, schema, 'trace'),
        [],
        label,
      );
    }
  });

  test('several clients produce a list', async () => {
    const { out } = await runTrace(['api', '--client', 'musl,go', ...planned, '-o', 'json']);
    const list = JSON.parse(out) as { kind: string; items: unknown[] };
    assert.equal(list.kind, 'TraceList');
    assert.equal(list.items.length, 2);
  });

  test('--families, --repeat, --ndots and --env take effect', async () => {
    const words = ['www.example.com', ...planned];
    assert.equal((await traceJson([...words, '--families', '4'])).queries.length, 4);
    assert.equal((await traceJson([...words, '--ndots', '1'])).queries.length, 2);
    assert.equal((await traceJson([...words, '--env', 'RES_OPTIONS=ndots:2'])).queries.length, 2);
    const twice = await traceJson([...words, '--repeat', '2']);
    assert.equal(twice.results.length, 2);
    assert.equal(twice.queries.at(-1)?.lookup, 2);
  });

  test('cheaper alternatives are planned, not guessed', async () => {
    const { cheaper } = await traceJson(['www.example.com', ...planned]);
    const dot = cheaper.find((one) => one.change === 'write a final dot');
    assert.deepEqual([dot?.queries, dot?.same], [2, true]);
    const search = await traceJson(['api', ...planned]);
    assert.deepEqual(search.cheaper, []);
  });
});

describe('ndots trace for people', () => {
  for (const output of ['text', 'dig', 'html', 'wide']) {
    test(`-o ${output} names the query`, async () => {
      const { code, out } = await runTrace(['www.example.com', ...planned, '-o', output]);
      assert.equal(code, 0);
      assert.match(out, /www\.example\.com/);
      assert.match(out, /203\.0\.113\.80/);
    });
  }

  test('the text fits 100 columns for every client', async () => {
    const long = `${'a-rather-long-label.'.repeat(8)}example.com`;
    for (const name of ['www.example.com', long]) {
      for (const label of clientLabels) {
        const { out } = await runTrace([name, '--client', label, ...planned]);
        const wide = out.split('\n').filter((line) => Array.from(line).length > 100);
        assert.deepEqual(wide, [], label);
      }
    }
  });

  test('names of normal length are never cut, even with long answers', async () => {
    const long = file(
      'long.yaml',
      "rules:\n  - { name: www.example.com, answer: 'CNAME=a-rather-long-name-of-a-load-balancer.eu-west-1.elb.example. 203.0.113.80' }\n",
    );
    for (const label of clientLabels) {
      const words = ['www.example.com', '--client', label, ...planned.slice(0, 4)];
      const { out } = await runTrace([...words, '--answers', long]);
      assert.ok(!/^ *\d+ +[\d.]+ m?s  [^ ]*…/m.test(out), label);
    }
  });

  test('the text is formatted for the terminal', async () => {
    for (const [columns, most] of [
      [80, 80],
      [60, 60],
      [20, 40],
      [200, 120],
    ] as const) {
      const words = ['www.example.com', ...planned];
      const one = (await runTrace(words, {}, { columns })).out;
      const all = (await runTrace([...words, '--client', 'all'], {}, { columns })).out;
      const out = `${one}${all}`;
      const widest = Math.max(...out.split('\n').map((line) => Array.from(line).length));
      assert.ok(widest <= most, `${widest} of ${most} columns`);
    }
  });

  test('sequential queries are not a pair, even if answers are fast', async () => {
    const inTurn = file('in-turn.conf', 'nameserver 10.96.0.10\noptions single-request\n');
    const served = file('Corefile', '. {\n hosts {\n  10.96.1.1 api.test\n }\n}\n');
    const words = ['api.test', '--resolv-conf', inTurn, '--hosts', hosts, '--corefile', served];
    const { out } = await runTrace(words);
    assert.match(out, /^ {2}1 .* A 10\.96\.1\.1 +0\.5 ms$/m);
    assert.match(out, /^ {2}2 +0\.5 ms .* AAAA NODATA +0\.5 ms$/m);
  });

  test('a plan without any known name says so', async () => {
    const { out } = await runTrace(['a', '--plan', '--resolv-conf', pod, '--hosts', hosts]);
    assert.match(out, /^PLAN {6}Nothing was sent\. Names not covered by --answers/m);
    assert.doesNotMatch(out, /no search list; /);
    const bare = file('bare.conf', 'nameserver 10.96.0.10\n');
    const alone = await runTrace(['a', '--plan', '--resolv-conf', bare, '--hosts', hosts]);
    assert.match(alone.out.replace(/\s+/g, ' '), /no search list; use --from POD or --resolv-conf/);
    assert.doesNotMatch((await runTrace(['www.example.com', ...planned])).out, /^PLAN/m);
  });

  test('a comparison states whether all clients find the same', async () => {
    const half = file(
      'half.yaml',
      "rules:\n  - { name: www.example.com, type: A, answer: '203.0.113.80' }\n  - { name: www.example.com, type: AAAA, answer: '2001:db8::80' }\n",
    );
    const words = ['www.example.com', '--resolv-conf', pod, '--hosts', hosts, '--answers', half];
    const verdict = async (client: string): Promise<string> =>
      /^VERDICT +(.*)/m.exec(
        (await runTrace([...words, '--compare', '--client', client])).out,
      )?.[1] ?? '';
    assert.match(await verdict('glibc,musl'), /^All find the same\. All send 8 queries\.$/);
    assert.match(await verdict('go,go@1.19'), /^All find the same\./);
    // getent hosts stops at the first family that has a result.
    assert.match(
      await verdict('glibc,getent-hosts'),
      /^All resolve this name, but not to the same addresses\./,
    );
    const missing = await runTrace(['nope', '--client', 'all', ...planned]);
    assert.match(missing.out, /^VERDICT +No client resolves this name\./m);
  });

  test('a comparison with exit code 1 names the failing clients and the reason', async () => {
    const lone = file(
      'lone.yaml',
      "rules:\n  - { name: www.example.com.ns1.svc.cluster.local, type: AAAA, answer: 'CNAME=lb.example.' }\n  - { name: www.example.com, answer: '203.0.113.80' }\n",
    );
    const words = ['www.example.com', '--resolv-conf', pod, '--hosts', hosts, '--answers', lone];
    const { code, out } = await runTrace([...words, '--client', 'glibc,curl,musl,go', '--compare']);
    assert.equal(code, 1);
    assert.match(
      out,
      /✗ glibc@\d\S+, curl: cannot resolve it: [^]*A\s+CNAME without an\s+address[^]*\[glibc-cname\]/,
    );
    assert.match(out, /VERDICT +2 of 4 clients cannot resolve this name, hence exit code 1\./);
  });

  test('several clients without --compare: a trace each, and the comparison at the end', async () => {
    const { out } = await runTrace(['www.example.com', '--client', 'glibc,go', ...planned]);
    assert.match(out, /as glibc[^]*as Go|as glibc[^]*as go/i);
    assert.match(out, /VERDICT {3}All find the same\.[^]*$/);
  });

  test('a comparison shows the clients that wait', async () => {
    const slow = file(
      'slow.yaml',
      "rules:\n  - { name: www.example.com, type: AAAA, answer: [DROP, NODATA] }\n  - { name: www.example.com, answer: '203.0.113.80' }\n",
    );
    const { out } = await runTrace([
      'www.example.com',
      '--resolv-conf',
      pod,
      '--hosts',
      hosts,
      '--answers',
      slow,
      '--client',
      'glibc,c-ares',
      '--compare',
    ]);
    assert.match(out, /! wait: glibc@\S+ 5\.\d+ s; the fastest has its result after/);
  });

  test('a word is explained only if it is printed', async () => {
    const alias = file(
      'alias.yaml',
      "rules:\n  - { name: a.example, answer: 'CNAME=b.example. 203.0.113.80' }\n",
    );
    const { out } = await runTrace([
      'a.example.',
      '--resolv-conf',
      pod,
      '--hosts',
      hosts,
      '--answers',
      alias,
    ]);
    assert.doesNotMatch(out, /NODATA/);
  });

  test('colours are used only on request', async () => {
    const words = ['www.example.com', ...planned];
    assert.ok(!(await runTrace(words)).out.includes('\u001b'));
    assert.ok((await runTrace(words, {}, { colour: true })).out.includes('\u001b[32m'));
    assert.ok((await runTrace([...words, '--color=always'])).out.includes('\u001b[32m'));
    const none = await runTrace([...words, '--no-color'], {}, { colour: true });
    assert.ok(!none.out.includes('\u001b'));
  });

  test('--client all compares', async () => {
    const { out } = await runTrace(['www.example.com', '--client', 'all', ...planned]);
    for (const label of clientLabels) assert.ok(out.includes(label), label);
  });
});

describe('exit codes and errors', () => {
  const cases: [string, string[], number, RegExp][] = [
    ['a name that does not exist', ['nope', ...planned], 1, /^$/],
    ['no name', [], 3, /which name/],
    ['two names', ['a', 'b'], 3, /trace needs exactly one name/],
    ['an unknown client', ['a', '--client', 'glib'], 3, /Did you mean glibc/],
    ['an unknown option', ['a', '--familes', '4'], 3, /Did you mean --families/],
    ['an option without its value', ['a', '--client'], 3, /needs a value/],
    ['a bad number', ['a', '--repeat', '0'], 3, /whole number/],
    ['a name that was no UTF-8', ['\uFFFD', '--plan'], 3, /UTF-8/],
    ['a server that is no address', ['a', '@nope', '--plan'], 3, /"nope" is not an IP address/],
    ['a server without its name', ['a', '@', '--plan'], 3, /is not an IP address/],
    ['an address that is none', ['a', '--host-addresses', 'x', '--plan'], 3, /IP addresses/],
    [
      'a namespace without a pod',
      ['a', '--namespace', 'x', '--plan'],
      3,
      /--namespace needs a pod/,
    ],
    ['a name with a blank', ['a b', '--plan'], 3, /blank/],
    ['a URL', ['https://api.example.com/x', '--plan'], 3, /Did you mean 'api\.example\.com'\?/],
    ['a URL with a user and a port', ['postgres://u:p@db.shop:5432/x', '--plan'], 3, /'db\.shop'/],
    ['a host with its port', ['api:8080', '--plan'], 3, /Did you mean 'api'\?/],
    ['a user at a host', ['git@example.com', '--plan'], 3, /Did you mean 'example\.com'\?/],
    ['a host with a path', ['example.com/x', '--plan'], 3, /Did you mean 'example\.com'\?/],
    [
      'a URL of an address',
      ['http://[::1]:80/', '--plan'],
      3,
      /::1 is an address, so .*query -x ::1/,
    ],
    ['a name of 5000 bytes', ['a'.repeat(5000), '--plan'], 3, /5000 bytes/],
    ['a file that is not there', ['a', '--resolv-conf', '/nowhere', '--plan'], 2, /\/nowhere/],
    ['a directory for a file', ['a', '--answers', directory, '--plan'], 2, /ndots trace: /],
    ['answers that are no YAML', ['a', '--answers', file('bad', '{')], 2, /bad/],
    [
      'answers with a wrong word',
      ['a', '--answers', file('w', 'rules: [{answer: X}]')],
      2,
      /rule 1: "X"/,
    ],
    [
      'an alias that no message can hold',
      ['a', '--answers', file('alias', "rules: [{answer: 'CNAME=a..b.'}]")],
      2,
      /rule 1: "CNAME=a\.\.b\." is not a valid domain name/,
    ],
    ['a replay of something else', ['--replay', file('r', '{}')], 2, /not a trace saved by ndots/],
    ['a replay of a text', ['--replay', file('t', 'a: [')], 2, /not a trace saved[^]*--save FILE/],
    [
      'a trace that cannot be kept',
      ['a', '--plan', '--save', '/nowhere/t'],
      2,
      /\/nowhere\/t: cannot be written: no such file or directory/,
    ],
  ];
  for (const [what, words, code, text] of cases) {
    test(`${what}: exit code ${code}`, async () => {
      const ran = await runTrace(words);
      assert.equal(ran.code, code);
      assert.match(ran.err, text);
    });
  }

  test('a name that no client can send is traced, and fails without a query', async () => {
    for (const label of ['glibc', 'musl', 'go', 'c-ares']) {
      const { result, queries } = await traceJson(['a..b', '--client', label, ...planned]);
      assert.equal(result.ok, false, label);
      assert.equal(queries.length, 0, label);
    }
  });
});

test('an address is traced, with a note on how to find its name', async () => {
  for (const address of ['10.0.0.1', '::1']) {
    const { out, err } = await runTrace([address, '--plan']);
    assert.doesNotMatch(out, /\n\n\n/, 'one blank line where no query was sent');
    assert.ok(err.includes(`${address} is an address`) && err.includes(`query -x ${address}`), err);
  }
  for (const name of ['0/25.2.0.192.in-addr.arpa', '_dns.resolver.arpa', 'a_b.example'])
    assert.doesNotMatch((await runTrace([name, '--plan'])).err, /Did you mean|is an address/);
});

test('--save and --replay reproduce the trace', async () => {
  const saved = join(directory, 'saved.json');
  const first = await runTrace(['www.example.com', ...planned, '--save', saved]);
  const again = await runTrace(['--replay', saved]);
  assert.equal(again.out, first.out);
  assert.equal(again.code, 0);
});

test('a trace saved by an earlier version is printed, too', async () => {
  const saved = join(directory, 'earlier.json');
  const document = await traceJson(['www.example.com', ...planned]);
  const fields = ['batch', 'serverPort', 'sourcePort', 'wireId', 'waitedMs', 'reply'] as const;
  const { startedAt: _, from: __, ...rest } = document;
  const queries = document.queries.map((query) =>
    Object.fromEntries(Object.entries(query).filter(([key]) => !fields.some((one) => one === key))),
  );
  writeFileSync(saved, JSON.stringify({ ...rest, queries }));
  const now = await runTrace(['www.example.com', ...planned]);
  assert.equal((await runTrace(['--replay', saved])).out, now.out);
  for (const output of ['wide', 'html', 'dig'])
    assert.equal((await runTrace(['--replay', saved, '-o', output])).code, 0, output);
});

test('settings come from a Deployment in manifests', async () => {
  const manifest = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'shop' },
    spec: {
      template: {
        spec: { containers: [], dnsConfig: { options: [{ name: 'ndots', value: '2' }] } },
      },
    },
  };
  const manifests = mkdtempSync(join(directory, 'manifests-'));
  writeFileSync(join(manifests, 'web.json'), JSON.stringify(manifest));
  const from = ['--from', 'deploy/web', '--manifests', manifests, '--namespace', 'shop'];
  const { conf } = await traceJson(['api', ...from, '--plan']);
  assert.equal(conf.ndots, 2);
  assert.deepEqual(conf.search, ['shop.svc.cluster.local', 'svc.cluster.local', 'cluster.local']);
});

describe('ndots trace against a real server', () => {
  let server: LocalAnswers;
  before(async () => {
    server = await serveAnswers({
      rules: [
        { name: 'www.example.com', answer: '203.0.113.80' },
        { name: 'big.example.com', type: 'A', answer: 'n=100' },
        { name: 'big.example.com', answer: 'NODATA' },
      ],
    });
  });
  after(() => server.close());
  const live = (...words: string[]) =>
    traceJson([
      ...words,
      '@127.0.0.1',
      '--port',
      String(server.port),
      '--resolv-conf',
      pod,
      '--hosts',
      hosts,
    ]);

  for (const label of ['glibc', 'musl', 'go', 'c-ares']) {
    test(`${label} sends what it planned`, async () => {
      const sent = server.asked.length;
      const { result, queries, live: isLive } = await live('www.example.com', '--client', label);
      assert.equal(isLive, true);
      assert.deepEqual(result.addresses, ['203.0.113.80']);
      const asked = server.asked.slice(sent);
      const told = queries.map(({ protocol, name, type }) => `${protocol} ${name} ${type}`);
      assert.deepEqual([...asked].sort(), [...told].sort());
    });
  }

  test('a truncated answer is retried over TCP', async () => {
    const { result, queries } = await live('big.example.com.', '--client', 'go');
    assert.equal(result.addresses.length, 100);
    assert.equal(queries.filter((query) => query.protocol === 'tcp').length, 1);
    const old = await live('big.example.com.', '--client', 'glibc');
    assert.ok(old.queries.some((query) => query.protocol === 'tcp'));
    assert.equal(old.result.addresses.length, 100);
  });

  test('reports a missing server', async () => {
    const words = [
      'www.example.com',
      '@127.0.0.1',
      '--port',
      '1',
      '--resolv-conf',
      pod,
      '--hosts',
      hosts,
    ];
    const { result, queries } = await traceJson([...words, '--timeout', '20']);
    assert.equal(result.ok, false);
    assert.equal(queries[0]?.answer, 'CLOSED');
  });
});

interface Schema {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Schema>>;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly items?: Schema;
  readonly oneOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
}

/** Paths to values that do not match the schema. Both must have the same keys. */
function misfits(value: unknown, schema: Schema, root: Schema, path: string): string[] {
  if (schema.$ref !== undefined) {
    return misfits(value, root.$defs?.[schema.$ref.slice(8)] ?? {}, root, path);
  }
  if (schema.oneOf !== undefined) {
    const each = schema.oneOf.map((one) => misfits(value, one, root, path));
    return each.some((list) => list.length === 0) ? [] : (each[0] ?? []);
  }
  if (schema.const !== undefined) return value === schema.const ? [] : [path];
  if (schema.enum !== undefined) return schema.enum.includes(value) ? [] : [path];
  const kind = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
  const types = [schema.type ?? ''].flat();
  const fits = types.includes(kind) || (types.includes('integer') && Number.isInteger(value));
  if (!fits) return [`${path}: ${kind}`];
  if (Array.isArray(value)) {
    return value.flatMap((item: unknown, i) =>
      misfits(item, schema.items ?? {}, root, `${path}[${i}]`),
    );
  }
  if (kind !== 'object') return [];
  const fields = value as Readonly<Record<string, unknown>>;
  const keys = new Set([...Object.keys(fields), ...Object.keys(schema.properties ?? {})]);
  return [...keys].flatMap((key) =>
    misfits(fields[key], schema.properties?.[key] ?? {}, root, `${path}.${key}`),
  );
}
