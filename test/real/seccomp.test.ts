/** Tests deploy/seccomp. `ndots` must be fully functional under its profiles, and other system calls must be denied. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { testCertificate, testKey } from '../kit/certificate.ts';
import { answered, printed, start } from '../kit/child.ts';
import { noFilters, under } from '../kit/seccomp.ts';
import { freePorts } from '../kit/free-ports.ts';

/** System calls that a DNS server never needs. */
const forbidden =
  /^(?:bpf|chroot|delete_module|finit_module|init_module|io_uring_\w+|kexec_\w+|keyctl|mount|open_by_handle_at|perf_event_open|pivot_root|ptrace|process_vm_\w+|reboot|swapon|umount2|unshare|userfaultfd)$/;

/** A profile's exceptions, which its subcommand needs. */
const needed: Readonly<Record<string, readonly string[]>> = {
  // Programs that record which process sends (`--bpf`).
  'capture.json': ['bpf'],
};

describe('seccomp profiles', () => {
  for (const file of readdirSync('deploy/seccomp'))
    test(`${file} allows nothing that leads out of a container`, () => {
      const { defaultAction, syscalls } = JSON.parse(
        readFileSync(join('deploy/seccomp', file), 'utf8'),
      ) as { defaultAction: string; syscalls: { names: string[]; action: string }[] };
      assert.equal(defaultAction, 'SCMP_ACT_ERRNO');
      const names = syscalls.flatMap((each) => each.names);
      assert.ok(names.length > 60 && names.length < 160, `${names.length}`);
      assert.deepEqual(
        names.filter((name) => forbidden.test(name)),
        needed[file] ?? [],
      );
    });
});

describe('a verb under a seccomp profile', { skip: noFilters() ?? false }, () => {
  for (const name of readdirSync('deploy/seccomp'))
    test(`${name}: it ends, even if fsync is refused`, (t) => {
      const directory = mkdtempSync(join(tmpdir(), 'ndots-seccomp-'));
      t.after(() => rmSync(directory, { recursive: true }));
      const profile = readFileSync(join('deploy/seccomp', name), 'utf8');
      assert.match(profile, /"fsync",/);
      const narrower = join(directory, name);
      writeFileSync(narrower, profile.replace(/"fsync",/, ''));
      for (let run = 0; run < 3; run++) {
        const words = under('serve', process.execPath, resolve('src/faces/cli/main.ts'), 'version');
        words[2] = narrower;
        const { status, stdout, stderr } = spawnSync(words[0]!, words.slice(1), {
          encoding: 'utf8',
          timeout: 60_000,
          killSignal: 'SIGKILL',
        });
        assert.match(stdout, /UDP: batched/);
        assert.equal(stderr, '');
        assert.equal(status, 0);
      }
    });
});

