/** Tests reloads on the Now and Configuration pages in real Chromium, using a real server. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Asker } from '../../../../test/kit/ask.ts';
import {
  consoleToken,
  fileSource,
  noBrowser as skip,
  testIo,
  TestConsole,
  violationsOf,
} from '../../../../test/kit/console-browser.ts';
import { freePorts } from '../../../../test/kit/free-ports.ts';
import { serveProcess, type ServeProcess } from '../../../../test/kit/serve-process.ts';
import { systemClock } from '../../../server/base/clock.ts';
import { LiveModel } from '../../../tools/watch/live-model.ts';
import { startFeed, type PacketFeed } from '../live/live-feed.ts';
import type { ConsoleServer } from './console-server.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-reloads-'));
const token = join(directory, 'token');
writeFileSync(token, 'a-token-that-is-long-enough');

/** The names that clients look up, and their addresses before and after the reload. */
const hosts = (address: string, last: string): string =>
  `hosts {\n    ${address} a.example\n    192.0.2.9 same.example\n    192.0.2.3 ${last}\n  }`;

describe('reloads of a server', { skip, timeout: 900_000 }, () => {
  const it = new TestConsole();
  const model = new LiveModel();
  let server: ServeProcess | null = null;
  let feed: PacketFeed | null = null;
  let asker: Asker | null = null;
  let page: ConsoleServer;

  const askAll = async (): Promise<void> => {
    for (const name of ['a', 'new', 'old', 'same']) await asker!.ask(`${name}.example.`, 'A');
  };
  const queries = (): number => model.inputs[0]!.row().queries;
  /** Sends queries until the model has seen this many more. */
  const askUntil = async (holds: () => boolean): Promise<void> => {
    for (let turn = 0; !holds(); turn++) {
      assert.ok(turn < 1000, JSON.stringify(model.reloads().rows));
      await askAll();
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };

  before(async () => {
    await it.build();
    const [port] = (await freePorts(1)) as [number];
    const body = (answers: string): string =>
      `  console 127.0.0.1:${port} {\n    token_file ${token}\n  }\n  ${answers}`;
    server = await serveProcess(body(hosts('192.0.2.1', 'old.example')));
    asker = await Asker.to(server.port);
    const options = {
      ...fileSource(),
      servers: [{ host: '127.0.0.1', port }],
      serverToken: token,
      speed: 1,
    };
    feed = await startFeed(options, model, systemClock, testIo);
    await askUntil(() => queries() >= 20);
    server.reload(body(hosts('192.0.2.2', 'new.example')));
    await askUntil(() => (model.reloads().rows[0]?.changed ?? 0) === 3);
    page = await it.serve(model, fileSource(), `server 127.0.0.1:${port}`);
  });
  after(async () => {
    await page?.close();
    feed?.stop();
    asker?.close();
    await server?.stop();
    await it.close();
    rmSync(directory, { recursive: true, force: true });
  });

  test('a mark on the time axis leads to the change of the Corefile and the changed answers, by keyboard', async () => {
    await it.inPage({ at: page }, async (tab) => {
      const mark = tab.getByRole('listitem').filter({ hasText: '3 of 4 answers changed' });
      const link = mark.getByRole('button', { name: /^\d\d:\d\d:\d\d$/ });
      await link.waitFor();
      assert.match((await tab.locator('.event').first().getAttribute('d')) ?? '', /^M\d/);
      await link.focus();
      await tab.keyboard.press('Enter');
      await tab.getByRole('tab', { name: 'Configuration', selected: true }).waitFor();
      assert.match(tab.url(), /#configuration\?reload=1$/);
      const patch = tab.getByRole('region', { name: 'Change of the Corefile' });
      assert.match(
        (await patch.textContent()) ?? '',
        /-    192\.0\.2\.1 a\.example[^]*\+    192\.0\.2\.2 a\.example/,
      );
      const answers = tab.getByRole('region', { name: 'Answers seen to change' });
      await answers
        .getByRole('row', {
          name: /a\.example\. A NOERROR A 192\.0\.2\.1 NOERROR A 192\.0\.2\.2 1 /,
        })
        .waitFor();
      await answers
        .getByRole('row', {
          name: /new\.example\. A NXDOMAIN|new\.example\. A REFUSED|new\.example\. A SERVFAIL/,
        })
        .waitFor();
      assert.equal(await answers.getByRole('row', { name: /same/ }).count(), 0);
      const toggle = tab.getByRole('button', { name: /3 of 4 answers changed/ });
      await toggle.focus();
      await tab.keyboard.press('Enter');
      await patch.waitFor({ state: 'detached' });
      await tab.keyboard.press('Enter');
      await patch.waitFor();
    });
  });

  test('the prediction is marked as such, and asks for the names that changed', async () => {
    await it.inPage({ at: page }, async (tab) => {
      await tab.keyboard.press('9');
      await tab.getByRole('button', { name: 'Predict the changes' }).focus();
      await tab.keyboard.press('Enter');
      await tab.getByRole('heading', { name: 'Predicted' }).waitFor();
      await tab.getByText('Not observed: ndots diff served both Corefiles').waitFor();
      await tab
        .getByText(/a\.example/)
        .last()
        .waitFor();
      assert.deepEqual(await violationsOf(tab), []);
    });
  });

  for (const colorScheme of ['light', 'dark'] as const)
    test(`axe finds nothing: ${colorScheme}`, async () => {
      await it.inPage({ at: page, colorScheme }, async (tab) => {
        await tab.getByText('3 of 4 answers changed').first().waitFor();
        assert.deepEqual(await violationsOf(tab), []);
        await tab.keyboard.press('9');
        await tab.getByRole('region', { name: 'Answers seen to change' }).waitFor();
        assert.deepEqual(await violationsOf(tab), []);
      });
    });

  test('the JSON has the same reload in the overview and in its own view', async () => {
    const headers = { cookie: `ndots-console-${page.port}=${consoleToken}` };
    const get = async (view: string): Promise<unknown> =>
      (await fetch(`http://127.0.0.1:${page.port}/api/view/${view}`, { headers })).json();
    const now = (await get('now')) as { reloads: { id: number; changed: number }[] };
    const { rows } = (await get('reloads')) as {
      rows: { id: number; changed: number; diff: string }[];
    };
    assert.deepEqual([now.reloads[0]!.id, now.reloads[0]!.changed], [1, 3]);
    assert.deepEqual([rows[0]!.id, rows[0]!.changed], [1, 3]);
    assert.match(rows[0]!.diff, /192\.0\.2\.2 a\.example/);
  });
});
