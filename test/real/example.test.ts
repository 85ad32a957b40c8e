import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, describe, test, type TestContext } from 'node:test';
import { printed, start, type Child } from '../kit/child.ts';
import { readDig } from '../kit/dig.ts';
import { freePorts } from '../kit/free-ports.ts';

/**
 * A new user's first commands: the lines that `npm start` prints, and those in the README, in `examples/` and in
 * --help.
 */

const program = resolve('bin/ndots');
const skip = spawnSync('dig', ['-v']).status === 0 ? false : 'dig is not installed';

async function startExample(t: Pick<TestContext, 'after'>, port: number): Promise<Child> {
  const child = start('ndots', [program, 'serve', '--example', '-dns.port', String(port)]);
  t.after(() => child.stop());
  await printed(child, /Press Ctrl-C to stop/, 20_000);
  return child;
}

/** The port that readers see in the text. Here, `npm start` was given a different one. */
const atPort = (line: string, port: number): string =>
  line
    .replaceAll('npx ndots', program)
    .replace(/^ndots /, `${program} `)
    .replaceAll(/(-p |127\.0\.0\.1:)1053\b/g, `$1${port}`);

function run(line: string): { readonly code: number | null; readonly text: string } {
  const { status, stdout, stderr } = spawnSync('sh', ['-c', line], {
    encoding: 'utf8',
    timeout: 20_000,
  });
  return { code: status, text: stdout + stderr };
}

