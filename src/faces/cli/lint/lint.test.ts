import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { costsAtMost } from '../../../../test/kit/growth.ts';
import { schemaErrors, type JsonSchema } from '../../../../test/kit/json-schema.ts';
import { runCommand, type Ran } from '../../../../test/kit/trace-command.ts';
import { lint } from './lint.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-lint-'));
after(() => rmSync(directory, { recursive: true, force: true }));

let made = 0;
/** Creates a directory with these files. */
function files(texts: Readonly<Record<string, string | Uint8Array>>): string {
  const path = join(directory, String(made++));
  for (const [name, text] of Object.entries(texts)) {
    mkdirSync(join(path, name, '..'), { recursive: true });
    writeFileSync(join(path, name), text);
  }
  return path;
}

const run = (...words: string[]): Promise<Ran> => runCommand(lint, words);

interface Found {
  readonly code: string;
  readonly severity: string;
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly endColumn: number;
  readonly within: string | null;
  readonly text: string;
  readonly excerpt: string;
}

async function findings(...words: string[]): Promise<readonly Found[]> {
  const { out, err } = await run(...words, '-o', 'json');
  assert.equal(err, '');
  return (JSON.parse(out) as { findings: Found[] }).findings;
}

const looping =
  '.:53 {\n    errors\n    cache 30\n    loop\n    prometheus\n    forward . 127.0.0.1 {\n        max_concurrent 1000\n    }\n}\n';

test('a resolv.conf used by forward is read, and reported if it leads back to the server', async () => {
  const corefile = (name: string): string =>
    `.:53 {\n    bind 10.0.0.5\n    forward . ${name} {\n        max_concurrent 1000\n    }\n}\n`;
  const conf = 'nameserver 10.0.0.2\nnameserver 10.0.0.5\n';
  const loops = async (path: string): Promise<readonly string[]> =>
    (await findings('--only', 'CF03', path)).map(({ text }) => text);
  for (const name of ['resolv.conf', './resolv.conf', 'dns/resolv.conf']) {
    const path = files({ Corefile: corefile(name), [name]: conf });
    const found = await loops(join(path, 'Corefile'));
    assert.deepEqual(found.length, 1, name);
    assert.match(found[0]!, /resolv\.conf lists 10\.0\.0\.5, which is this server itself$/);
    assert.equal((await loops(path)).length, 1, `${name} of a directory is read once`);
  }
  const elsewhere = files({ 'resolv.conf': conf });
  const absolute = files({ Corefile: corefile(join(elsewhere, 'resolv.conf')) });
  assert.equal((await loops(absolute)).length, 1);
  const missing = files({ Corefile: corefile('resolv.conf') });
  assert.deepEqual(await loops(missing), []);
});

describe('ndots lint prints', () => {
  test('the line, a caret under the word, why and what to do', async () => {
    const path = join(files({ Corefile: looping }), 'Corefile');
    const { code, out } = await run(path);
    assert.equal(code, 1);
    assert.equal(
      out.replaceAll(path, 'Corefile'),
      `Corefile:6:15: error CF03: 127.0.0.1 is this server itself
   6 │     forward . 127.0.0.1 {
     │               ^^^^^^^^^
      Each query loops; with the loop plugin, the server exits at startup instead.
      Use the address of the resolver to query.

1 file: 1 error, 0 warnings, 0 notes (for ndots; --target coredns checks for CoreDNS)
Why: ndots lint --explain CF03
`,
    );
  });

  test('at 60 columns no line is wider', async () => {
    const long = looping.replace('errors', `errors # ${'so much '.repeat(40)}`);
    const text = `${long}.:53 {\n    forward . 10.0.0.2 10.0.0.3 ${'10.0.0.4 '.repeat(12)}127.0.0.1\n}\n`;
    const path = join(files({ Corefile: text }), 'Corefile');
    const { out } = await runCommand(lint, [path], {}, { columns: 60 });
    // Paths cannot be wrapped, nor can the argument for --explain.
    const lines = out.replaceAll(path, 'Corefile').split('\n');
    assert.ok(lines.length > 20, out);
    assert.deepEqual(
      lines.filter((line) => line.length > 60),
      [],
    );
    const at = lines.findIndex((line) => line.includes('…') && line.includes('127.0.0.1'));
    assert.equal(lines[at + 1]!.indexOf('^'), lines[at]!.indexOf('127.0.0.1'), out);
  });

  test('names the unset variable that makes a word empty', async () => {
    const text = looping.replace('127.0.0.1', '{$NDOTS_TEST_NONE}');
    const path = join(files({ Corefile: text }), 'Corefile');
    const { out } = await run(path, '--only', 'CF43');
    assert.match(out, /not an IP address or file: ""/);
    assert.match(
      out,
      /\n +Here, environment variable NDOTS_TEST_NONE is not set, so it is replaced/,
    );
  });

  test('SARIF that matches its schema, with fingerprints that survive a moved line', async () => {
    const schema = JSON.parse(readFileSync('test/schemas/sarif-2.1.0.json', 'utf8')) as JsonSchema;
    const path = join(files({ Corefile: looping }), 'Corefile');
    interface Log {
      runs: { results: { ruleId: string; partialFingerprints: object }[] }[];
    }
    const log = JSON.parse((await run(path, '-o', 'sarif')).out) as Log;
    assert.deepEqual(schemaErrors(log, schema), []);
    assert.deepEqual(
      log.runs[0]!.results.map(({ ruleId }) => ruleId),
      ['CF03'],
    );
    writeFileSync(path, `# moved\n\n${looping}`);
    const moved = JSON.parse((await run(path, '-o', 'sarif')).out) as Log;
    assert.deepEqual(
      moved.runs[0]!.results[0]!.partialFingerprints,
      log.runs[0]!.results[0]!.partialFingerprints,
    );
    assert.notDeepEqual(schemaErrors({ version: '2.1.0' }, schema), []);
  });

  test('JSON that matches its schema', async () => {
    const schema = JSON.parse(readFileSync('docs/lint.schema.json', 'utf8')) as JsonSchema;
    const path = join(files({ Corefile: looping.replace('loop', 'bufsize 4096') }), 'Corefile');
    const report = JSON.parse((await run(path, '-o', 'json')).out) as { findings: unknown[] };
    assert.ok(report.findings.length > 1);
    assert.deepEqual(schemaErrors(report, schema), []);
  });

  test('GitHub annotations, worst first, escaped', async () => {
    const path = join(
      files({ 'a:b,c%.corefile': `${looping}x.org:53 {\n    log\n}\n` }),
      'a:b,c%.corefile',
    );
    const { out } = await run(path, '-o', 'github');
    const lines = out.trimEnd().split('\n');
    assert.match(
      lines[0]!,
      /^::error file=.*a%3Ab%2Cc%25\.corefile,line=6,col=15,endColumn=24,title=CF03::127\.0\.0\.1 is this server itself%0A/,
    );
    assert.match(lines.at(-1)!, /^::notice /);
  });

  test('JUnit: a case for each finding, one that passes for a clean file', async () => {
    const bad = (await run(join(files({ Corefile: looping }), 'Corefile'), '-o', 'junit')).out;
    assert.match(bad, /<testsuite name="[^"]*Corefile" tests="1" failures="1">/);
    assert.match(bad, /<failure type="error" message="127\.0\.0\.1 is this server itself">/);
    const good = (
      await run(
        join(files({ Corefile: '.:53 {\n    errors\n    whoami\n}\n' }), 'Corefile'),
        '-o',
        'junit',
      )
    ).out;
    assert.match(good, /tests="1" failures="0">\n {4}<testcase classname="[^"]*" name="lint"\/>/);
  });
});

