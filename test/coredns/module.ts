import { execFile, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

const release = 'v1.14.7';
const here = import.meta.dirname;
const run = promisify(execFile);
const huge = { maxBuffer: 1 << 28 };

/** The plugins whose tests are run, as directories in the module. */
const plugins: readonly string[] = `
  acl any auto autopath bind bufsize cache cancel chaos debug dns64 dnssec dnstap erratic errors etcd file forward grpc
  grpc_server header health hosts https k8s_external kubernetes loadbalance local log loop metadata metrics minimal
  multisocket nsid pprof proxyproto ready reload rewrite root secondary sign template timeouts tls trace transfer tsig
  view whoami
`
  .trim()
  .split(/\s+/);

/** The reason why CoreDNS's tests cannot run here, or null if they can. */
export function noModule(): string | null {
  return spawnSync('go', ['version']).status === 0 ? null : 'go is not installed';
}

/** The module's directory, or null if Go has not downloaded it yet. Downloads nothing. */
export function moduleDirectory(): string | null {
  const { status, stdout } = spawnSync('go', ['env', 'GOMODCACHE'], { encoding: 'utf8' });
  const directory = join(stdout?.trim() ?? '', `github.com/coredns/coredns@${release}`);
  return status === 0 && existsSync(directory) ? directory : null;
}

/** Makes a writable copy of the module. Go downloads it if necessary. */
export async function copyModule(directory: string): Promise<void> {
  const { stdout } = await run('go', [
    'mod',
    'download',
    '-json',
    `github.com/coredns/coredns@${release}`,
  ]);
  const { Dir } = JSON.parse(stdout) as { readonly Dir: string };
  cpSync(Dir, directory, { recursive: true });
  // Modules are read-only.
  await run('chmod', ['-R', 'u+w', directory]);
}

/** Runs the plugins' tests in the copy. They record what they do in `events`. */
export async function recordTests(copy: string, events: string): Promise<void> {
  const source = join(here, 'recorder/src');
  mkdirSync(join(copy, 'plugin/pkg/record'));
  cpSync(join(source, 'record.go'), join(copy, 'plugin/pkg/record/record.go'));
  for (const file of readdirSync(join(source, 'states')))
    cpSync(
      join(source, 'states', file),
      join(copy, 'plugin', basename(file, '.go'), 'state_record.go'),
    );
  await run('go', ['run', '.', copy, ...plugins], { ...huge, cwd: join(here, 'recorder') });
  mkdirSync(events, { recursive: true });
  // On a busy machine, some tests exceed their own time limits. Whatever they recorded before that still counts.
  await run(
    'go',
    ['test', '-vet=off', '-count=1', ...plugins.map((plugin) => `./plugin/${plugin}`)],
    { ...huge, cwd: copy, env: { ...process.env, RECORD_FOLDER: events } },
  ).catch((error: { readonly stdout: string }) => {
    const failed = error.stdout.split('\n').filter((line) => /^(FAIL|---)/.test(line));
    console.error(`tests that fail with CoreDNS itself: ${failed.join('; ')}`);
  });
}

export interface ServerTest {
  readonly name: string;
  readonly passed: boolean;
  /** True if any of its servers was ndots. The other servers use plugins that only CoreDNS has. */
  readonly ours: boolean;
  readonly output: string;
}

/** Builds the whole-server tests in a copy of the module. Their servers are processes of `program`. */
export async function serverTests(
  copy: string,
  program: string,
): Promise<{ readonly names: readonly string[]; run(name: string): Promise<ServerTest> }> {
  const directory = join(copy, 'test');
  for (const file of ['server.go', 'callers.go'])
    cpSync(join(here, 'integration', file), join(directory, file));
  const edit = (file: string, change: (text: string) => string): void => {
    const path = join(copy, file);
    writeFileSync(path, change(readFileSync(path, 'utf8')));
  };
  edit('test/server_test.go', (text) =>
    text.replace('*caddy.Instance', '*Instance').replace(/^.*coredns\/caddy"\n/m, ''),
  );
  // It only supports the binary metrics format.
  edit('plugin/test/scrape.go', (text) =>
    text
      .replace(
        'var parser expfmt.TextParser',
        'parser := expfmt.NewTextParser(model.UTF8Validation)',
      )
      .replace('import (', 'import (\n\t"github.com/prometheus/common/model"'),
  );
  const binary = join(copy, 'servers.test');
  await run('go', ['test', '-c', '-o', binary, './test'], { ...huge, cwd: copy });
  const env = { ...process.env, NDOTS: program };
  const { stdout } = await run(binary, ['-test.list', '.'], { cwd: directory, env });
  return {
    names: stdout.split('\n').filter((line) => line.startsWith('Test')),
    async run(name) {
      const words = ['-test.v', '-test.timeout', '60s', '-test.run', `^${name}$`];
      const done = await run(binary, words, { ...huge, cwd: directory, env }).then(
        (result) => ({ passed: true, ...result }),
        (error: { stdout: string; stderr: string }) => ({ passed: false, ...error }),
      );
      const output = `${done.stdout}${done.stderr}`;
      return { name, passed: done.passed, ours: /^SERVED \S+ ndots/m.test(output), output };
    },
  };
}