/** The lines in the `sh` blocks of a text, with continuation lines joined and comments removed. */
function shellLines(page: string): readonly string[] {
  const text = readFileSync(page, 'utf8');
  return [...text.matchAll(/^```sh\n([^]*?)^```$/gm)].flatMap(([, block]) =>
    block!
      .replaceAll(/\\\n\s*/g, '')
      .split('\n')
      .map((line) => line.replace(/\s+#.*$/, '').trim())
      .filter((line) => line !== ''),
  );
}

const alone = ['-rn', 'sh', '-c', 'ip link set lo up && exec "$0" "$@"'];

test(
  'the example cluster reports no problems without a network',
  {
    skip:
      spawnSync('unshare', [...alone, 'true']).status === 0
        ? false
        : 'no network can be taken away',
  },
  async (t) => {
    const child = start('ndots', ['unshare', ...alone, program, 'serve', '--example']);
    t.after(() => child.stop());
    await printed(child, /Press Ctrl-C to stop/, 20_000);
    // By then, startup checks have finished.
    await new Promise((resolve) => setTimeout(resolve, 5000));
    assert.doesNotMatch(child.output(), /ERROR|WARNING/);
  },
);

describe('the example cluster', { skip }, () => {
  let port: number;
  let child: Child;
  const ends: (() => unknown)[] = [];

  before(async () => {
    [port] = await freePorts(1);
    child = await startExample({ after: (end: unknown) => ends.push(end as () => unknown) }, port);
  });
  after(async () => {
    for (const end of ends) await end();
  });

  test('each command that it suggests has an answer', () => {
    const lines = child
      .output()
      .split('\n')
      .filter((line) => line.startsWith('  '));
    assert.equal(lines.length, 3);
    for (const line of lines) {
      const { code, text } = run(line);
      assert.equal(code, 0, line);
      // Only records are printed, unless dig has to omit sections.
      const short = / \+(short|noall)\b/.test(line);
      assert.notEqual(short ? text.trim() : readDig(text).answer.join('\n'), '', line);
    }
  });

  test('each address that it prints answers', async () => {
    const urls = child.output().match(/http:\S+/g) ?? [];
    assert.equal(urls.length, 3);
    for (const url of urls) assert.equal((await fetch(url)).status, 200, url);
  });

  test('each query in the comments of its objects has the answer beside it', () => {
    const lines = globSync('examples/**/*.yaml').flatMap((file) =>
      readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line.startsWith('#   dig')),
    );
    assert.ok(lines.length >= 8);
    for (const line of lines) {
      const [asked = '', wanted] = line.slice(4).split(' → ');
      const { answer } = readDig(run(atPort(asked, port)).text);
      assert.ok(answer.length > 0, asked);
      if (wanted !== undefined && /^[0-9]|\.$/.test(wanted.trim()))
        assert.ok(
          answer.some((record) => record.endsWith(` ${wanted.trim()}`)),
          line,
        );
    }
  });

  test('each line of the README and the tour behaves as the page says', () => {
    /** A line's expected output, by how the line starts, and its exit code if not 0; null: another test runs it. */
    const wanted: readonly (readonly [start: string, prints: RegExp | null, code?: number])[] = [
      ['npm ci && npm start', null],
      ['npm ci && npm test', null],
      // Needs docker and a cluster, so it is tested in test/real/image.test.ts, deploy.cluster.test.ts and
      // helm-install.cluster.test.ts.
      ['docker build ', null],
      ['docker push ', null],
      ['kubectl ', null],
      ['helm install ', null],
      // Changes the network, so lab.test.ts plays it in namespaces.
      ['sudo npx ndots lab run ', null],
      ['npx ndots diff ', /^ {2}\+ {3}shop\.test\. 5 A 10\.3\.0\.116$/m, 1],
      // Captures this machine's traffic, so it is tested in test/real/capture.test.ts.
      ['sudo npx ndots capture -i any ', null],
      ['sudo npx ndots doctor -i any ', null],
      // Tested in top-live.test.ts and console-page.test.ts.
      ['sudo npx ndots top', null],
      ['sudo npx ndots console', null],
      ['npx ndots capture examples/', /^10\.244\.1\.4 +18 +7 /m],
      ['npx ndots doctor examples/', /^✕ ND3011 /m, 1],
      // Needs a cluster, so it is tested in src/faces/cli/doctor/doctor-cluster.test.ts.
      ['npx ndots doctor cluster', null],
      ['npx ndots trace api.twilio.com ', /^✓ found 192\.0\.2\.1\d .* 10 queries$[^]*→ 2 queries/m],
      ['npx ndots trace backend.critical-app ', /^✓ found 10\.3\.0\.116 /m],
      ['npx ndots plan ', /^→ ndots:2 breaks no name that was looked up/m, 1],
      ['npx ndots lint ', /^1 file: 0 errors/m],
      ['npx ndots query ', /^10\.3\.0\.116$/m],
    ];
    const lines = ['README.md', 'docs/tour.md'].flatMap(shellLines);
    for (const line of lines) {
      const row = wanted.find(([begins]) => line.startsWith(begins));
      assert.ok(row, `no test knows what this line prints: ${line}`);
      if (row[1] === null) continue;
      const { code, text } = run(atPort(line, port));
      assert.match(text, row[1], line);
      assert.equal(code, row[2] ?? 0, line);
    }
    for (const [begins] of wanted)
      assert.ok(
        lines.some((line) => line.startsWith(begins)),
        `in neither page: ${begins}`,
      );
  });

  test('each file in the commands of the README, the examples and the cluster page is committed', (t) => {
    const { status, stdout } = spawnSync('git', ['ls-files', '-z'], { encoding: 'utf8' });
    if (status !== 0) return t.skip('this is no checkout of git');
    const committed = stdout.split('\0');
    const words = [
      'README.md',
      'docs/tour.md',
      'examples/README.md',
      'examples/captures/README.md',
      'docs/try-in-a-cluster.md',
    ].flatMap((page) => shellLines(page).flatMap((line) => line.replace(/#.*/, '').split(/\s+/)));
    const paths = words.filter((word) => /^(?:examples|deploy(?!\/web$)|docs|test)\//.test(word));
    assert.ok(paths.length >= 12, paths.join());
    for (const path of paths)
      assert.ok(
        committed.some((file) => file === path || file.startsWith(`${path.replace(/\/$/, '')}/`)),
        path,
      );
  });

  test('each line of --help can be run', () => {
    const { text } = run(`${program} --help`);
    const lines = [...text.matchAll(/^ {2}(ndots .*?)(?: {2,}|$)/gm)].map(([, line]) => line!);
    assert.ok(lines.length >= 4);
    for (const line of lines) {
      // A server that exits early was unable to start; otherwise, `timeout` stops it.
      const filled = line
        .replace('serve --example', `serve --example -dns.port 0`)
        .replace('-conf Corefile', '-conf examples/Corefile -version')
        .replace('@10.96.0.10', `@127.0.0.1:${port}`)
        .replace('NAME', 'backend.critical-app.svc.cluster.local')
        .replace('trace redis.cache', 'trace redis.cache --plan');
      const { code, text: printedText } = run(
        `timeout --preserve-status 4 ${atPort(filled, port)}`,
      );
      assert.notEqual(code, 3, `${filled}\n${printedText}`);
      if (filled.includes('serve') || filled.includes('query'))
        assert.equal(code, 0, `${filled}\n${printedText}`);
    }
  });

  test('a second start names the process that holds the port', () => {
    const { code, text } = run(`${program} serve --example -dns.port ${port}`);
    assert.equal(code, 1);
    assert.match(text, /listen udp 127\.0\.0\.1:\d+: address already in use/);
    assert.match(text, new RegExp(`"ndots serve --example [^"]*" \\(process ${child.pid}\\)`));
  });
});

describe('the ports of the example', () => {
  test('are others if they are in use, and are printed', async (t) => {
    for (const port of [8080, 8181, 9153]) {
      const taken = createServer();
      t.after(() => taken.close());
      await new Promise<void>((done) => {
        // Another program on this machine may already use it, which is just as good.
        taken.once('error', () => done());
        taken.listen(port, '127.0.0.1', done);
      });
    }
    const [port] = await freePorts(1);
    const child = await startExample(t, port);
    const urls = child.output().match(/http:\S+/g) ?? [];
    assert.equal(urls.length, 3);
    for (const url of urls) {
      assert.doesNotMatch(url, /:(8080|8181|9153)\//);
      assert.equal((await fetch(url)).status, 200, url);
    }
  });
});

test(
  'the address of a service that changes in the directory of the example is in the next answer',
  { skip },
  async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-example-'));
    t.after(() => rmSync(directory, { recursive: true }));
    cpSync('examples', directory, { recursive: true });
    const [port, ...http] = await freePorts(4);
    const corefile = join(directory, 'Corefile');
    writeFileSync(
      corefile,
      [8080, 8181, 9153].reduce(
        (text, from, nth) => text.replace(`:${from}`, `:${http[nth]}`),
        readFileSync(corefile, 'utf8').replace(':1053', `:${port}`),
      ),
    );
    const child = start('ndots', [program, 'serve', '-conf', corefile]);
    t.after(() => child.stop());
    await printed(child, /ndots-\d/, 20_000);
    const ask = (): string =>
      run(`dig @127.0.0.1 -p ${port} backend.critical-app.svc.cluster.local +short`).text.trim();
    assert.equal(ask(), '10.3.0.116');
    const file = join(directory, 'cluster/critical-app.yaml');
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll('10.3.0.116', '10.3.0.117'));
    const end = performance.now() + 60_000;
    while (ask() !== '10.3.0.117')
      assert.ok(performance.now() < end, 'the old answer is still there after a minute');
  },
);
