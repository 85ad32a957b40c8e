/** Tests the Cache and Checks pages in real Chromium, using real servers and a real checker. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import {
  consoleToken,
  fileSource,
  noBrowser as skip,
  testIo,
  TestConsole,
  violationsOf,
} from '../../../../test/kit/console-browser.ts';
import { printed, start, type Child } from '../../../../test/kit/child.ts';
import { freePorts } from '../../../../test/kit/free-ports.ts';
import { serveProcess, type ServeProcess } from '../../../../test/kit/serve-process.ts';
import { systemClock } from '../../../server/base/clock.ts';
import { LiveModel } from '../../../tools/watch/live-model.ts';
import type { AdminChoice } from '../cache/admin-servers.ts';
import { CheckSources } from './check-sources.ts';
import type { ConsoleServer } from './console-server.ts';
import { ServerCaches } from './server-caches.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-pages-'));
const tokenFile = join(directory, 'token');
writeFileSync(tokenFile, 'a-secret-of-some-length');

function ask(port: number): void {
  const words = ['+time=30', '+tries=1', '@127.0.0.1', '-p', String(port), 'www.example', 'A'];
  assert.equal(spawnSync('dig', words).status, 0);
}

describe('the pages that query servers', { skip, timeout: 900_000 }, () => {
  const it = new TestConsole();
  const consoles: ConsoleServer[] = [];
  let servers: readonly ServeProcess[] = [];
  let checker: Child | null = null;
  let adminPorts: readonly number[] = [];
  let checkPort = 0;
  let deadPort = 0;

  before(async () => {
    await it.build();
    const ports = await freePorts(4);
    adminPorts = ports.slice(0, 2);
    [checkPort, deadPort] = ports.slice(2) as [number, number];
    servers = await Promise.all(
      adminPorts.map((port, index) =>
        serveProcess(
          ` admin 127.0.0.1:${port} {\n token_file ${tokenFile}\n }\n cache\n template IN A {\n ${
            index === 0
              ? 'answer "{{ .Name }} 60 IN A 192.0.2.1"'
              : 'rcode NXDOMAIN\n authority "example. 60 IN SOA ns.example. admin.example. 1 60 60 60 60"'
          }\n }`,
        ),
      ),
    );
    for (const { port } of servers) ask(port);
    const file = join(directory, 'check.yaml');
    writeFileSync(
      file,
      `vip: 127.0.0.1:${servers[0]!.port}
replicas: [127.0.0.1:${servers[0]!.port}, 127.0.0.1:${deadPort}]
timeout: 200ms
tries: 1
every: 1s
checks:
  - check: replica-answers
`,
    );
    const words = ['check', 'serve', '-f', file, '--listen', `127.0.0.1:${checkPort}`];
    checker = start('ndots', [join(import.meta.dirname, '../../../../bin/ndots'), ...words]);
    await printed(checker, /metrics on/, 60_000);
  });
  after(async () => {
    for (const each of consoles) await each.close();
    for (const each of servers) await each.stop();
    checker?.signal('SIGKILL');
    await checker?.exitCode;
    await it.close();
    rmSync(directory, { recursive: true, force: true });
  });

  async function served(
    mayFlush: boolean,
    choice: Partial<AdminChoice> = {},
  ): Promise<ConsoleServer> {
    const admin: AdminChoice = {
      servers: adminPorts.map((port) => ({ host: '127.0.0.1', port })),
      tokenFile,
      tokenOption: '--admin-token',
      tls: null,
      cluster: null,
      timeoutMs: 60_000,
      ...choice,
    };
    const console = await it.serve(new LiveModel(), fileSource(), 'two servers', {
      caches: new ServerCaches({ choice: admin, mayFlush, io: testIo }),
      checks: new CheckSources({
        servers: [
          { host: '127.0.0.1', port: checkPort },
          { host: '127.0.0.1', port: deadPort },
        ],
        clock: systemClock,
      }),
    });
    consoles.push(console);
    return console;
  }

  test('entries of all servers are shown by keyboard, and differing ones are marked', async () => {
    await it.inPage({ at: await served(false) }, async (page) => {
      await page.keyboard.press('0');
      await page.locator('#cached-name').focus();
      await page.keyboard.type('www.example');
      await page.keyboard.press('Enter');
      const table = page.getByRole('region', { name: 'Cache entries' });
      await table
        .getByRole('row', { name: /www\.example\. A all NOERROR/ })
        .first()
        .waitFor();
      await table
        .getByRole('row', { name: /www\.example\. ANY all NXDOMAIN/ })
        .first()
        .waitFor();
      await page.getByText('started without --allow flush').waitFor();
      assert.match(page.url(), /#cache\?name=www\.example$/);
      // The address alone restores the page.
      await page.reload();
      await table
        .getByRole('row', { name: /NOERROR/ })
        .first()
        .waitFor();
    });
  });

  test('a flush needs confirmation, and removes the entries', async () => {
    await it.inPage({ at: await served(true) }, async (page) => {
      await page.goto(`${page.url().split('#')[0]!}#cache?name=www.example`);
      await page.getByRole('button', { name: 'Flush these entries' }).click();
      await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      await page.getByRole('button', { name: 'Flush these entries' }).click();
      await page.getByText(/Flush \d+ entr(y|ies) on 2 servers\?/).waitFor();
      await page.keyboard.press('Enter');
      await page.getByText(/\d+ entr(y|ies) flushed on 2 servers\./).waitFor();
      assert.equal(await page.getByRole('region', { name: 'Cache entries' }).count(), 0);
    });
    for (const { port } of servers) ask(port);
  });

  test('other pages and other methods cannot flush', async () => {
    const console = await served(true);
    const url = `http://127.0.0.1:${console.port}/api/cache/flush?name=www.example`;
    const cookie = `ndots-console-${console.port}=${consoleToken}`;
    const own = { cookie, 'ndots-console': '1' };
    const status = async (init: RequestInit): Promise<number> => (await fetch(url, init)).status;
    assert.equal(await status({ headers: own }), 405);
    assert.equal(await status({ method: 'POST', headers: { cookie } }), 405);
    assert.equal(await status({ method: 'POST', headers: { 'ndots-console': '1' } }), 401);
    const foreign = { ...own, origin: 'http://other.example' };
    assert.equal(await status({ method: 'POST', headers: foreign }), 403);
    const closed = await served(false);
    const refused = await fetch(url.replace(String(console.port), String(closed.port)), {
      method: 'POST',
      headers: { ...own, cookie: `ndots-console-${closed.port}=${consoleToken}` },
    });
    assert.match(await refused.text(), /--allow flush/);
  });

  test('a server that cannot be queried is reported with a fix', async () => {
    const at = await served(false, { tokenFile: null });
    await it.inPage({ at }, async (page) => {
      await page.goto(`${page.url().split('#')[0]!}#cache?name=www.example&below=1`);
      await page.getByText('Provide its token: --admin-token FILE').first().waitFor();
      assert.equal(await page.locator('.finding.error').count(), 2);
    });
  });

  test('checks are shown worst first, and an unavailable checker is reported', async () => {
    await it.inPage({ at: await served(false) }, async (page) => {
      await page.keyboard.press('c');
      await page.getByText('nothing listens there').waitFor();
      const rows = page.getByRole('region', { name: 'Checks, worst first' }).locator('tbody tr');
      await rows.filter({ hasText: 'down' }).first().waitFor();
      assert.match((await rows.first().textContent()) ?? '', new RegExp(`${deadPort}`));
      await rows.filter({ hasText: 'ok' }).first().waitFor();
    });
  });

  for (const colorScheme of ['light', 'dark'] as const)
    for (const width of [1280, 360])
      test(`axe finds nothing on these pages: ${colorScheme}, ${width} px`, async () => {
        await it.inPage({ at: await served(true), colorScheme, width }, async (page) => {
          await page.goto(`${page.url().split('#')[0]!}#cache?name=www.example`);
          await page.getByRole('button', { name: 'Flush these entries' }).click();
          await page.getByText(/Flush \d+ entr/).waitFor();
          assert.deepEqual(await violationsOf(page), [], 'Cache');
          if (process.env['SHOTS'] !== undefined)
            await page.screenshot({
              path: `${process.env['SHOTS']}/cache-${colorScheme}-${width}.png`,
            });
          await page.keyboard.press('c');
          await page.getByRole('region', { name: 'Checks, worst first' }).waitFor();
          assert.deepEqual(await violationsOf(page), [], 'Checks');
          if (process.env['SHOTS'] !== undefined)
            await page.screenshot({
              path: `${process.env['SHOTS']}/checks-${colorScheme}-${width}.png`,
            });
        });
      });
});