describe('ndots serve under its seccomp profile', { skip: noFilters() ?? false }, () => {
  test('answers by all transports, loads another Corefile, replaces a worker that fails, and ends in order', async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-seccomp-'));
    t.after(() => rmSync(directory, { recursive: true }));
    const [dns, tls, https, grpc, health, metrics, upstream] = await freePorts(7);
    const file = (name: string, text: string): string => {
      writeFileSync(join(directory, name), text);
      return join(directory, name);
    };
    const pair = `tls ${file('tls.crt', testCertificate)} ${file('tls.key', testKey)}`;
    const body = `bind 127.0.0.1\n errors\n log\n kubernetes cluster.local {\n  manifests ${resolve('examples/cluster')}\n }\n cache 30`;
    const text = (address: string): string => `
.:${dns} {
  ${body}
  health 127.0.0.1:${health}
  prometheus 127.0.0.1:${metrics}
  hosts {
    ${address} a.test
    fallthrough
  }
  forward . 127.0.0.1:${upstream}
}
tls://.:${tls} {
  ${pair}
  ${body}
}
https://.:${https} {
  ${pair}
  ${body}
}
grpc://.:${grpc} {
  ${body}
}
.:${upstream} {
  bind 127.0.0.1
  template IN A . {
    answer "{{ .Name }} 60 IN A 192.0.2.9"
  }
}
`;
    const corefile = file('Corefile', text('192.0.2.1'));
    const die = join(directory, 'die');
    const preload = file(
      'assassin.mjs',
      `import { isMainThread } from 'node:worker_threads';
       import { existsSync, unlinkSync } from 'node:fs';
       if (!isMainThread) setInterval(() => {
         if (!existsSync(${JSON.stringify(die)})) return;
         unlinkSync(${JSON.stringify(die)});
         throw new Error('killed by a test');
       }, 10).unref();`,
    );
    const child = start(
      'ndots',
      under(
        'serve',
        ...([process.execPath, '--import', preload, 'dist/faces/cli/main.js'] as const),
        ...['serve', '-conf', corefile, '-workers', '1'],
      ),
    );
    t.after(() => child.stop());
    await printed(child, /^ndots-\d/m, 30_000);
    const service = 'kubernetes.default.svc.cluster.local';
    const dig = (port: number, name: string, ...how: readonly string[]): string =>
      spawnSync(
        'dig',
        ['@127.0.0.1', '-p', String(port), name, '+short', '+time=3', '+tries=2', ...how],
        { encoding: 'utf8' },
      ).stdout.trim();
    for (const [port, how] of [
      [dns, '+notcp'],
      [dns, '+tcp'],
      [tls, '+tls'],
      [https, '+https'],
    ] as const)
      assert.equal(dig(port!, service, how), '10.3.0.1', `${how}\n${child.output()}`);
    assert.equal(dig(dns!, 'elsewhere.example'), '192.0.2.9');
    assert.equal(dig(dns!, 'a.test'), '192.0.2.1');
    assert.equal((await fetch(`http://127.0.0.1:${health}/health`)).status, 200);

    writeFileSync(corefile, text('192.0.2.2'));
    child.signal('SIGUSR1');
    await answered(dns!, 'a.test', 20_000, (reply) => reply.at(-1) === 2);

    writeFileSync(die, '');
    await printed(child, /worker 0 serves again/, 30_000);
    assert.equal(dig(dns!, service, '+tcp'), '10.3.0.1');
    assert.match(
      await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text(),
      /^ndots_worker_restarts_total\{[^}]*\} 1$/m,
    );
    assert.doesNotMatch(child.output(), /ENOSYS|not implemented|falls back/i);
    child.signal('SIGTERM');
    assert.equal(await child.exitCode, 0, child.output());
  });

  test('receives many datagrams with one call, as without it', () => {
    const [program = '', ...words] = under(
      'serve',
      process.execPath,
      'dist/faces/cli/main.js',
      'version',
    );
    const { stdout } = spawnSync(program, words, { encoding: 'utf8', timeout: 20_000 });
    assert.match(stdout, /^UDP: batched/m);
  });

  for (const [what, words] of [
    ['a namespace of its own', ['unshare', '-U', 'true']],
    ['a mount', ['mount', '-t', 'tmpfs', 'none', '/mnt']],
    ['another root', ['chroot', '/', 'true']],
  ] as const)
    test(`${what} cannot be had`, () => {
      const path = spawnSync('sh', ['-c', `command -v ${words[0]}`], { encoding: 'utf8' });
      const [program = '', ...rest] = under('serve', path.stdout.trim(), ...words.slice(1));
      const { status, stderr } = spawnSync(program, rest, { encoding: 'utf8', timeout: 20_000 });
      assert.notEqual(status, 0);
      assert.match(stderr, /not implemented/i);
    });
});

const cannotName = noFilters() ?? noResolvConf();

/** The reason why a test cannot have its own resolv.conf, or null if it can. */
function noResolvConf(): string | null {
  if (process.getuid?.() !== 0) return 'needs root, for a resolv.conf of its own';
  return spawnSync('unshare', ['-mn', 'true']).status === 0 ? null : 'needs unshare';
}

describe('an API server that is known by its name', { skip: cannotName ?? false }, () => {
  test('is found under each profile', () => {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-seccomp-names-'));
    try {
      const file = (name: string, text: string): string => {
        writeFileSync(join(directory, name), text);
        return join(directory, name);
      };
      const settings = file('resolv.conf', 'nameserver 127.0.0.1\n');
      const corefile = file(
        'Corefile',
        '.:53 {\n bind 127.0.0.1\n hosts {\n  192.0.2.9 api.example.test\n }\n}\n',
      );
      const look = file(
        'look.mjs',
        `import { lookup } from 'node:dns/promises';
         console.log((await lookup('api.example.test')).address);`,
      );
      const profiles = readdirSync('deploy/seccomp').map((name) => name.replace('.json', ''));
      const script = `
        mount --make-rprivate / && mount --bind ${settings} /etc/resolv.conf && ip link set lo up
        ${process.execPath} dist/faces/cli/main.js serve -conf ${corefile} > ${directory}/log 2>&1 &
        server=$!
        tries=0
        until grep -q '^ndots-' ${directory}/log || [ $((tries += 1)) -gt 300 ]; do sleep 0.1; done
        ${profiles.map((name) => `echo ${name} $(${under(name, process.execPath, look).join(' ')} 2>&1)`).join('\n')}
        kill $server
        wait $server`;
      const { stdout } = spawnSync('unshare', ['-mn', 'sh', '-c', script], {
        encoding: 'utf8',
        timeout: 120_000,
      });
      assert.deepEqual(
        stdout.trim().split('\n'),
        profiles.map((name) => `${name} 192.0.2.9`),
      );
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
