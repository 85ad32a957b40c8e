import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { doctor } from '../../src/faces/cli/doctor/doctor.ts';
import { realGlibc, realGo, realMusl, type RealProgram } from '../kit/real-programs.ts';
import { cannotIsolate, hasProgram } from '../kit/real-resolver.ts';
import { runCommand } from '../kit/trace-command.ts';

/**
 * Real glibc, musl and Go programs run in separate pods (network namespaces), with a name server on their node. ndots
 * captures their packets during one fault at a time, and doctor must identify the fault.
 */

const skip = cannotIsolate() ?? (hasProgram('nft') ? false : 'nft is not installed');
const node = `ndotsd${process.pid % 10000}`;
const work = mkdtempSync(join(tmpdir(), 'ndots-doctor-'));
const kit = new URL('../kit/', import.meta.url).pathname;
const SERVER = '10.96.0.10';

interface Pod {
  readonly namespace: string;
  readonly address: string;
  readonly program: RealProgram;
}

let pods: Pod[] = [];
// Their build directory is removed when this test file ends.
const programs =
  skip === false
    ? (await Promise.all([realGlibc(), realMusl(), realGo()])).flatMap((each) => [each, each])
    : [];

const ip = (...words: string[]): void => void execFileSync('ip', words);

before(() => {
  if (skip !== false) return;
  ip('netns', 'add', node);
  ip('-n', node, 'link', 'set', 'lo', 'up');
  ip('-n', node, 'addr', 'add', `${SERVER}/32`, 'dev', 'lo');
  pods = programs
    .filter(({ command }) => command !== null)
    .map((program, index) => {
      const namespace = `${node}-${index}`;
      const address = `10.244.${index}.2`;
      ip('netns', 'add', namespace);
      ip(
        '-n',
        node,
        'link',
        'add',
        `p${index}`,
        'type',
        'veth',
        'peer',
        'name',
        'eth0',
        'netns',
        namespace,
      );
      ip('-n', node, 'addr', 'add', `10.244.${index}.1/24`, 'dev', `p${index}`);
      ip('-n', node, 'link', 'set', `p${index}`, 'up');
      ip('-n', namespace, 'link', 'set', 'lo', 'up');
      ip('-n', namespace, 'addr', 'add', `${address}/24`, 'dev', 'eth0');
      ip('-n', namespace, 'link', 'set', 'eth0', 'up');
      ip('-n', namespace, 'route', 'add', 'default', 'via', `10.244.${index}.1`);
      const etc = join('/etc/netns', namespace);
      mkdirSync(etc, { recursive: true });
      writeFileSync(
        join(etc, 'resolv.conf'),
        `nameserver ${SERVER}\nsearch shop.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n`,
      );
      writeFileSync(join(etc, 'nsswitch.conf'), 'hosts: files dns\n');
      return { namespace, address, program };
    });
});

after(() => {
  for (const { namespace } of pods) {
    spawnSync('ip', ['netns', 'del', namespace]);
    rmSync(join('/etc/netns', namespace), { recursive: true, force: true });
  }
  spawnSync('ip', ['netns', 'del', node]);
  rmSync(work, { recursive: true, force: true });
});

/** All names that clients look up are answered, and all others are NXDOMAIN. */
const rules = [
  { name: 'backend.shop.svc.cluster.local.', type: '*', answer: '10.96.1.1' },
  { name: 'redis.cache.svc.cluster.local.', type: '*', answer: '10.96.1.2' },
  { name: 'www.example.com.', type: '*', answer: '192.0.2.1' },
  { name: 'api.example.org.', type: '*', answer: '192.0.2.2 2001:db8::2' },
];

