import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { verbNames } from './verb-names.ts';

const program = [
  ...process.execArgv.filter((word) => !word.startsWith('--test')),
  'src/faces/cli/main.ts',
];

interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function ndots(...words: string[]): Ran {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...program, ...words], {
    encoding: 'utf8',
    input: '',
  });
  return { code: status, out: stdout, err: stderr };
}

/** Runs the script in a shell, which supports redirections that spawn does not. */
function shell(script: string, env: Readonly<Record<string, string>> = {}): Ran {
  const ndotsWords = [process.execPath, ...program].map((word) => `'${word}'`).join(' ');
  const { status, stdout, stderr } = spawnSync(
    'bash',
    ['-c', `N() { ${ndotsWords} "$@"; }; ${script}`],
    {
      encoding: 'utf8',
      env: { ...process.env, ...env },
    },
  );
  return { code: status, out: stdout, err: stderr };
}

test('COLUMNS sets the width of text, even through a pipe', () => {
  const widest = (columns: string): number =>
    Math.max(
      ...shell('N lint --help | cat', { COLUMNS: columns })
        .out.split('\n')
        .map((line) => line.length),
    );
  assert.ok(widest('60') <= 60);
  assert.ok(widest('100') > 90);
  for (const nonsense of ['', '0', '-5', 'wide']) assert.equal(widest(nonsense), widest('100'));
});

