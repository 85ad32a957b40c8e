import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { freePorts } from '../../../../test/kit/free-ports.ts';
import { serveAnswers, type LocalAnswers } from '../../../../test/kit/local-answers.ts';
import { runCommand, type Ran } from '../../../../test/kit/trace-command.ts';
import { check } from './check.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-check-'));
after(() => rmSync(directory, { recursive: true, force: true }));

/** Runs the checks in a file. */
function run(yaml: string, ...words: readonly string[]): Promise<Ran> {
  const path = join(directory, 'check.yaml');
  writeFileSync(path, yaml);
  return runCommand(check, ['run', '-f', path, ...words]);
}

interface Report {
  readonly state: string;
  readonly checks: readonly {
    readonly check: string;
    readonly state: string;
    readonly observations: readonly {
      readonly target: string;
      readonly state: string;
      readonly text: string;
      readonly lost: number;
    }[];
  }[];
}

test('a server in dig syntax gives a hint about the right option', async () => {
  const { code, err } = await runCommand(check, ['run', '@10.96.0.10:53']);
  assert.equal(code, 3);
  assert.match(
    err,
    /unexpected word "@10[^]*Specify the server with --vip 10\.96\.0\.10:53, or find all servers with/,
  );
});

describe('ndots check run', () => {
  let server: LocalAnswers;
  let other: LocalAnswers;
  let dead: number;

  before(async () => {
    const kubernetes = 'kubernetes.default.svc.cluster.local.';
    server = await serveAnswers({
      rules: [
        { name: kubernetes, type: 'A', answer: '10.96.0.1' },
        { name: kubernetes, answer: 'NODATA' },
        { name: 'half.example.', type: 'A', answer: '192.0.2.1' },
        { name: 'half.example.', type: 'AAAA', answer: 'NXDOMAIN' },
        { name: 'lossy.example.', type: 'A', answer: ['DROP', '192.0.2.2'] },
        { name: 'again.example.', type: 'A', answer: ['DROP', '192.0.2.2'] },
        { name: '*.wild.example.', type: 'A', answer: '192.0.2.66' },
        { name: '*.refused.example.', answer: 'REFUSED' },
      ],
    });
    other = await serveAnswers({
      rules: [{ name: kubernetes, type: 'A', answer: '10.96.0.99' }],
    });
    [dead] = await freePorts(1);
  });
  after(() => Promise.all([server.close(), other.close()]));

  const file = (checks: string, more = ''): string =>
    `vip: 127.0.0.1:${server.port}\ntimeout: 300ms\n${more}\nchecks:\n${checks}\n`;

  async function report(checks: string, more = ''): Promise<Report> {
    const { out, err } = await run(file(checks, more), '-o', 'json');
    assert.notEqual(out, '', err);
    return JSON.parse(out) as Report;
  }

  /** Returns the state and text of the observations made by the only check. */
  async function seen(checks: string, more = ''): Promise<(readonly [string, string])[]> {
    const { checks: all } = await report(checks, more);
    return all[0]!.observations.map(({ state, text }) => [state, text] as const);
  }

  test('a dead replica is reported even if the service address answers', async () => {
    const replicas = `replicas: ['127.0.0.1:${server.port}', '127.0.0.1:${dead}']`;
    const ran = await run(
      file('  - check: vip-fresh-port\n  - check: replica-answers', replicas),
      '--no-color',
    );
    assert.equal(ran.code, 1);
    assert.match(ran.out, /^✓ ok {6}vip-fresh-port/m);
    assert.match(ran.out, new RegExp(`✕ 127\\.0\\.0\\.1:${dead} .*no server listens`));
  });

  test('a lost query that succeeds on retry is a warning, and is counted', async () => {
    const found = await report('  - { check: external-names, names: lossy.example }');
    assert.equal(found.state, 'warning');
    assert.equal(found.checks[0]?.observations[0]?.lost, 1);
    assert.match(found.checks[0]?.observations[0]?.text ?? '', /1 of 2 queries got no reply/);
  });

  test('shows which replicas disagree', async () => {
    const [[state, text] = []] = await seen(
      '  - check: replica-agreement',
      `replicas: ['127.0.0.1:${server.port}', '127.0.0.1:${other.port}']`,
    );
    assert.equal(state, 'failed');
    assert.match(text ?? '', /disagree: .*10\.96\.0\.1; .*10\.96\.0\.99/);
  });

  test('a name that exists for A and not for AAAA', async () => {
    const [[state, text] = []] = await seen('  - { check: aaaa-consistency, names: half.example }');
    assert.equal(state, 'failed');
    assert.match(text ?? '', /A NOERROR, AAAA NXDOMAIN/);
  });

  test('a wildcard under a suffix, and one that refuses', async () => {
    const found = await seen(
      '  - { check: suffix-hazards, suffixes: [wild.example, refused.example, fine.example] }',
    );
    assert.deepEqual(
      found.map(([state]) => state),
      ['failed', 'failed', 'ok'],
    );
    assert.match(found[0]![1], /wildcard under wild\.example\. answers 192\.0\.2\.66/);
    assert.match(found[1]![1], /REFUSED instead of NXDOMAIN; musl stops searching/);
  });

  test('reports missing and unexpected addresses', async () => {
    const [[state, text] = []] = await seen(
      '  - { check: expected-addresses, name: half.example, addresses: [192.0.2.7] }',
    );
    assert.equal(state, 'failed');
    assert.match(text ?? '', /missing 192\.0\.2\.7, not expected 192\.0\.2\.1/);
  });

  test('shows the search path lookups of each client, with their number of queries', async () => {
    const { checks } = await report('  - { check: search-walk, name: kubernetes.default }');
    assert.deepEqual(
      checks[0]?.observations.map(({ target, state }) => [target.split('@')[0], state]),
      [
        ['glibc', 'ok'],
        ['musl', 'ok'],
        ['go', 'ok'],
      ],
    );
    assert.match(checks[0]!.observations[0]!.text, /10\.96\.0\.1 after 4 queries for 2 names/);
  });

  test('TCP, pairs, one source port, EDNS', async () => {
    const { checks } = await report(
      '  - check: tcp\n  - check: pair-same-socket\n  - check: vip-fixed-port\n  - check: edns-1232',
    );
    assert.deepEqual(
      checks.map(({ check: kind, state }) => [kind, state]),
      [
        ['tcp', 'ok'],
        ['pair-same-socket', 'ok'],
        ['vip-fixed-port', 'ok'],
        ['edns-1232', 'ok'],
      ],
    );
  });

  test('checks with missing settings are unknown, and name the required option', async () => {
    const { code, out } = await run(file('  - check: replica-answers'));
    assert.equal(code, 2);
    assert.match(out, /no replicas are known; .*--service/);
  });

  test('with Nagios, the exit codes are those of Nagios', async () => {
    const nagios = (checks: string, ...words: readonly string[]): Promise<Ran> =>
      run(file(checks), '--nagios', ...words);
    const fine = await nagios('  - check: vip-fresh-port');
    assert.deepEqual([fine.code, fine.out.slice(0, 8)], [0, 'DNS OK -']);
    assert.match(fine.out, / \| 'vip-fresh-port kubernetes\.default[^']*'=0\.\d{6}s\n$/);
    const lossy = await nagios('  - { check: external-names, names: again.example }');
    assert.deepEqual([lossy.code, lossy.out.slice(0, 11)], [1, 'DNS WARNING']);
    const gone = await nagios('  - { check: external-names, names: gone.example }');
    assert.deepEqual([gone.code, gone.out.slice(0, 12)], [2, 'DNS CRITICAL']);
    const none = await nagios('  - check: replica-answers');
    assert.deepEqual([none.code, none.out.slice(0, 11)], [3, 'DNS UNKNOWN']);
    const wrong = await run('checks: []', '--nagios');
    assert.deepEqual([wrong.code, wrong.out.slice(0, 11)], [3, 'DNS UNKNOWN']);
  });

  test('JUnit has a case for each target; Prometheus a series', async () => {
    const yaml = file('  - { check: external-names, names: [half.example, gone.example] }');
    const junit = await run(yaml, '-o', 'junit');
    assert.match(junit.out, /<testsuite [^>]*tests="2" failures="1" errors="0"/);
    assert.match(junit.out, /<failure message="gone\.example\. A: NXDOMAIN">/);
    const prom = await run(yaml, '-o', 'prom');
    assert.match(
      prom.out,
      /^ndots_check_up\{check="external-names",target="127\.0\.0\.1:\d+ gone\.example\.",title="half\.example"\} 0$/m,
    );
  });

  test('unknown is neither up nor down for Prometheus', async () => {
    const { out } = await run(file('  - check: replica-answers'), '-o', 'prom');
    assert.doesNotMatch(out, /^ndots_check_up/m);
    assert.match(out, /^ndots_check_state\{.*state="unknown".*\} 1$/m);
  });

  test('the default checks of only a service address are those that need no replicas', async () => {
    const words = ['run', '--vip', `127.0.0.1:${server.port}`];
    const { out, err } = await runCommand(check, [...words, '-o', 'json']);
    assert.doesNotMatch(out, /"unknown"|replica-a/);
    assert.match(
      err,
      /these checks are skipped because they need replicas: replica-answers, replica-agreement/,
    );
    const chosen = await runCommand(check, [...words, '--only', 'replica-answers']);
    assert.match(chosen.out, /no replicas are known/);
  });
});