async function startServer(more: readonly object[]): Promise<ChildProcess> {
  const script = join(work, 'script.json');
  writeFileSync(script, JSON.stringify({ rules: [...more, ...rules] }));
  const words = [
    'netns',
    'exec',
    node,
    process.execPath,
    join(kit, 'scripted-server.ts'),
    script,
    join(work, 'log'),
    SERVER,
  ];
  const child = spawn('ip', words, { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return child;
}

const main = new URL('../../src/faces/cli/main.ts', import.meta.url).pathname;

/** Plays it and returns doctor's report. */
async function play(fault: {
  readonly nft?: string;
  /** Pods from earlier tests are idle, because glibc waits more than a minute for a connection. */
  readonly first?: number;
  readonly rules?: readonly object[];
  readonly names?: readonly string[];
}): Promise<{
  readonly codes: readonly string[];
  readonly critical: readonly string[];
  readonly out: string;
}> {
  const {
    nft = '',
    first = 0,
    rules: more = [],
    names = ['backend', 'redis.cache', 'www.example.com', 'api.example.org'],
  } = fault;
  if (nft !== '') execFileSync('ip', ['netns', 'exec', node, 'nft', '-f', '-'], { input: nft });
  const server = await startServer(more);
  const file = join(work, 'capture.pcapng');
  const capture = spawn(
    'ip',
    [
      'netns',
      'exec',
      node,
      process.execPath,
      main,
      'capture',
      '-i',
      'any',
      '-w',
      file,
      '-o',
      'none',
    ],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  await once(capture.stderr, 'data');
  try {
    await Promise.all(pods.slice(first).map((pod) => lookups(pod, names)));
    // Queries at the very end may be answered after the capture.
    await new Promise((resolve) => setTimeout(resolve, 200));
    await lookups(pods[0]!, ['backend']);
    await new Promise((resolve) => setTimeout(resolve, 3200));
    await lookups(pods.at(-1)!, ['redis.cache']);
  } finally {
    capture.kill('SIGINT');
    await once(capture, 'exit');
    server.kill();
    if (nft !== '') spawnSync('ip', ['netns', 'exec', node, 'nft', 'flush', 'ruleset']);
  }
  const { out, err } = await runCommand(doctor, [file, '-o', 'json']);
  assert.notEqual(out, '', err);
  const { findings } = JSON.parse(out) as {
    readonly findings: readonly { readonly code: string; readonly severity: string }[];
  };
  const codes = findings.map(({ code }) => code);
  return {
    codes,
    critical: findings.filter(({ severity }) => severity === 'critical').map(({ code }) => code),
    out,
  };
}

async function lookups({ namespace, program }: Pod, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const words = ['netns', 'exec', namespace, ...program.command!, name, '0', '2'];
    const child = spawn('ip', words, {
      stdio: 'ignore',
      timeout: 60_000,
      env: { ...process.env, GODEBUG: '' },
    });
    await once(child, 'exit');
  }
}

describe('doctor on the queries of real programs', { skip, concurrency: 1 }, () => {
  test('a healthy network', async () => {
    assert.deepEqual((await play({})).critical, []);
  });

  test('the second of two queries from one port is dropped: the conntrack race', async () => {
    const nft = `table inet lab {
      set seen { type ipv4_addr . inet_service; flags dynamic,timeout; timeout 5ms; }
      chain pre { type filter hook prerouting priority -300; policy accept;
        udp dport 53 ip saddr . udp sport @seen numgen random mod 100 < 40 counter drop
        udp dport 53 add @seen { ip saddr . udp sport }
      }
    }`;
    const { codes, out } = await play({ nft });
    assert.equal(codes[0], 'ND3001', out);
  });

  test('AAAA of one name is never answered', async () => {
    const { codes, out } = await play({
      rules: [{ name: 'api.example.org.', type: 'AAAA', answer: 'DROP' }],
    });
    assert.equal(codes[0], 'ND3009', out);
  });

  test('a policy blocks the queries of two pods', async () => {
    const nft = `table inet lab { chain pre { type filter hook prerouting priority -300; policy accept;
      ip saddr { ${pods
        .slice(2, 4)
        .map(({ address }) => address)
        .join(', ')} } udp dport 53 counter drop
      }
    }`;
    const { codes, out } = await play({ nft, names: ['backend', 'www.example.com'] });
    assert.equal(codes[0], 'ND3004', out);
  });

  test('answers are truncated, and TCP is closed', async () => {
    const nft = `table inet lab { chain pre { type filter hook prerouting priority -300; policy accept;
      tcp dport 53 counter drop
      }
    }`;
    const big = { name: 'backend.shop.svc.cluster.local.', type: 'A', answer: 'TC' };
    const { codes, out } = await play({ nft, rules: [big], names: ['backend'], first: 2 });
    assert.equal(codes[0], 'ND3011', out);
  });

  test('a twentieth of all packets is lost by chance', async () => {
    const nft = `table inet lab { chain pre { type filter hook prerouting priority -300; policy accept;
      udp dport 53 numgen random mod 100 < 7 counter drop
      }
    }`;
    const { codes, out } = await play({
      nft,
      names: [
        'backend',
        'redis.cache',
        'www.example.com',
        'api.example.org',
        'backend',
        'www.example.com',
      ],
    });
    assert.ok(['ND3013', 'ND3001'].includes(codes[0]!), out);
  });
});
