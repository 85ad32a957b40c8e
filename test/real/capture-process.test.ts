/**
 * Compares the output of `ndots capture --process` with the truth, because each name includes the process that looks it
 * up.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import type { ExchangeDocument } from '../../src/faces/cli/capture/capture-rows.ts';
import { mountedCgroups } from '../../src/tools/capture/process/cgroup-tree.ts';
import type { Child } from '../kit/child.ts';
import { CONTAINER, noProcessWorld, ProcessWorld, SERVER, SERVICE } from '../kit/process-world.ts';
import { noFilters, under } from '../kit/seccomp.ts';
import { readTruth } from '../kit/process-truth.ts';

const missing = noProcessWorld();
const main = 'src/faces/cli/main.ts';

/** The capabilities that the DaemonSet in deploy/capture gives to its container. */
const capabilities = ((): readonly string[] => {
  const [, daemonSet] = parseAllDocuments(readFileSync('deploy/capture/daemonset.yaml', 'utf8'));
  const path = ['spec', 'template', 'spec', 'containers', 0, 'securityContext', 'capabilities'];
  return (daemonSet!.getIn([...path, 'add']) as { toJSON(): string[] }).toJSON();
})();

/** Runs a program with only these capabilities. */
function bounded(given: readonly string[]): readonly string[] {
  const set = ['-all', ...given.map((each) => `+${each.toLowerCase()}`)].join(',');
  return ['setpriv', '--inh-caps', '-all', '--bounding-set', set];
}

/** Runs a program that cannot see cgroup v2. */
function withoutCgroups(): readonly string[] {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8');
  return ['unshare', '-m', 'sh', '-c', `umount -l ${mountedCgroups(mounts)} && exec "$@"`, 'sh'];
}

/** Runs a program whose cgroup v2 is mounted from its own cgroup downwards, like in a pod without the node's mount. */
function inOwnCgroup(group: string): readonly string[] {
  const mounted = mountedCgroups(readFileSync('/proc/self/mountinfo', 'utf8'))!;
  const enter = `echo $$ > ${group}/cgroup.procs && exec unshare -mC "$@"`;
  const mount = `umount -l ${mounted} && mount -t cgroup2 cgroup2 ${mounted} && exec "$@"`;
  return ['sh', '-c', enter, 'sh', 'sh', '-c', mount, 'sh'];
}

/** Runs a program that sees only one network namespace's name, just as a pod cannot see those on the node. */
function withoutNames(namespace: string): readonly string[] {
  const script = `cd "$(mktemp -d)" && touch kept && mount --bind /run/netns/${namespace} kept
    mount -t tmpfs tmpfs /run/netns && touch /run/netns/${namespace}
    mount --bind kept /run/netns/${namespace} && exec "$@"`;
  return ['unshare', '-m', 'sh', '-ec', script, 'sh'];
}

function documentsIn(output: string): readonly ExchangeDocument[] {
  return output
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as ExchangeDocument);
}
const COUNT = 18;

