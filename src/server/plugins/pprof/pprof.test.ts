import assert from 'node:assert/strict';
import { gunzipSync } from 'node:zlib';
import { describe, test } from 'node:test';
import { Profile } from 'pprof-format';
import { freePorts } from '../../../../test/kit/free-ports.ts';
import { serveProcess } from '../../../../test/kit/serve-process.ts';
import { makeWorld } from '../../../../test/kit/world.ts';

describe('pprof', () => {
  test('profiles all threads, for pprof and for DevTools, one at a time', async (t) => {
    const [port] = await freePorts(1);
    const server = await serveProcess(`  pprof 127.0.0.1:${port}\n  whoami`, {
      words: ['-workers', '2'],
    });
    t.after(() => server.stop());
    const get = (path: string): Promise<Response> =>
      fetch(`http://127.0.0.1:${port}/debug/pprof${path}`);

    assert.match(await (await get('/')).text(), /go tool pprof/);
    assert.match(await (await get('/cmdline')).text(), /serve[\0 ]-conf/);

    const [first, second] = await Promise.all([get('/profile?seconds=1'), get('/heap?seconds=1')]);
    assert.deepEqual(new Set([first.status, second.status]), new Set([200, 503]));
    const answered = first.status === 200 ? first : second;
    const bytes = Buffer.from(await answered.arrayBuffer());
    const profile = Profile.decode(gunzipSync(bytes));
    const texts = profile.stringTable.strings;
    assert.ok(texts.includes('thread') && texts.includes('control'), texts.join(' '));

    const cpu = await get('/profile?seconds=0.2&thread=worker-1');
    assert.match(cpu.headers.get('content-disposition')!, /worker-1\.cpuprofile/);
    const { nodes } = (await cpu.json()) as { nodes: { callFrame: { functionName: string } }[] };
    assert.equal(nodes[0]!.callFrame.functionName, '(root)');
    const heap = await get('/heap?seconds=0.2&thread=control');
    assert.ok('head' in ((await heap.json()) as object));

    assert.equal((await get('/profile?seconds=0.1&thread=x')).status, 404);
    assert.equal((await get('/profile?seconds=121')).status, 400);
    assert.equal((await get('/profile?seconds=x')).status, 400);
    assert.equal((await get('/goroutine')).status, 404);
  });

  for (const [lines, message] of [
    ['pprof 1.2.3.4', /missing port in address/],
    ['pprof :1 :2', /Wrong argument count/],
    ['pprof {\n block 20 30\n }', /Wrong argument count/],
    ['pprof {\n block x\n }', /property 'block' invalid integer value 'x'/],
    ['pprof {\n unknown\n }', /unknown property 'unknown'/],
    ['pprof\n pprof', /can only be used once/],
  ] as const) {
    test(`rejected: ${lines.replaceAll('\n', '')}`, async () => {
      await assert.rejects(makeWorld(`.:53 {\n ${lines}\n whoami\n}`), message);
    });
  }
});
