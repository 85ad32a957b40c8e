import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { test } from 'node:test';

const noRoot = process.platform === 'linux' && process.getuid?.() === 0 ? false : 'needs root';

/** Runs a program as an unprivileged user, with this capability or none, in its own network namespace. */
function asUser(capability: string, script: string): string {
  const held = ['--inh-caps', `-all${capability}`, '--ambient-caps', `-all${capability}`];
  const user = ['setpriv', '--reuid', '65532', '--regid', '65532', '--clear-groups', ...held];
  const words = [...user, process.execPath, '--input-type=module', '-e', script];
  const { stdout, stderr } = spawnSync('unshare', ['--net', ...words], { encoding: 'utf8' });
  return stdout.trim() || stderr;
}

const script = `
  import { createSocket } from 'node:dgram';
  import { libc } from '${resolve('src/server/runtime/libc.ts')}';
  import { withMemory } from '${resolve('src/server/runtime/memory.ts')}';
  import { allowLowPort } from '${resolve('src/server/runtime/low-ports.ts')}';
  // As the image's runtime is started: permitted, and not effective.
  const [get, set] = process.arch === 'arm64' ? [90, 91] : [125, 126];
  withMemory(32, ({ address, words }) => {
    words[0] = 0x20080522;
    libc().syscall(get, address, address + 8, 0);
    words[2] = 0;
    libc().syscall(set, address, address + 8, 0);
  });
  const bound = () => new Promise((resolve) => {
    const socket = createSocket('udp4');
    socket.on('error', ({ code }) => resolve(code));
    socket.bind(53, () => socket.close(() => resolve('bound')));
  });
  const before = await bound();
  allowLowPort(53);
  console.log(before, await bound());
`;

test('a permitted capability to bind low ports becomes effective', { skip: noRoot }, () => {
  assert.equal(asUser(',+net_bind_service', script), 'EACCES bound');
});

test('without the capability nothing changes', { skip: noRoot }, () => {
  assert.equal(asUser('', script), 'EACCES EACCES');
});