describe('the process behind a query', { skip: missing ?? false }, () => {
  let world: ProcessWorld;
  before(async () => {
    world = new ProcessWorld();
    await world.serve(40);
  });
  after(() => world.stop());

  /** The output of a capture during the work. */
  const during = async (
    words: readonly string[],
    work: () => Promise<unknown>,
  ): Promise<string> => {
    const child = await world.capture('--process', ...words);
    await work();
    return ended(child);
  };
  const ended = async (child: Child): Promise<string> => {
    await new Promise((done) => setTimeout(done, 1500));
    child.signal('SIGINT');
    await child.exitCode;
    return child.output();
  };

  for (const [tier, words] of [
    ['sockets', []],
    ['programs in the kernel', ['--bpf']],
  ] as const)
    test(`is found by ${tier}, with its container, and never a wrong one`, async () => {
      const output = await during([...words, '-o', 'json'], async () => {
        for (const kind of ['getent', 'musl', 'curl'] as const)
          await world.lookups(kind, COUNT / 3);
      });
      const truth = readTruth(output, CONTAINER.client);
      assert.deepEqual([truth.wrong, truth.wrongContainer], [[], []]);
      assert.equal(truth.lookups, COUNT, output);
      // On a busy machine, the search for some sockets starts too late.
      const least = words.length === 0 ? COUNT / 2 : COUNT;
      assert.ok(
        truth.attributed >= least,
        `${truth.attributed} of ${COUNT}\n${output.slice(-500)}`,
      );
    });

  test('programs that use the same port one after another are not confused, even if each sends many queries', async () => {
    // A socket that sends query after query is looked up only every few milliseconds.
    const script = `for round in 1 2 3 4 5 6 7 8; do python3 -c '
import os, socket, struct, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("", 41000))
s.connect(("${SERVER}", 53))
for i in range(60):
    name = b"".join(struct.pack("B", len(each)) + each for each in
        (b"p%d" % os.getpid(), b"n%d" % i, b"truth", b"test"))
    s.send(struct.pack(">6H", i, 256, 1, 0, 0, 0) + name + b"\\0\\0\\1\\0\\1")
    time.sleep(0.002)
s.settimeout(2)
for i in range(60): s.recv(512)
'; done`;
    const output = await during(['-o', 'json'], () => world.run(script));
    const truth = readTruth(output, CONTAINER.client);
    assert.deepEqual([truth.wrong, truth.wrongContainer], [[], []]);
    assert.equal(truth.lookups, 8 * 60, output.slice(-500));
    // On a busy machine, some lookups come too late.
    assert.ok(truth.attributed >= 4 * 60, `${truth.attributed}\n${output.slice(-500)}`);
  });

  test('a process that inherits a socket, as a daemon does, is named from then on', async () => {
    // The substitution ends when the child closes its output.
    const script = `x="$(python3 -c '
import os, socket, struct, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("${SERVER}", 53))
s.settimeout(2)
def ask(i):
    name = b"".join(struct.pack("B", len(each)) + each for each in
        (b"p%d" % os.getpid(), b"n%d" % i, b"truth", b"test"))
    s.send(struct.pack(">6H", i, 256, 1, 0, 0, 0) + name + b"\\0\\0\\1\\0\\1")
    s.recv(512)
ask(0)
if os.fork() > 0: os._exit(0)
time.sleep(0.2)
for i in range(1, 20):
    ask(i)
    time.sleep(0.06)
')"`;
    const output = await during(['-o', 'json'], () => world.run(script));
    const truth = readTruth(output, CONTAINER.client);
    // The child's first query may come from either of them.
    assert.ok(truth.wrong.length <= 1, truth.wrong.join(' '));
    assert.ok(truth.lookups >= 10 && truth.attributed >= 5, output.slice(-500));
  });

  test('-o flow shows the story of curl: client, server, translation, and the process that accepted', async () => {
    const output = await during(['--bpf', '-o', 'flow'], () => world.lookups('curl', 2));
    const client = CONTAINER.client.slice(0, 12);
    const server = CONTAINER.server.slice(0, 12);
    assert.match(output, new RegExp(`asked  by ${client}/curl\\[\\d+\\]  curl -s -m 2 http://p`));
    assert.match(output, /started by sh\[\d+\]/);
    assert.match(output, new RegExp(`answered  by ${server}/\\S+\\[\\d+\\] at ${SERVER}:53`));
    assert.match(
      output,
      new RegExp(`connects to ${SERVICE}:80 ⇒ ${SERVER}:80  accepted by ${server}/\\S+\\[\\d+\\]`),
    );
    assert.match(output, /process known for 4 of 4 queries \(100 %\)/);
  });

  test('a filter selects the queries of one program', async () => {
    const words = ['--bpf', '-o', 'json', '--command', 'getent'];
    const output = await during(words, async () => {
      await world.lookups('curl', 1);
      await world.lookups('getent', 2);
    });
    const documents = documentsIn(output);
    assert.equal(new Set(documents.map(({ question }) => question.name)).size, 2);
    for (const { asker } of documents) assert.equal(asker!.processes[0]!.command, 'getent');
  });

  test('all processes that hold a socket are listed', async () => {
    // The parent opens the socket and sends. Its child also has the socket open but sends nothing.
    const script = `python3 -c '
import os, socket, struct, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("${SERVER}", 53))
child = os.fork()
if child == 0:
    time.sleep(1); os._exit(0)
s.send(struct.pack(">6H", 7, 256, 1, 0, 0, 0) + b"\\5twice\\4test\\0\\0\\1\\0\\1")
s.recv(512)
print(os.getpid(), child)
os.wait()'`;
    const said: string[] = [];
    const output = await during(['-o', 'json'], async () => {
      for (let round = 0; round < 4; round++) said.push((await world.run(script)).trim());
    });
    // On a busy machine, the search for some sockets starts too late.
    const found = documentsIn(output).filter(
      ({ question, asker }) => question.name === 'twice.test.' && asker!.why === null,
    );
    assert.ok(found.length > 0, output);
    const inOrder = (pids: readonly number[]): string =>
      pids.toSorted((one, other) => one - other).join(' ');
    for (const { asker } of found)
      assert.ok(said.includes(inOrder(asker!.processes.map(({ pid }) => pid))), said.join(', '));
  });

  test('packets in a pcapng file have the process as a comment', async (t) => {
    if (spawnSync('tshark', ['--version']).error !== undefined) return t.skip('needs tshark');
    const directory = mkdtempSync(join(tmpdir(), 'ndots-comments-'));
    t.after(() => rmSync(directory, { recursive: true }));
    const file = join(directory, 'out.pcapng');
    await during(['--bpf', '-o', 'none', '-w', file], () => world.lookups('getent', 1));
    const { stdout } = spawnSync(
      'tshark',
      ['-r', file, '-T', 'fields', '-e', 'frame.comment', '-e', 'dns.qry.name'],
      { encoding: 'utf8' },
    );
    const [first = ''] = stdout.split('\n');
    const [, pid, name] =
      /asked by \w+\/getent\[(\d+)\].*\tp(\d+)\.n0\.truth\.test/.exec(first) ?? [];
    assert.ok(pid !== undefined && pid === name, stdout);
  });

  test('the DaemonSet has exactly the capabilities and system calls that it needs', async (t) => {
    if (noFilters() !== null) return t.skip(noFilters()!);
    const child = await world.captureBy(
      [...bounded(capabilities), ...under('capture', process.execPath, resolve(main))],
      ...['--process', '--bpf', '-o', 'json'],
    );
    await world.lookups('getent', 2);
    const output = await ended(child);
    const truth = readTruth(output, CONTAINER.client);
    assert.deepEqual([truth.lookups, truth.attributed, truth.wrong], [2, 2, []], output);
    for (const { asker, answerer } of documentsIn(output)) {
      assert.match(asker!.processes[0]!.commandLine, /^getent ahosts/);
      assert.equal(answerer!.container!.id, CONTAINER.server);
    }
  });

  /** The queries of programs that another user runs, seen by a capture with these capabilities. */
  async function ofOtherUser(given: readonly string[]): Promise<readonly ExchangeDocument[]> {
    const child = await world.captureBy(
      [...bounded(given), process.execPath, resolve(main)],
      ...['--process', '-o', 'json'],
    );
    const user = 'setpriv --reuid 65532 --regid 65532 --clear-groups';
    await world.run(`for i in 1 2 3; do ${user} getent ahosts user-$i.test; done; true`);
    const found = documentsIn(await ended(child)).filter(({ question }) =>
      question.name.startsWith('user-'),
    );
    assert.ok(found.length > 0);
    return found;
  }

  test("the DaemonSet finds the processes of other users, such as CoreDNS's", async () => {
    // On a busy machine, the search for some sockets starts too late.
    const found = (await ofOtherUser(capabilities)).filter(({ asker }) => asker!.why !== 'closed');
    assert.ok(found.length > 0);
    for (const { asker } of found) {
      assert.equal(asker!.why, null);
      assert.equal(asker!.uid, 65532);
      assert.equal(asker!.processes[0]!.command, 'getent');
    }
  });

  test('without DAC_READ_SEARCH, processes of other users are reported as not permitted', async () => {
    const rest = capabilities.filter((each) => each !== 'DAC_READ_SEARCH');
    for (const { asker } of await ofOtherUser(rest))
      assert.match(asker!.why ?? 'known', /refused|closed/);
  });

  test('without SYS_PTRACE the container is known, and the process is reported as not permitted', async () => {
    const rest = capabilities.filter((each) => each !== 'SYS_PTRACE');
    const child = await world.captureBy(
      [...bounded(rest), process.execPath, resolve(main)],
      ...['--process', '-o', 'json'],
    );
    await world.lookups('getent', 3);
    const output = await ended(child);
    const found = documentsIn(output).filter(({ asker }) => asker!.container !== null);
    assert.ok(found.length > 0, output);
    for (const { asker } of found) {
      assert.equal(asker!.container!.id, CONTAINER.client);
      assert.deepEqual([asker!.processes, asker!.why], [[], 'refused']);
    }
  });

  test('in a pod without SYS_PTRACE, namespaces of other pods are not found, and queries are reported as not permitted', async () => {
    const rest = capabilities.filter((each) => each !== 'SYS_PTRACE');
    const child = await world.captureBy(
      [...withoutNames(world.node), ...bounded(rest), process.execPath, resolve(main)],
      ...['--process', '-o', 'json'],
    );
    await world.lookups('getent', 3);
    const found = documentsIn(await ended(child)).filter(({ question }) =>
      question.name.endsWith('.truth.test.'),
    );
    assert.ok(found.length > 0);
    for (const { asker } of found)
      assert.deepEqual([asker!.container, asker!.processes, asker!.why], [null, [], 'refused']);
  });

  test('without NET_ADMIN the translation is not known', async () => {
    const rest = capabilities.filter((each) => each !== 'NET_ADMIN');
    const child = await world.captureBy(
      [...bounded(rest), process.execPath, resolve(main)],
      ...['--process', '--bpf', '-o', 'flow'],
    );
    await world.lookups('curl', 1);
    const output = await ended(child);
    assert.match(output, new RegExp(`connects to ${SERVICE}:80\n`));
  });

  test('without cgroup v2 the processes of the namespace are searched, and have their container', async () => {
    const child = await world.captureBy(
      [...withoutCgroups(), resolve('bin/ndots')],
      ...['--process', '-o', 'json'],
    );
    await world.lookups('getent', 3);
    const output = await ended(child);
    assert.match(output, /no cgroup v2 here/);
    const truth = readTruth(output, CONTAINER.client);
    assert.deepEqual([truth.lookups, truth.wrong, truth.wrongContainer], [3, [], []]);
    const known = documentsIn(output).filter(({ asker }) => asker!.why === null);
    for (const { asker } of known) assert.equal(asker!.container!.id, CONTAINER.client);
  });

  test('--bpf reports a cgroup mount that does not include other pods', async () => {
    const note = /--bpf sees only processes below the cgroup that is mounted here/;
    const words = ['--process', '--bpf', '-o', 'json'];
    const mounted = mountedCgroups(readFileSync('/proc/self/mountinfo', 'utf8'))!;
    const group = mkdtempSync(join(mounted, 'ndots-own-'));
    const own = await world.captureBy([...inOwnCgroup(group), resolve('bin/ndots')], ...words);
    assert.match(await ended(own), note);
    rmdirSync(group);
    assert.doesNotMatch(await during(['--bpf', '-o', 'json'], async () => undefined), note);
  });

  test('namespaces that disappear and appear do not end the capture', async () => {
    const other = `ndots-px-${process.pid}`;
    const output = await during(['-o', 'json'], async () => {
      for (let round = 0; round < 3; round++) {
        spawnSync('ip', ['netns', 'add', other]);
        await world.lookups('getent', 1);
        await new Promise((done) => setTimeout(done, 700));
        spawnSync('ip', ['netns', 'delete', other]);
      }
    });
    assert.equal(readTruth(output, CONTAINER.client).lookups, 3);
  });
});