test('a view expression that lost its double quotes to the Corefile is shown with the quotes that it needs', async () => {
  const text = '.:53 {\n view a {\n expr type() == "A" && name() == "b c."\n }\n whoami\n}\n';
  const { out } = await run(join(files({ Corefile: text }), 'Corefile'));
  assert.match(
    out,
    /The Corefile parser removes double quotes, so the expression reads: type\(\) == A/,
  );
  assert.match(out, /Use single quotes for its strings: type\(\) == 'A' && name\(\) == 'b c\.'/);
  const whole = text.replace(/expr .*/, `expr "nome() == 'A'"`);
  const other = await run(join(files({ Corefile: whole }), 'Corefile'));
  assert.match(other.out, /The expression reads: nome\(\) == 'A'\n/);
});

describe('Corefiles inside other files are found, with positions in those files', () => {
  test('in a ConfigMap', async () => {
    const text = `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: coredns\ndata:\n  Corefile: |\n${looping.replace(/^(?=.)/gm, '    ')}`;
    const [found] = await findings(files({ 'coredns.yaml': text }));
    assert.equal(found!.code, 'CF03');
    assert.equal(found!.within, 'data["Corefile"]');
    assert.equal(
      text.split('\n')[found!.line - 1]!.slice(found!.column - 1, found!.endColumn - 1),
      '127.0.0.1',
    );
  });

  test('counts positions in messages like those in the heading', async () => {
    const twice =
      '.:53 {\n    errors\n    errors\n    health\n    forward . 10.0.0.2\n    forward a.example 10.0.0.3\n}\n.:53 {\n    health\n}\n';
    const text = `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: coredns\ndata:\n  Corefile: |\n${twice.replace(/^(?=.)/gm, '    ')}`;
    const { out } = await run(files({ 'cm.yaml': text }));
    assert.match(out, /the first match\s+\([^\n]*cm\.yaml:11\)/);
    assert.match(out, /The first one is at [^\n]*cm\.yaml:7\./);
    assert.match(out, /It is already in [^\n]*cm\.yaml:10,/);
    assert.doesNotMatch(out, /"\]:\d/);
  });

  test('in a ConfigMap as kubectl prints it, with the text in quotes', async () => {
    const text = `apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: coredns\n  data:\n    Corefile: ${JSON.stringify(looping)}\n`;
    const [found] = await findings(files({ 'list.yaml': text }));
    assert.deepEqual(
      [found!.code, found!.line, found!.excerpt.trim()],
      ['CF03', 9, 'forward . 127.0.0.1 {'],
    );
  });

  for (const [how, parameters] of [
    ['plain', 'parameters: . 127.0.0.1'],
    ['quoted', 'parameters: ". 127.0.0.1"'],
    ['folded', 'parameters: >-\n      . 127.0.0.1'],
  ] as const)
    test(`parameters of the CoreDNS chart have places of their own: ${how}`, async () => {
      const text = `servers:\n- zones:\n  - zone: .\n  port: 53\n  plugins:\n  - name: forward\n    ${parameters}\n`;
      const path = files({ 'values.yaml': text });
      const found = (await findings(path, '--only', 'CF03'))[0]!;
      const word = text.split('\n')[found.line - 1]!.slice(found.column - 1, found.endColumn - 1);
      assert.equal(word.replace(/"$/, ''), '127.0.0.1');
      assert.match(found.excerpt, /127\.0\.0\.1/);
    });

  test('a text that is not a Corefile is reported as such, with only a few errors', async () => {
    const prose = Array.from(
      { length: 40 },
      (_, at) => `Word${at}, and so on {\n  this is prose ${at}\n}\n`,
    );
    const found = await findings(join(files({ Corefile: prose.join('') }), 'Corefile'));
    assert.equal(found.length, 10);
    assert.match(found[0]!.text, /this is probably not a Corefile/);
  });

  test('checks an unknown release like the newest one, and says so', async () => {
    const path = join(files({ Corefile: looping }), 'Corefile');
    assert.match(
      (await run(path, '--target', 'coredns@1.99')).err,
      /the newest known release is 1\.14\.7/,
    );
    assert.equal((await run(path, '--target', 'coredns@1.14.7')).err, '');
  });

  test('in the settings of the CoreDNS chart', async () => {
    const text = `servers:\n- zones:\n  - zone: .\n  port: 53\n  plugins:\n  - name: errors\n  - name: ready\n  - name: health\n    configBlock: |-\n      lameduck 5s\n  - name: cache\n    parameters: 30\n  - name: loop\n  - name: prometheus\n  - name: forward\n    parameters: . 10.0.0.2\n    configBlock: |-\n      max_fails 0\n      max_concurrent 1000\n`;
    const [found] = await findings(files({ 'values.yaml': text }));
    assert.deepEqual([found!.code, found!.line, found!.column], ['CF28', 18, 7]);
    assert.equal(found!.excerpt, '      max_fails 0');
  });

  const settings = (indent: string): string =>
    `servers:\n- zones:\n  - zone: .\n  plugins:\n  - name: errors\n  - name: ready\n  - name: health\n    configBlock: |-\n      lameduck 5s\n  - name: cache\n  - name: loop\n  - name: prometheus\n  - name: forward\n    parameters: . 10.0.0.2\n    configBlock: |-\n      max_fails 0\n      max_concurrent 1000\n`.replaceAll(
      /^(?=.)/gm,
      indent,
    );
  for (const [whose, text] of [
    ['RKE2 and k3s', `kind: HelmChartConfig\nspec:\n  valuesContent: |-\n${settings('    ')}`],
    ['Flux', `kind: HelmRelease\nspec:\n  values:\n${settings('    ')}`],
    [
      'Argo CD',
      `kind: Application\nspec:\n  source:\n    helm:\n      values: |\n${settings('        ')}`,
    ],
  ] as const)
    test(`in the settings of the CoreDNS chart as ${whose} take them`, async () => {
      const [found, ...more] = await findings(files({ 'chart.yaml': text }));
      assert.deepEqual([found!.code, more], ['CF28', []]);
      assert.equal(
        text.split('\n')[found!.line - 1]!.slice(found!.column - 1, found!.endColumn - 1),
        'max_fails',
      );
    });

  test('*.override of a ConfigMap coredns-custom, within the block that imports them', async () => {
    const main =
      '.:53 {\n    errors\n    cache 30\n    loop\n    prometheus\n    forward . 10.0.0.2 {\n        max_concurrent 1000\n    }\n    import /etc/coredns/custom/*.override\n}\nimport /etc/coredns/custom/*.server\n';
    const map = (name: string, data: Readonly<Record<string, string>>): string =>
      `---\napiVersion: v1\nkind: ConfigMap\nmetadata: { name: ${name} }\ndata:\n${Object.entries(
        data,
      )
        .map(([key, text]) => `  ${key}: |\n${text.replace(/^(?=.)/gm, '    ')}`)
        .join('')}`;
    const custom = { 'corp.override': 'forward . 10.1.0.53 {\n    max_concurrent 500\n}\n' };
    const text = map('coredns', { Corefile: main }) + map('coredns-custom', custom);
    const [found] = await findings(files({ 'all.yaml': text }));
    assert.equal(found!.code, 'CF26');
    assert.equal(found!.within, 'data["corp.override"]');
    assert.equal(text.split('\n')[found!.line - 1]!.trim(), 'forward . 10.1.0.53 {');
  });

  test('an *.override without its Corefile is judged by its contents, not by missing parts', async () => {
    assert.deepEqual(
      await findings(files({ 'x.override': 'forward . 10.1.0.53 {\n    max_concurrent 500\n}\n' })),
      [],
    );
    const [found] = await findings(
      files({ 'x.override': '# one\nforward . 127.0.0.1 {\n    max_concurrent 500\n}\n' }),
    );
    assert.deepEqual([found!.code, found!.line, found!.column], ['CF03', 2, 11]);
  });

  test('node-cache’s template with its variables', async () => {
    const text =
      '__PILLAR__DNS__DOMAIN__:53 {\n    errors\n    cache 30\n    loop\n    prometheus :9253\n    bind __PILLAR__LOCAL__DNS__\n    forward . __PILLAR__LOCAL__DNS__ {\n        max_concurrent 1000\n    }\n}\n';
    const [found] = await findings(join(files({ Corefile: text }), 'Corefile'), '--only', 'CF03');
    assert.deepEqual([found!.code, found!.line, found!.column], ['CF03', 7, 15]);
    assert.equal(found!.excerpt, '    forward . __PILLAR__LOCAL__DNS__ {');
  });

  test('on standard input', async () => {
    const { out } = await runCommand(lint, ['-'], {}, {}, looping);
    assert.match(out, /^stdin:6:15: error CF03/);
  });

  test('does not accept empty standard input: the command before the pipe may have failed', async () => {
    const { code, out, err } = await runCommand(lint, ['-'], {}, {}, '\n');
    assert.deepEqual([code, out], [2, '']);
    assert.match(err, /standard input is empty \[[\w-]+\]\n.*before the pipe/);
  });
});

describe('an address', () => {
  test('that serve refuses is refused: TLS without a certificate, and QUIC', async () => {
    const path = files({
      Corefile:
        'tls://.:853 {\n whoami\n}\nquic://a.test:8853 {\n whoami\n}\nhttps://b.test {\n tls cert.pem key.pem\n whoami\n}\n',
    });
    assert.deepEqual(
      (await findings(path, '--only', 'CF43')).map(({ line, text }) => `${line} ${text}`),
      [
        "1 tls://.:853 needs a certificate: this server block has no 'tls'",
        "4 cannot serve quic://a.test:8853: the transport 'quic' is not available",
      ],
    );
  });

  test('may have its certificate in an imported file that is not available', async () => {
    const text = 'tls://.:853 {\n import /etc/coredns/custom/*.override\n whoami\n}\n';
    assert.deepEqual(await findings(files({ Corefile: text }), '--only', 'CF43'), []);
  });
});

test('refuses an invalid listen address as serve does; an interface may exist', async () => {
  const text = (bind: string): string => `.:53 {\n bind ${bind}\n whoami\n}\n`;
  const refused = async (bind: string): Promise<readonly string[]> =>
    (await findings(files({ Corefile: text(bind) }), '--only', 'CF43')).map((each) => each.text);
  assert.deepEqual(await refused('127.0.0.1 10.0.0.300'), [
    "plugin/bind: not a valid IP address or interface name: '10.0.0.300'",
  ]);
  assert.deepEqual(await refused('eth0 eth0.100 169.254.20.10 ::1'), []);
});

test('an admin address that any client can reach is rejected, as in serve', async () => {
  const text = (admin: string): string => `.:53 {\n admin ${admin}\n whoami\n}\n`;
  const refused = async (admin: string): Promise<readonly string[]> =>
    (await findings(files({ Corefile: text(admin) }), '--only', 'CF43')).map(
      ({ line, text: what }) => `${line} ${what}`,
    );
  assert.deepEqual(await refused(':9154'), [
    '2 plugin/admin: :9154 is reachable from other machines, and any client could send commands there',
  ]);
  assert.deepEqual(await refused(':9154 {\n  token_file token\n }'), []);
  assert.deepEqual(await refused('localhost:9154'), []);
});

describe('a target', () => {
  test('of CoreDNS accepts features that ndots does not have', async () => {
    const path = files({
      Corefile:
        '.:53 {\n route53 example.org.:Z1\n}\nquic://a.test:8853 {\n tls cert.pem key.pem\n whoami\n}\n',
    });
    assert.deepEqual(await findings(path, '--target', 'coredns@1.14.7', '--only', 'CF43'), []);
    assert.deepEqual(
      (await findings(path, '--target', 'ndots', '--only', 'CF43')).map(({ line }) => line),
      [2, 4],
    );
  });

  const text =
    '.:53 {\n    errors\n    cache 30\n    loop\n    prometheus\n    multisocket\n    forward . 10.0.0.2 {\n        max_concurrent 1000\n        max_idle_conns 4\n    }\n}\n';
  const path = (): string => join(files({ Corefile: text }), 'Corefile');

  for (const [target, words] of [
    ['coredns@1.14.7', []],
    ['coredns@1.12.0', ['max_idle_conns']],
    ['coredns@1.11.3', ['multisocket', 'max_idle_conns']],
    ['node-cache@1.26.4', ['multisocket', 'max_idle_conns']],
    ['ndots', []],
  ] as const)
    test(`${target} refuses ${words.join(' and ') || 'nothing'}`, async () => {
      const found = await findings(path(), '--target', target);
      assert.deepEqual(
        found
          .filter(({ code }) => code === 'CF01')
          .map(({ excerpt }) => excerpt.trim().split(' ')[0]),
        words,
      );
    });

  test('is taken from the image in the manifests', async () => {
    const image =
      'apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: coredns }\nspec:\n  template: { spec: { containers: [{ name: c, image: "coredns/coredns:1.11.3" }] } }\n';
    const { out } = await run(files({ Corefile: text, 'deploy.yaml': image }));
    assert.match(out, /has no directive 'multisocket'/);
    assert.match(out, /\(for coredns@1\.11\.3\)/);
  });

  test('rejects values that only ndots supports, and upstream names for releases that do not resolve them', async () => {
    const own = join(
      files({
        Corefile: `.:53 {\n    errors\n    cache 30\n    prometheus\n    forward . dns.example 10.0.0.2 {\n        max_concurrent 1000\n        policy latency\n    }\n}\n`,
      }),
      'Corefile',
    );
    const refused = async (target: string): Promise<unknown> =>
      (await findings(own, '--target', target, '--only', 'CF01')).map(({ line, text: what }) => [
        line,
        what.replace(/ in CoreDNS [\d.]+/, ''),
      ]);
    const policy = [7, "forward in CoreDNS has no policy 'latency'; only ndots does"];
    assert.deepEqual(await refused('coredns@1.14.7'), [policy]);
    assert.deepEqual(await refused('coredns@1.11.3'), [
      [5, 'forward accepts addresses and files, but not the name dns.example'],
      policy,
    ]);
    assert.deepEqual(await refused('ndots'), []);
  });

  test('that is invalid is a usage error', async () => {
    const { code, err } = await run(path(), '--target', 'coredns@new');
    assert.equal(code, 3);
    assert.match(err, /Example: --target coredns@1\.11\.3/);
  });
});

describe('a comment', () => {
  const with_ = (comment: string): string =>
    looping.replace('    forward', `    # ndots:ignore ${comment}\n    forward`);

  test('with a reason suppresses a finding, and is counted', async () => {
    const { code, out } = await run(
      files({ Corefile: with_('CF03 because it is another server') }),
    );
    assert.equal(code, 0);
    assert.match(out, /1 ignored/);
  });

  test('may list several codes, and apply to the whole file', async () => {
    const text = `# ndots:ignore-file CF03,CF10 because of reasons\n${looping.replace(/ \{\n *max.*\n *\}/, '')}`;
    assert.deepEqual(await findings(files({ Corefile: text })), []);
  });

  test('without a reason does not count', async () => {
    const found = await findings(files({ Corefile: with_('CF03') }));
    assert.deepEqual(
      found.map(({ code }) => code),
      ['CF48', 'CF03'],
    );
  });

  test('without a code: shows the syntax', async () => {
    const { out } = await run(
      files({ Corefile: `# ndots:ignore-file because it is old\n${looping}` }),
    );
    assert.match(
      out,
      /CF48: this comment does not name a code\n.*\n.*\n +Write: # ndots:ignore-file CF07 b/,
    );
  });

  test('with an unknown code is reported, with a suggestion', async () => {
    const { out } = await run(files({ Corefile: with_('CF3 because so') }));
    assert.match(out, /there is no code 'CF3'\n.*\n.*\n +Did you mean 'CF03'\?/);
  });

  test('without effect is reported', async () => {
    const found = await findings(
      files({ Corefile: with_('CF03,CF28 because so').replace('127.0.0.1', '10.0.0.2') }),
    );
    assert.deepEqual(
      found.map(({ code, severity }) => [code, severity]),
      [['CF48', 'note']],
    );
  });
});

describe('--fix', () => {
  const text =
    '.:53 {\n    errors\n    prometheus\n    loop\n    cache 30\n    bufsize 4096\n    health\n    forward . 10.0.0.2 # ours\n}\n';

  test('shows the change, writes the file atomically, and preserves its mode', async () => {
    const path = join(files({ Corefile: text }), 'Corefile');
    chmodSync(path, 0o640);
    const { code, out } = await run(path, '--fix');
    assert.equal(code, 0);
    assert.match(out, /^-    bufsize 4096$/m);
    assert.match(out, /^\+    bufsize 1232$/m);
    assert.match(out, /^\+ {8}lameduck 5s$/m);
    assert.equal(
      readFileSync(path, 'utf8'),
      text.replace('4096', '1232').replace('health', 'health {\n        lameduck 5s\n    }'),
    );
    assert.equal(statSync(path).mode & 0o777, 0o640);
    assert.deepEqual(readdirSync(join(path, '..')), ['Corefile']);
  });

  test('preserves the owner of the file', { skip: process.getuid?.() !== 0 }, async () => {
    const path = join(files({ Corefile: '.:53 {\n    forward . 10.0.0.2\n}\n' }), 'Corefile');
    chownSync(path, 65534, 65534);
    assert.equal((await run(path, '--fix')).code, 0);
    assert.match(readFileSync(path, 'utf8'), /cache/);
    const { uid, gid } = statSync(path);
    assert.deepEqual([uid, gid], [65534, 65534]);
  });

  test('fixes each line of a finding with several lines', async () => {
    const two = (rest: string): string =>
      `a.example:53 {\n    errors\n    prometheus\n    cache 30\n    forward . 10.0.0.2${rest}\n}\n`;
    const path = join(files({ Corefile: two('') + two('').replace('a.', 'b.') }), 'Corefile');
    await run(path, '--fix', '--target', 'coredns');
    const mended = two(' {\n        max_concurrent 1000\n    }');
    assert.equal(readFileSync(path, 'utf8'), mended + mended.replace('a.', 'b.'));
  });

  test('writes through a symbolic link', async () => {
    const at = files({ 'real/Corefile': text });
    symlinkSync(join(at, 'real/Corefile'), join(at, 'Corefile'));
    await run(join(at, 'Corefile'), '--fix');
    assert.match(readFileSync(join(at, 'real/Corefile'), 'utf8'), /bufsize 1232/);
  });

  test('--diff writes nothing, also with --fix', async () => {
    const path = join(files({ Corefile: text }), 'Corefile');
    for (const words of [['--diff'], ['--fix', '--diff']]) {
      assert.match((await run(path, ...words)).out, /^\+    bufsize 1232$/m);
      assert.equal(readFileSync(path, 'utf8'), text);
    }
  });

  test('inserts a property after the existing lines, because records in hosts end at the first property', async () => {
    const text = `.:53 {
    errors
    cache 30
    hosts {
        10.0.0.1 db.example.org
    }
    prometheus
    forward . 10.0.0.2 { # first
        policy sequential
        health_check 1s
    }
}
`;
    const path = join(files({ Corefile: text }), 'Corefile');
    assert.equal((await run(path, '--fix', '--target', 'coredns')).code, 0);
    assert.equal(
      readFileSync(path, 'utf8'),
      text
        .replace('org\n', 'org\n        fallthrough\n')
        .replace('1s\n', '1s\n        max_concurrent 1000\n'),
    );
    assert.deepEqual(await findings(path), []);
  });

  test('inserted lines have the line endings of the file', async () => {
    const text = '.:53 {\r\n    errors\r\n    prometheus\r\n    forward . 10.0.0.2\r\n}\r\n';
    const path = join(files({ Corefile: text }), 'Corefile');
    assert.equal((await run(path, '--fix')).code, 0);
    const mended = readFileSync(path, 'utf8');
    assert.match(mended, /cache 30\r\n/);
    assert.doesNotMatch(mended, /[^\r]\n/);
  });

  test('does not fix a file with unbalanced braces, because its structure is a guess', async () => {
    const text = '.:53 {\n    forward . 10.0.0.2\n';
    const path = join(files({ Corefile: text }), 'Corefile');
    const { code, out } = await run(path, '--fix');
    assert.equal(code, 1);
    assert.match(out, /^No finding has an automatic fix/);
    assert.equal(readFileSync(path, 'utf8'), text);
    assert.doesNotMatch((await run(path)).out, /can be fixed by/);
  });

  test('the shown change can be applied with patch', async () => {
    const path = files({
      Corefile: looping.replace('127.0.0.1', '10.0.0.2').replace(/ \{\n +max.*\n +\}/, ''),
    });
    const { out } = await run(join(path, 'Corefile'), '--diff', '--target', 'coredns');
    assert.match(out, /^@@ -3,5 \+3,7 @@$/m);
    const patched = spawnSync('patch', ['-p0', join(path, 'Corefile')], {
      input: out,
      encoding: 'utf8',
    });
    if (patched.error === undefined) {
      assert.equal(patched.status, 0, patched.stdout);
      assert.match(readFileSync(join(path, 'Corefile'), 'utf8'), /max_concurrent/);
    }
  });

  test('fixes the text in a ConfigMap and keeps its indentation', async () => {
    const map = `kind: ConfigMap\nmetadata: { name: coredns }\ndata:\n  Corefile: |\n${text.replace(/^(?=.)/gm, '    ')}`;
    const at = files({ 'c.yaml': map });
    await run(at, '--fix');
    assert.match(
      readFileSync(join(at, 'c.yaml'), 'utf8'),
      /^ {8}health \{\n {12}lameduck 5s\n {8}\}$/m,
    );
  });

  test('is rejected for standard input', async () => {
    assert.equal((await run('-', '--fix')).code, 3);
  });
});

describe('invalid input', () => {
  test('a missing path', async () => {
    const { code, err } = await run(join(directory, 'nowhere'));
    assert.equal(code, 2);
    assert.match(err, /cannot read .*nowhere: no such file or directory/);
  });

  test('a binary file is an error; in a directory it is reported, and the rest is linted', async () => {
    const at = files({ 'x.yaml': Buffer.from([0, 1, 2]), Corefile: looping });
    assert.equal((await run(join(at, 'x.yaml'))).code, 2);
    const found = await findings(at);
    assert.deepEqual(
      found.map(({ code }) => code),
      ['CF03', 'CF49'],
    );
  });

  test('YAML with an error: reports the position', async () => {
    const [found] = await findings(join(files({ 'x.yaml': 'a: b\nc: [\n' }), 'x.yaml'));
    assert.equal(found!.code, 'CF49');
  });

  test('a chart template: explains what to do', async () => {
    const { out } = await run(
      join(files({ 'x.yaml': 'kind: ConfigMap\ndata: {{ .Values.x }}\n' }), 'x.yaml'),
    );
    assert.match(out, /helm template/);
  });

  test('circular imports, imports of missing files and of directories', async () => {
    const at = files({
      Corefile: '.:53 {\n    import a.conf\n}\n',
      'a.conf': 'import b.conf\n',
      'b.conf': 'import a.conf\n',
    });
    assert.deepEqual(
      (await findings(join(at, 'Corefile'))).map(({ code }) => code),
      ['CF34'],
    );
    for (const name of ['nothing.conf', '.'])
      assert.deepEqual(
        (
          await findings(join(files({ Corefile: `.:53 {\n    import ${name}\n}\n` }), 'Corefile'))
        ).map(({ code }) => code),
        ['CF34'],
      );
  });

  test('braces on one line are valid here, and an error in CoreDNS', async () => {
    const at = files({ Corefile: '.:53 {\n    health { lameduck 5s }\n    whoami\n}\n' });
    for (const [words, severity] of [
      [[], 'warning'],
      [['--target', 'coredns@1.12.0'], 'error'],
    ] as const) {
      const found = await findings(join(at, 'Corefile'), ...words);
      const brace = found.filter(({ code }) => code === 'CF34');
      assert.deepEqual(
        brace.map((each) => each.severity),
        [severity],
      );
    }
  });

  test('a file that is too large, a missing named pipe', async () => {
    const at = files({ Corefile: Buffer.alloc(17 * 1024 * 1024, 'x') });
    const { code, err } = await run(join(at, 'Corefile'));
    assert.equal(code, 2);
    assert.match(err, /is larger than 16 MiB/);
  });

  test('in a directory, programs and documents about Corefiles are not Corefiles', async () => {
    const at = files({
      '_corefile.tpl': '{{- range .Values.servers }} the Corefile, and the rest {{ end }}\n',
      'corefile.md': '# The Corefile\n',
      'corefile.go': 'package corefile\n',
      'Corefile.new': looping,
    });
    assert.deepEqual(
      (await findings(at)).map(({ file, code }) => [file.replace(/.*\//, ''), code]),
      [['Corefile.new', 'CF03']],
    );
  });

  test('an empty Corefile is an error, in a file or a ConfigMap', async () => {
    for (const empty of ['', '\n# to come {\n']) {
      const { code, out } = await run(join(files({ Corefile: empty }), 'Corefile'));
      assert.equal(code, 1);
      assert.match(out, /Corefile:1:1: error CF44: this Corefile is empty/);
    }
    const map = 'kind: ConfigMap\nmetadata: {name: coredns}\ndata:\n  Corefile: ""\n';
    const [found] = await findings(join(files({ 'map.yaml': map }), 'map.yaml'));
    assert.deepEqual([found?.code, found?.severity, found?.line], ['CF44', 'error', 4]);
    assert.deepEqual(
      await findings(files({ 'x.override': '', Corefile: '. {\n whoami\n}\n' })),
      [],
    );
  });

  for (const [plugin, word, first, last] of [
    ['kubernetes cluster.local', 'endpoint', 'https://10.0.0.1:6443', 'https://10.0.0.2:6443'],
    ['kubernetes cluster.local clusterset.local', 'multicluster', 'clusterset.local', 'a.local'],
    ['forward . dns.example', 'resolver', '10.0.0.1', '10.0.0.2'],
  ])
    test(`warns that only the last of several ${word} lines counts`, async () => {
      const text = `. {\n ${plugin} {\n  ${word} ${first}\n  ${word} ${last}\n }\n}\n`;
      const path = join(files({ Corefile: text }), 'Corefile');
      const found = (await findings(path)).filter(({ code }) => code === 'CF44');
      assert.deepEqual(
        found.map(({ line }) => line),
        [4],
      );
      const once = files({ Corefile: text.replace(`  ${word} ${first}\n`, '') });
      const none = (await findings(join(once, 'Corefile'))).filter(({ code }) => code === 'CF44');
      assert.deepEqual(none, []);
    });

  test('an unreadable directory: an error if it was named, else a note next to the findings', async () => {
    const path = files({ Corefile: looping, 'closed/Corefile': looping });
    chmodSync(directory, 0o755);
    chmodSync(join(path, 'closed'), 0);
    const root = process.getuid?.() === 0;
    if (root) process.seteuid?.(65534);
    try {
      const named = await run(join(path, 'closed'));
      assert.equal(named.code, 2);
      assert.match(named.err, /cannot read .*closed: permission denied/);
      const { code, out } = await run(path);
      assert.equal(code, 1);
      assert.match(out, /error CF03/);
      assert.match(out, /closed:1:1: error CF49: permission denied/);
    } finally {
      if (root) process.seteuid?.(0);
      chmodSync(join(path, 'closed'), 0o755);
    }
  });

  test('reports progress for many files', async () => {
    const told: string[] = [];
    const at = files({ 'a.yaml': 'kind: Secret\n', 'b.yaml': 'kind: Secret\n', Corefile: looping });
    await runCommand(lint, [at], {}, { progress: (text) => told.push(text) });
    assert.match(told[0]!, /^reading 1 of 3: .*Corefile$/);
    assert.match(told.join('\n'), /^reading 3 of 3: .*b\.yaml\n(?:.*\n)*rule CF\d+, 2 of \d+$/m);
  });

  test('an empty directory', async () => {
    const { code, err } = await run(files({ 'README.md': 'x' }));
    assert.equal(code, 2);
    assert.match(err, /nothing to lint/);
  });

  test('a file with nothing to lint does not count as a file without errors', async () => {
    const at = files({
      'secret.yaml': 'kind: Secret\nmetadata: {name: x}\n',
      'typo.yaml': 'kind: ConfigMap\nmetadata: {name: coredns}\ndata: {Corefil: "x"}\n',
      Corefile: looping,
    });
    const secret = await run(join(at, 'secret.yaml'));
    assert.equal(secret.code, 2);
    assert.match(
      secret.err,
      /there is nothing to lint in the input \[lint-nothing\]\n.*secret\.yaml: it holds Secret x$/m,
    );
    const typo = await run(join(at, 'typo.yaml'), '--only', 'CF03');
    assert.equal(typo.code, 2);
    assert.match(
      typo.err,
      /typo\.yaml: it holds ConfigMap coredns with Corefil, none of which has "Corefile" in its name/,
    );
    const both = await run(join(at, 'typo.yaml'), join(at, 'Corefile'));
    assert.equal(both.code, 1);
    assert.match(both.out, /^1 file: 1 error/m);
    assert.match(both.out, /^Nothing to lint in .*typo\.yaml: it holds ConfigMap coredns/m);
    for (const name of ['b.yaml', 'c.yaml', 'd.yaml'])
      copyFileSync(join(at, 'secret.yaml'), join(at, name));
    const many = await run(
      ...['b.yaml', 'c.yaml', 'd.yaml', 'Corefile'].map((name) => join(at, name)),
    );
    assert.match(many.out, /^1 file: 1 error[^\n]*\nNothing to lint in 3 other inputs/m);
    // A directory usually contains many unrelated files.
    assert.doesNotMatch((await run(at)).out, /it holds/);
    const workload =
      'kind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {containers: []}}}\n';
    const clean = await run(join(files({ 'web.yaml': workload }), 'web.yaml'), '--only', 'CF03');
    assert.equal(clean.code, 0);
    assert.match(clean.out, /^1 file: 0 errors/);
  });

  test('an unknown code: suggests one', async () => {
    const { code, err } = await run('--explain', 'CF70');
    assert.equal(code, 3);
    assert.match(err, /ndots lint --rules|Did you mean/);
  });

  test('megabytes of garbage give a report without exhausting memory', async () => {
    const look = (times: number): (() => Promise<void>) => {
      const path = join(files({ Corefile: 'x { y\n"'.repeat(times) }), 'Corefile');
      return async () => {
        const found = await findings(path);
        assert.ok(found.length > 0 && found.length <= 200);
      };
    };
    await costsAtMost(24, look(120_000), look(15_000));
  });
});

describe('ndots lint', () => {
  test('sets the exit code according to --fail-on', async () => {
    const path = join(
      files({
        Corefile: looping
          .replace('127.0.0.1', '10.0.0.2')
          .replace('loop\n', 'loop\n    bufsize 4096\n'),
      }),
      'Corefile',
    );
    assert.equal((await run(path)).code, 0);
    assert.equal((await run(path, '--fail-on', 'warning')).code, 1);
    assert.equal((await run(path, '--fail-on', 'warning', '--ignore', 'CF32')).code, 0);
    assert.equal((await run(path, '--severity', 'CF32=error')).code, 1);
    assert.equal((await run(path, '--only', 'CF10', '--fail-on', 'note')).code, 0);
  });

  test('lists all rules for programs, too', async () => {
    const { out } = await run('--rules', '-o', 'json');
    const listed = JSON.parse(out) as { code: string; severity: string; summary: string }[];
    assert.deepEqual(listed[0], {
      code: 'CF01',
      severity: 'error',
      summary: 'a directive or property that the target does not have',
    });
  });

  test('pages and lists wrap at 40 columns, except for code; a page is JSON for programs', async () => {
    const narrow = async (...words: readonly string[]): Promise<readonly string[]> =>
      (await runCommand(lint, words, {}, { columns: 40 })).out
        .replace(/^```[^]*?^```/gm, '')
        .split('\n');
    for (const line of [...(await narrow('--explain', 'CF07')), ...(await narrow('--rules'))])
      assert.ok(line.length <= 40 || line.startsWith('#'), line);
    const { out } = await run('--explain', 'CF07', '-o', 'json');
    const found = JSON.parse(out) as { code: string; severity: string; page: string };
    assert.equal(found.code, 'CF07');
    assert.match(found.page, /^# CF07[^]*```corefile/);
    assert.equal((await run('--explain', 'CF07', '-o', 'sarif')).code, 3);
  });

  test('explains every code that --rules lists', async () => {
    const rules = JSON.parse((await run('--rules', '-o', 'json')).out) as { code: string }[];
    assert.ok(rules.length >= 60);
    for (const { code } of rules) {
      const { code: exit, out } = await run('--explain', code);
      assert.equal(exit, 0, code);
      assert.match(out, new RegExp(`^# ${code}: `), code);
    }
  });

  test('refers to --explain once, and only if a code was printed', async () => {
    const footers = async (text: string): Promise<number> =>
      (await run(join(files({ Corefile: text }), 'Corefile'))).out.split('--explain').length - 1;
    assert.equal(await footers(looping), 1);
    assert.equal(await footers(`${looping}a {\n    erors\n    whoami\n`), 1);
    assert.equal(await footers(looping.replace('127.0.0.1', '10.0.0.2').replace('1000', '999')), 0);
  });

  test('explains a rule with its page, and lists all rules', async () => {
    assert.match((await run('--explain', 'cf07')).out, /^# CF07: /);
    assert.match((await run('--rules')).out, /^CF01 {2}error {4}a directive/);
  });
});