test('reports a runtime that is too old in one line', () => {
  const older = `Object.defineProperty(process.versions, 'node', { value: '22.1.0' })`;
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(older)}`, ...program, 'version'],
    { encoding: 'utf8' },
  );
  assert.equal(status, 2);
  assert.equal(stdout, '');
  assert.match(stderr, /^ndots needs Node 24 or later, but .*\n$/);
});

describe('the first word', () => {
  test('without one, the verbs are listed on standard error, as a usage error', () => {
    const { code, out, err } = ndots();
    assert.equal(code, 3);
    assert.equal(out, '');
    for (const verb of verbNames) assert.match(err, new RegExp(`^  ${verb} `, 'm'));
  });

  test('the list wraps on a narrow terminal', () => {
    const { out } = shell('script -qc "stty cols 40; $NDOTS --help" /dev/null', {
      NDOTS: [process.execPath, ...program].join(' '),
    });
    for (const line of out.split(/\r?\n/)) assert.ok(line.length <= 40, line);
    for (const verb of verbNames) assert.match(out, new RegExp(`^  ${verb} `, 'm'));
  });

  for (const words of [['--help'], ['-h'], ['help'], ['-help'], ['help', 'help']]) {
    test(`${words.join(' ')} lists the verbs`, () => {
      const { code, out } = ndots(...words);
      assert.equal(code, 0);
      assert.match(out, /^Verbs:$/m);
    });
  }

  test('every verb prints help, in three spellings', () => {
    for (const verb of verbNames) {
      const { out } = ndots('help', verb);
      for (const line of out.split('\n')) assert.ok(line.length <= 100, line);
      assert.match(out, new RegExp(`^ndots ${verb}: `));
      assert.equal(ndots(verb, '--help').out, out);
      assert.equal(ndots(verb, '-h').out, out);
    }
    assert.match(ndots('serve', '-help').out, /^ndots serve: /);
  });

  test('an unknown verb is a usage error, with a suggestion', () => {
    for (const words of [['trcae'], ['help', 'trcae']]) {
      const { code, out, err } = ndots(...words);
      assert.equal(code, 3);
      assert.equal(out, '');
      assert.match(err, /no verb 'trcae'. Did you mean 'trace'\?/);
    }
  });

  test('version has an output for programs', () => {
    const { code, out } = ndots('version', '-o', 'json');
    const { version, node, platform, udp } = JSON.parse(out) as Record<string, unknown>;
    assert.equal(code, 0);
    assert.match(String(version), /^\d+\.\d+\.\d+/);
    assert.equal(node, process.version);
    assert.equal(platform, `${process.platform}/${process.arch}`);
    assert.equal(typeof (udp as { batched: unknown }).batched, 'boolean');
  });

  test('completion reports an unknown shell and suggests the nearest one', () => {
    assert.match(ndots('completion', 'tcsh').err, /no completion for "tcsh"/);
    assert.match(ndots('completion', 'basch').err, /Did you mean bash\?/);
    assert.match(ndots('completion').err, /which shell\?\n {2}Known: bash, zsh, fish, kubectl/);
  });

  test('version and completion reject unknown words', () => {
    for (const words of [
      ['version', '-x'],
      ['completion', 'bash', 'zsh'],
      ['completion', 'tcsh'],
    ]) {
      const { code, err } = ndots(...words);
      assert.equal(code, 3, words.join(' '));
      assert.match(err, new RegExp(`^ndots ${words[0]}`));
    }
  });
});

describe('standard output', () => {
  test('a reader that closes the pipe ends the program quietly, as with dig', () => {
    // More output than a pipe can hold.
    const plan = 'N trace a --client all --plan --repeat 20 -o json';
    const { out, err } = shell(`{ ${plan}; echo "code $?" >&2; } | head -1`);
    assert.equal(out, '{\n');
    assert.equal(err, 'code 141\n');
  });

  test('reports a full disk in one line', (t) => {
    if (process.platform !== 'linux') return t.skip('no /dev/full');
    const { code, err } = shell('N --help > /dev/full');
    assert.equal(code, 2);
    assert.equal(err, 'ndots: cannot write to standard output: the disk is full\n');
  });

  test('that is closed is an error, like a full disk', () => {
    for (const words of ['version', '--help', 'lint --rules', 'trace a.example --plan']) {
      const { code, err } = shell(`bin/ndots ${words} >&-`);
      assert.equal(code, 2, words);
      assert.equal(err, 'ndots: cannot write to standard output: it is closed\n');
    }
  });

  test('that is closed does not matter if nothing is printed', () => {
    const { code, err } = shell('bin/ndots trcae >&-');
    assert.equal(code, 3);
    assert.match(err, /no verb 'trcae'/);
  });

  test('long text arrives completely through a slow pipe', () => {
    const { out } = shell('N trace a --client all --plan -o json | (sleep 0.3; cat)');
    assert.equal((JSON.parse(out) as { items: unknown[] }).items.length, 20);
  });
});

describe('serve refuses', () => {
  const cases: [string, string[], number, RegExp][] = [
    ['surplus words', ['surplus'], 3, /extra command line arguments: \[surplus\]/],
    [
      'a port that is none',
      ['-dns.port', '99999'],
      3,
      /-dns\.port takes a whole number from 0 to 65535/,
    ],
    ['no threads', ['-workers', '0'], 3, /-workers takes a whole number from 1 to 128, not "0"/],
    ['more threads than fit', ['-workers', '9999'], 3, /-workers takes a whole number/],
    [
      'a Corefile that is not there',
      ['-conf', '/nowhere'],
      1,
      /^loading Caddyfile via flag: open \/nowhere: no such file or directory \[corefile-unreadable\]\n/,
    ],
    [
      'a directory',
      ['-conf', 'src'],
      1,
      /open src: is a directory \[corefile-unreadable\]\n[^]*-conf src\/Corefile/,
    ],
  ];
  for (const [what, words, code, text] of cases) {
    test(`${what}: exit code ${code}`, () => {
      const ran = ndots('serve', ...words);
      assert.equal(ran.code, code);
      assert.match(ran.err, text);
    });
  }
});

describe('the encoding of a Corefile', () => {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-encoding-'));
  after(() => rmSync(directory, { recursive: true, force: true }));
  /** Comments in KOI8-R or with invalid bytes. CoreDNS accepts both. */
  const comments = {
    'KOI8-R': '# \xcb\xcf\xcd\xcd\xc5\xce\xd4\xc1\xd2\xc9\xca\n',
    GBK: '# \xd7\xa2\xca\xcd\xd7\xa2\xca\xcd\n',
    zeros: '# a\0b\0c\0\n',
  };
  const written = (name: string, bytes: Buffer): string => {
    writeFileSync(join(directory, name), bytes);
    return join(directory, name);
  };

  for (const [name, comment] of Object.entries(comments))
    test(`accepts a comment with ${name}, as CoreDNS does`, async () => {
      const text = `${comment}.:0 {\n whoami\n}\n`;
      const conf = written(name, Buffer.from(text, 'latin1'));
      const served = spawn(process.execPath, [...program, 'serve', '-conf', conf]);
      let told = '';
      served.stderr.on('data', (part: Buffer) => (told += part.toString()));
      const first = await Promise.race([once(served.stdout, 'data'), once(served, 'exit')]);
      served.kill();
      assert.match(String(first[0]), /^\.:/, told);
    });

  test('reports an error regardless of the encoding of comments', () => {
    const text = `${comments['KOI8-R']}. {\n nosuch\n}\n`;
    const ran = ndots('serve', '-conf', written('mistake', Buffer.from(text, 'latin1')));
    assert.match(ran.err, /Unknown directive 'nosuch'/);
  });

  test('reports UTF-16 as binary', () => {
    const conf = written('utf16', Buffer.from('\ufeff. {\n whoami\n}\n', 'utf16le'));
    const ran = ndots('serve', '-conf', conf);
    assert.equal(ran.code, 1);
    assert.match(ran.err, /utf16 is not a Corefile: it is binary \[corefile-unreadable\]\n/);
  });
});

describe('reports binary files and endless lines in a few words:', () => {
  const directory = mkdtempSync(join(tmpdir(), 'ndots-main-'));
  after(() => rmSync(directory, { recursive: true, force: true }));
  const binary = join(directory, 'binary');
  writeFileSync(binary, randomBytes(200_000));
  const long = join(directory, 'long');
  writeFileSync(long, 'x'.repeat(900_000));

  for (const words of [
    ['check', 'run', '-f'],
    ['lab', 'run', '-f'],
    ['lab', 'up', '-f'],
    ['query', '@127.0.0.1', '-f'],
    ['trace', 'a.example', '--answers'],
    ['lint'],
    ['plan'],
    ['doctor'],
    ['serve', '-conf'],
  ])
    test(words.join(' '), () => {
      for (const file of [binary, long]) {
        const { code, out, err } = ndots(...words, file);
        assert.ok(out.length + err.length < 5000, `${file}: ${out.length} ${err.length}`);
        assert.notEqual(code, null);
        assert.doesNotMatch(err, /\n +at .*:\d+:\d+\)/);
        if (file === binary && /^(?:check|lab)$/.test(words[0]!))
          assert.match(err, /\/binary is not YAML: it is binary/);
      }
    });

  for (const words of [
    ['trace'],
    ['query', '@127.0.0.1'],
    ['query', '--type'],
    ['lint', '--explain'],
    ['check', 'run', '--vip'],
    ['serve', '-conf'],
    ['help'],
    [],
  ])
    test(`a word of 100 000 characters behind ${['ndots', ...words].join(' ')}`, () => {
      const { code, out, err } = ndots(...words, 'y'.repeat(100_000));
      assert.ok(out.length + err.length < 5000, `${out.length} ${err.length}`);
      assert.ok(code !== 0 && code !== null, String(code));
    });
});

describe('each verb explains a missing file or server:', () => {
  for (const words of [
    ['bench', '127.0.0.1', '--names', '/nowhere'],
    ['bench', '127.0.0.1', '--names', '/'],
    ['check', 'run', '-f', '/'],
    ['check', 'serve', '-f', '/nowhere'],
    ['capture', '/nowhere'],
    ['diff', '/nowhere', '/'],
    ['cache', 'explain', 'a.example', '--server', '127.0.0.1:2'],
    ['size', '--metrics', 'http://127.0.0.1:2/metrics', '--for', '1'],
    ['size', '--params', '/nowhere', '--nodes', '3', '--cores', '3'],
    ['trace', 'a.example', '--resolv-conf', '/'],
    ['etcd', 'get', 'a.example', '--endpoints', 'http://127.0.0.1:2'],
    ['doctor', 'cluster', '--kubeconfig', '/nowhere'],
  ]) {
    test(words.join(' '), () => {
      const { code, err } = ndots(...words);
      assert.equal(code, 2, err);
      assert.match(err, /no such file or directory|it is a directory|nothing listens there/);
      assert.doesNotMatch(err, /\bE[A-Z]{4,}\b|ERR_|\n +at /);
    });
  }
});
