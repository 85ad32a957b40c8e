import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { describe, test } from 'node:test';

import { findPortHolder } from '../runtime/port-holder.ts';
import { bindProblem } from './bind-problem.ts';

const failed = (code: string): Error => Object.assign(new Error(`bind: ${code}`), { code });
const endpoint = { scheme: 'dns', address: '127.0.0.1', port: 53 } as const;

describe('a socket that can’t be opened', () => {
  test('for lack of privilege names the capability and where to add it', async () => {
    const problem = await bindProblem(failed('EACCES'), 'udp', endpoint);
    assert.equal(problem.code, 'permission-denied');
    assert.equal(problem.message, 'listen udp 127.0.0.1:53: permission denied');
    assert.match(problem.print(), /NET_BIND_SERVICE/);
    assert.match(problem.print(), /securityContext/);
    assert.match(problem.print(), /setcap cap_net_bind_service=\+ep/);
  });

  test('on an address the machine lacks shows how to list its addresses', async () => {
    const problem = await bindProblem(failed('EADDRNOTAVAIL'), 'tcp', {
      ...endpoint,
      address: '2001:db8::1',
    });
    assert.equal(problem.code, 'address-not-available');
    assert.equal(problem.message, 'listen tcp [2001:db8::1]:53: address not available');
  });

  test('on port 53 suggests systemd-resolved when no owner is known', async () => {
    const problem = await bindProblem(failed('EADDRINUSE'), 'udp', { ...endpoint, port: 1 });
    assert.equal(problem.code, 'address-in-use');
    const command = /"(ss .*?)"/.exec(problem.remedy ?? '')?.[1];
    assert.equal(command, 'ss -lnpu sport = :1');
    if (spawnSync('ss', ['-V']).status === 0)
      assert.equal(spawnSync('sh', ['-c', command]).status, 0, command);
  });

  test('for another reason reports the system’s words', async () => {
    const problem = await bindProblem(failed('EMFILE'), 'udp', endpoint);
    assert.equal(problem.code, 'listen-failed');
    assert.match(problem.message, /too many files are open/);
  });

  test('because of another process names that process', async (t) => {
    if (process.platform !== 'linux') return t.skip('needs /proc');
    const script = `
      const server = require('node:net').createServer();
      server.listen(0, '127.0.0.1', () => console.log(server.address().port));
    `;
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => child.kill());
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const port = Number(line.toString());
    const place = { address: '127.0.0.1', port };
    const holder = await findPortHolder('tcp', place);
    assert.equal(holder?.pid, child.pid);
    assert.match(holder?.command ?? '', /^node -e /);
    assert.equal((await findPortHolder('tcp', { address: '', port }))?.pid, child.pid);
    assert.equal(await findPortHolder('tcp', { address: '127.0.0.2', port }), null);
    const problem = await bindProblem(failed('EADDRINUSE'), 'tcp', { ...endpoint, port });
    assert.match(problem.hint ?? '', new RegExp(`process ${child.pid}\\)`));
    assert.equal(await findPortHolder('udp', place), null);
  });
});