describe('a file of checks', () => {
  test('reports all unknown keys and checks at once, with suggestions', async () => {
    const { code, err } = await run(
      'vips: 192.0.2.1\ntimeout: 1\nchecks:\n  - check: replica-answer\n  - { check: tcp, nmae: x }\n  - { check: expected-addresses, name: a, addresses: [1.2.3] }\n  - { check: truncation-roundtrip }\n',
    );
    assert.equal(code, 2);
    for (const line of [
      /the file has no key "vips" \[bad-check-file\]\n.*check\.yaml:1:\d+\n.*Did you mean vip\?/,
      /"timeout" takes a time such as 250ms/,
      /no check "replica-answer" \[bad-check-file\]\n.*:4:\d+\n.*Did you mean replica-answers\?/,
      /a check has no key "nmae" \[bad-check-file\]\n.*:5:\d+\n.*Did you mean name\?/,
      /"addresses" takes an IP address, not "1\.2\.3"/,
      /a check needs "name" \[bad-check-file\]\n.*:7:\d+/,
    ])
      assert.match(err, line);
  });

  test('run accepts the file that init prints', async () => {
    const { out } = await runCommand(check, ['init']);
    const { err } = await run(out, '--only', 'nothing');
    assert.match(err, /--only nothing: there is no such check/);
  });

  test('suggests init for a missing file, but not for a directory', async () => {
    const missing = await runCommand(check, ['run', '-f', '/nowhere']);
    assert.match(missing.err, /check init > \/nowhere writes a sample/);
    const isDirectory = await runCommand(check, ['run', '-f', directory]);
    assert.match(isDirectory.err, /cannot be read: it is a directory/);
    assert.doesNotMatch(isDirectory.err, /init/);
  });

  test('list shows each check with its settings', async () => {
    const { out, code } = await runCommand(check, ['list']);
    assert.equal(code, 0);
    assert.match(out, /truncation-roundtrip[^]*name: NAME .*\(required\)/);
  });

  test('a target takes one line for programs, and wraps on a narrow terminal', async () => {
    const words = ['run', '--vip', '127.0.0.1:1', '--only', 'vip-fixed-port'];
    const { out } = await runCommand(check, words);
    assert.match(out, /✕ 127\.0\.0\.1:1 .* no server listens at .* \(conntrack .*\)$/m);
    for (const columns of [40, 60, 80])
      for (const line of (await runCommand(check, words, {}, { columns })).out.split('\n'))
        assert.ok(line.length <= columns, line);
  });

  test('list wraps at 40 columns, and prints JSON for programs', async () => {
    const { out } = await runCommand(check, ['list'], {}, { columns: 40 });
    for (const line of out.split('\n')) assert.ok(line.length <= 40, line);
    const listed = JSON.parse((await runCommand(check, ['list', '-o', 'json'])).out) as {
      checks: { check: string; parameters: { key: string; required: boolean }[] }[];
      everyCheck: object[];
      file: object[];
    };
    const found = listed.checks.find((each) => each.check === 'truncation-roundtrip')!;
    assert.ok(found.parameters.some(({ key, required }) => key === 'name' && required));
    assert.ok(listed.everyCheck.length > 0 && listed.file.length > 0);
    assert.equal((await runCommand(check, ['list', '-o', 'junit'])).code, 3);
  });
});