describe('without permission to look up processes', { skip: missing ?? false }, () => {
  for (const [capability, message] of [
    ['NET_RAW', /cannot capture packets/],
    ['SYS_ADMIN', /cannot enter network namespaces: permission denied[\s\S]*CAP_SYS_ADMIN/],
  ] as const)
    test(`without ${capability} the message names the missing one`, () => {
      const [program = '', ...words] = bounded(capabilities.filter((each) => each !== capability));
      const verb = [process.execPath, main, 'capture', '-i', 'lo', '--for', '100ms'];
      const { stderr, status } = spawnSync(program, [...words, ...verb, '--process', '--bpf'], {
        encoding: 'utf8',
        timeout: 60_000,
      });
      assert.match(stderr, message);
      assert.equal(status, 2);
    });

  test('a network namespace that does not exist is named, and the way to list them', () => {
    const given = [process.execPath, main, 'capture', '--process', '--for', '100ms'];
    for (const [words, path] of [
      [['--netns', 'ndots-nowhere'], '/var/run/netns/ndots-nowhere'],
      [['--pid', '4194304'], '/proc/4194304/ns/net'],
    ] as const) {
      const { stderr, status } = spawnSync(given[0]!, [...given.slice(1), ...words], {
        encoding: 'utf8',
        timeout: 60_000,
      });
      assert.match(stderr, new RegExp(`there is no network namespace ${path} .no-namespace`));
      assert.match(stderr, /ip netns lists the named ones/);
      assert.equal(status, 2);
    }
  });

  test('where bpf is forbidden the message names the option to omit', (t) => {
    if (noFilters() !== null) return t.skip(noFilters()!);
    const directory = mkdtempSync(join(tmpdir(), 'ndots-no-bpf-'));
    t.after(() => rmSync(directory, { recursive: true }));
    const profile = join(directory, 'narrow.json');
    const text = readFileSync('deploy/seccomp/capture.json', 'utf8');
    writeFileSync(profile, text.replace(/"bpf",/, ''));
    const [program = '', script = '', , ...words] = under('capture', process.execPath, main);
    const verb = ['capture', '-i', 'lo', '--for', '100ms', '--process', '--bpf'];
    const { stderr, status } = spawnSync(program, [script, profile, ...words, ...verb], {
      encoding: 'utf8',
      timeout: 60_000,
    });
    assert.match(stderr, /cannot load BPF programs into the kernel: bpf map: ENOSYS/);
    assert.match(stderr, /seccomp forbids it[\s\S]*Omit --bpf/);
    assert.equal(status, 2);
  });

  test('--bpf reports that it needs cgroup v2, and the process ids of the machine', () => {
    const verb = [process.execPath, main, 'capture', '-i', 'lo', '--for', '100ms'];
    const apart = ['unshare', '--pid', '--fork', '--mount-proc'];
    for (const [by, message] of [
      [withoutCgroups(), /--bpf needs cgroup v2, which is not mounted here/],
      [apart, /--bpf needs the host’s PID namespace[\s\S]*hostPID: true/],
    ] as const) {
      const [program, ...words] = [...by, ...verb, '--process', '--bpf'];
      const { stderr, status } = spawnSync(program, words, { encoding: 'utf8', timeout: 60_000 });
      assert.match(stderr, message);
      assert.equal(status, 2);
    }
  });

  test('a namespace without addresses is not an obstacle', () => {
    const verb = [process.execPath, main, 'capture', '-i', 'lo', '--for', '100ms', '--process'];
    const { stderr } = spawnSync('unshare', ['-n', ...verb], { encoding: 'utf8', timeout: 60_000 });
    assert.match(stderr, /no queries, so no processes/);
  });

  test('a file has no sockets: usage error', () => {
    const { status, stderr } = spawnSync(
      process.execPath,
      [main, 'capture', 'some.pcap', '--process'],
      { encoding: 'utf8' },
    );
    assert.equal(status, 3);
    assert.match(stderr, /--process needs a live capture/);
  });
});