describe('Ctrl-C during the checks', () => {
  const yaml =
    'vip: 127.0.0.1:1\ntimeout: 30s\nchecks:\n  - check: tcp\n  - check: search-walk\n    name: a.example\n';

  /** Interrupts after the first check, while the second is waiting for a silent server. */
  async function interrupted(...words: readonly string[]): Promise<Ran> {
    const silent = createSocket('udp4');
    silent.bind(0, '127.0.0.1');
    await once(silent, 'listening');
    const path = join(directory, 'cut.yaml');
    writeFileSync(path, yaml.replace('127.0.0.1:1', `127.0.0.1:${silent.address().port}`));
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 300);
    const ran = await runCommand(check, ['run', '-f', path, ...words], {}, { signal: stop.signal });
    silent.close();
    return ran;
  }

  test('ends immediately, with the results so far', async () => {
    const { out, err, code } = await interrupted();
    assert.equal(code, 130);
    assert.match(out, /✕ failed +tcp/);
    assert.match(err, /^ndots check: ended before 1 of 2 checks could be done$/m);
  });

  test('still prints JSON, and CRITICAL for Nagios if a check has failed', async () => {
    const { out } = await interrupted('-o', 'json');
    assert.equal((JSON.parse(out) as Report).checks.length, 1);
    const nagios = await interrupted('--nagios');
    assert.equal(nagios.code, 2);
    assert.match(nagios.out, /^DNS CRITICAL/);
    const nothing = await interrupted('--nagios', '--only', 'search-walk');
    assert.equal(nothing.code, 3);
    assert.match(nothing.out, /^DNS UNKNOWN - ended before 1 of 1 check could be done/);
  });
});
