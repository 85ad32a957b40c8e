/** Tests the console in real Chromium, using the real program and a real capture. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, renameSync } from 'node:fs';
import { once } from 'node:events';
import { connect } from 'node:net';
import { join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { AddressOwner } from '../../../tools/pods/address-owners.ts';
import type { PrivacyLevel } from '../../../tools/watch/view-privacy.ts';
import type { ViewQuery } from '../../../tools/watch/view.ts';
import {
  consoleToken as token,
  fileSource,
  noBrowser as skip,
  readFiles,
  TestConsole,
  violationsOf,
} from '../../../../test/kit/console-browser.ts';
import { healthy, play } from '../../../../test/kit/story.ts';
import { watched } from '../../../../test/kit/watched.ts';
import { findingStates } from '../live/finding-words.ts';
import type { ConsoleServer } from './console-server.ts';

const options = fileSource(resolve('examples/captures/tcp-blocked.pcapng'));
/** Size limit for the compressed page and its styles, in bytes. */
const PAGE_MOST = 60 * 1024;
const corefile = '.:53 {\n    errors\n    forward . 10.0.0.2\n    cache 30\n    loop\n}\n';

const it = new TestConsole();
before(() => it.build());
after(() => it.close());

async function served(privacy: PrivacyLevel): Promise<ConsoleServer> {
  const { model, name } = await readFiles(options);
  return it.serve(model, options, name, { privacy, corefile });
}

test('the page with its styles is at most 60 KiB compressed, and loads no engine', () => {
  const { first } = it.built;
  assert.ok(!first.some((name) => /engine|tool/.test(name)), first.join());
  assert.ok(readdirSync(it.directory).includes('engine-worker.js'));
  const bytes = first
    .map((name) => gzipSync(readFileSync(join(it.directory, name))).length)
    .reduce((sum, each) => sum + each, 0);
  assert.ok(bytes <= PAGE_MOST, `${bytes} bytes`);
});

describe('the server of the console', () => {
  let server: ConsoleServer;
  before(async () => (server = await served('full')));
  after(() => server.close());
  const get = (path: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> =>
    fetch(`http://127.0.0.1:${server.port}${path}`, { headers, redirect: 'manual' });
  const withToken = (): Record<string, string> => ({
    cookie: `ndots-console-${server.port}=${token}`,
  });

  test('answers while others without a token hold as many connections as it accepts', async (t) => {
    const sockets = Array.from({ length: 300 }, () => connect(server.port, '127.0.0.1'));
    t.after(() => sockets.forEach((socket) => socket.destroy()));
    for (const socket of sockets) socket.on('error', () => undefined);
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    assert.equal((await get('/api/view/now', withToken())).status, 200);
  });

  test('closes a connection that asks for a stream behind another one', async () => {
    const socket = connect(server.port, '127.0.0.1');
    const head = `GET /api/live/now HTTP/1.1\r\nHost: localhost\r\nCookie: ${withToken()['cookie']}\r\n\r\n`;
    socket.on('error', () => undefined).resume();
    socket.write(head.repeat(2));
    await once(socket, 'close');
  });

  test('answers without a file of the page that an upgrade has removed', async (t) => {
    const [icon, away] = [join(it.directory, 'icon.svg'), join(it.directory, 'icon.away')];
    renameSync(icon, away);
    t.after(() => renameSync(away, icon));
    const answer = await get('/icon.svg', withToken());
    assert.equal(answer.status, 404);
    assert.match(await answer.text(), /Start ndots console again/);
  });

  test('answers nothing without the token, and keeps the token out of the address', async () => {
    for (const path of ['/', '/console.js', '/api/view/now', '/api/live/now'])
      assert.equal((await get(path)).status, 401, path);
    assert.equal((await get('/?token=wrong')).status, 401);
    const welcome = await get(`/?token=${token}`);
    assert.equal(welcome.status, 303);
    assert.equal(welcome.headers.get('location'), '/');
    assert.match(welcome.headers.get('set-cookie') ?? '', /HttpOnly; SameSite=Strict/);
  });

  test('shows the current numbers and findings without scripts', async () => {
    const page = await (await get('/', withToken())).text();
    assert.match(page, /<dt>Queries<\/dt><dd>/);
    assert.match(page, /DNS over TCP is blocked/);
  });

  test('allows only its own scripts and data, and no framing', async () => {
    const policy = (await get('/', withToken())).headers.get('content-security-policy') ?? '';
    for (const part of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"])
      assert.ok(policy.includes(part), policy);
  });

  test('serves each view as JSON, and explains an invalid filter', async () => {
    for (const view of ['now', 'lookups', 'clients', 'names', 'servers', 'findings']) {
      const found = (await (await get(`/api/view/${view}`, withToken())).json()) as ViewQuery;
      assert.equal(found.view, view);
    }
    const wrong = await get('/api/view/lookups?filter=rcod%3DX', withToken());
    assert.equal(wrong.status, 400);
    assert.match(await wrong.text(), /did you mean rcode/);
    assert.equal((await get('/api/view/nothing', withToken())).status, 400);
    assert.equal((await get('/etc/passwd', withToken())).status, 404);
  });

  test('is read-only', async () => {
    const init = { method: 'POST', headers: withToken() };
    assert.equal((await fetch(`http://127.0.0.1:${server.port}/`, init)).status, 405);
  });
});

for (const [level, isHidden] of [
  ['no-clients', (text: string) => !text.includes('10.244.1.4')],
  ['counts', (text: string) => !text.includes('10.244.1.4') && !text.includes('large.example')],
] as const)
  test(`--privacy ${level} hides clients from every view`, async () => {
    const server = await served(level);
    try {
      const headers = { cookie: `ndots-console-${server.port}=${token}` };
      for (const view of ['now', 'lookups', 'clients', 'names', 'servers', 'findings']) {
        const found = await fetch(`http://127.0.0.1:${server.port}/api/view/${view}`, { headers });
        assert.ok(isHidden(await found.text()), view);
      }
      const guess = await fetch(
        `http://127.0.0.1:${server.port}/api/view/lookups?filter=from-ip%3D10.244.1.4`,
        { headers },
      );
      assert.equal(guess.status, 400);
    } finally {
      await server.close();
    }
  });

describe('the console in Chromium', { skip, timeout: 900_000 }, () => {
  let server: ConsoleServer;
  before(async () => (server = await served('full')));
  after(() => server?.close());
  const inPage = (
    given: Partial<Parameters<TestConsole['inPage']>[0]>,
    use: Parameters<TestConsole['inPage']>[1],
  ): Promise<void> => it.inPage({ at: server, ...given }, use);

  test('a whole diagnosis works by keyboard', async () => {
    await inPage({}, async (page) => {
      await page.keyboard.press('6');
      const finding = page.getByRole('button', { name: /DNS over TCP is blocked/ });
      await finding.waitFor();
      await finding.focus();
      await page.keyboard.press('Enter');
      await page.getByText('Open TCP port 53 to 10.96.0.10', { exact: false }).waitFor();
      await page.keyboard.press('2');
      await page.keyboard.press('/');
      await page.keyboard.type('name=large.example.com');
      await page.keyboard.press('Escape');
      const row = page.locator('button.row').first();
      await row.waitFor();
      await row.focus();
      await page.keyboard.press('Enter');
      await page.getByText('over TCP, because the UDP reply was truncated').first().waitFor();
      assert.match(page.url(), /#lookups\?filter=name%3Dlarge\.example\.com/);
      assert.ok(!page.url().includes(token));
    });
  });

  test('a click anywhere in a row opens it, and another one closes it', async () => {
    await inPage({}, async (page) => {
      await page.keyboard.press('6');
      const severity = page.getByRole('cell', { name: 'critical' });
      await severity.click();
      const fix = page.getByText('Open TCP port 53 to 10.96.0.10', { exact: false });
      await fix.waitFor();
      await severity.click();
      await fix.waitFor({ state: 'detached' });
    });
  });

  test('the Now page says that a finding was found, like top', async () => {
    await inPage({}, async (page) => {
      const change = page.locator('.changes > li').first();
      await change.waitFor();
      assert.match(await change.innerText(), /^02:43:10 found ND3011 Large answers/);
    });
  });

  test('findings have the same states as in top, and say that the filter does not apply to them', async () => {
    await inPage({}, async (page) => {
      const note = page.locator('#filter-note');
      await page.keyboard.press('6');
      const states = page.locator('table.live tbody tr > td:nth-child(4)');
      await states.first().waitFor();
      const { began, continues, ended } = findingStates;
      for (const state of await states.allInnerTexts())
        assert.ok([began, continues, ended].includes(state.replace(/ \(.*/, '')), state);
      assert.doesNotMatch(await note.innerText(), /do not apply/);
      await page.locator('#filter').fill('rcode=NXDOMAIN');
      await page.getByText('filters do not apply here', { exact: false }).waitFor();
      assert.notEqual(await states.count(), 0);
      await page.keyboard.press('Escape');
      await page.keyboard.press('1');
      await page
        .getByText('filters do not apply to findings and changes', { exact: false })
        .waitFor();
      await page.keyboard.press('2');
      await page.getByRole('tab', { name: 'Lookups', selected: true }).waitFor();
      assert.doesNotMatch(await note.innerText(), /do not apply/);
    });
  });

  test('an address restores its view, and an invalid filter is explained', async () => {
    await inPage({}, async (page) => {
      await page.goto(`http://127.0.0.1:${server.port}/#clients?sort=lost`);
      await page.getByRole('tab', { name: 'Clients', selected: true }).waitFor();
      await page.locator('th[aria-sort="descending"]', { hasText: 'Lost' }).waitFor();
    });
    await assert.rejects(
      inPage({}, async (page) => {
        await page.locator('#filter').fill('rcod=NXDOMAIN');
        await page.getByText('did you mean rcode', { exact: false }).waitFor();
      }),
      // Chromium logs the rejected request to its console.
      /400 \(Bad Request\)/,
    );
  });

  test('a paused page requests nothing, and continues when resumed', async () => {
    await inPage({}, async (page) => {
      await page.getByRole('button', { name: 'Pause' }).click();
      await page.getByText('Paused', { exact: true }).waitFor();
      await page.getByRole('button', { name: 'Resume' }).click();
      await page.getByText('Live', { exact: true }).waitFor();
    });
  });

  test('an edge of the map opens exactly the lookups that it counts, by keyboard', async () => {
    await inPage({}, async (page) => {
      await page.keyboard.press('7');
      const edges = page.locator('.map a.edge');
      await edges.first().waitFor({ state: 'attached' });
      const rows = page.getByRole('region', { name: 'Edges of the map' }).locator('tbody tr');
      assert.equal(await rows.count(), await edges.count());
      for (let at = 0; at < (await edges.count()); at++) {
        const name = (await edges.nth(at).getAttribute('aria-label')) ?? '';
        const [, count = ''] = /: (\d+) lookups?,/.exec(name) ?? [];
        await edges.nth(at).focus();
        await page.keyboard.press('Enter');
        await page.getByRole('tab', { name: 'Lookups', selected: true }).waitFor();
        await page.getByText(`of ${count} shown`, { exact: false }).waitFor();
        assert.match(page.url(), /#lookups\?filter=/);
        await page.keyboard.press('7');
        await edges.first().waitFor({ state: 'attached' });
      }
    });
  });

  test('names from the network are text on every page', async () => {
    const hostile = '<img src=x onerror=alert(1)>';
    const pod = { kind: 'pod', namespace: hostile, name: hostile, workload: `deploy/${hostile}` };
    const owners = new Map([['10.244.1.1', { ...pod, node: hostile } as AddressOwner]]);
    const lookups = [{ atMs: 0, name: 'hostilename.example.com.' }];
    const packets = await play([{ address: '10.244.1.1', resolver: 'go', lookups }], healthy);
    // Resolvers do not send such names, but other programs can.
    for (const { bytes } of packets) {
      const at = Buffer.from(bytes.buffer, bytes.byteOffset).indexOf('hostilename');
      if (at >= 0) bytes.set(Buffer.from('<b>bold</b>'), at);
    }
    const model = watched(packets, { owners }, undefined, packets.at(-1)!.timeMs + 20_000);
    const bad = await it.serve(model, options, hostile);
    try {
      await inPage({ at: bad }, async (page) => {
        for (const key of ['1', '2', '3', '4', '5', '6', '7', '8']) {
          await page.keyboard.press(key);
          await page.locator('section:not([hidden]) p.quiet').first().waitFor();
          if (key >= '2' && key <= '5') await page.locator('button.row').first().click();
          if (key === '4') await page.getByText('<b>bold</b>').first().waitFor();
          if (key === '7')
            await page.locator('.map .name', { hasText: 'onerror' }).first().waitFor();
          assert.equal(await page.locator('img, b:not(.legend b)').count(), 0, `page ${key}`);
        }
      });
    } finally {
      await bad.close();
    }
  });

  test('--privacy leaves out the pages and choices that could show nothing, and explains a hidden filter', async () => {
    const tabsOf = async (
      level: PrivacyLevel,
      use: Parameters<TestConsole['inPage']>[1],
    ): Promise<void> => {
      const hidden = await served(level);
      try {
        await inPage({ at: hidden }, use);
      } finally {
        await hidden.close();
      }
    };
    await tabsOf('counts', async (page) => {
      assert.deepEqual(await page.getByRole('tab').allTextContents().then(trimmed), [
        ...['Now', 'Trace', 'Configuration', 'Checks'],
      ]);
      await page.keyboard.press('2');
      await page.getByRole('tab', { name: 'Now', selected: true }).waitFor();
    });
    await tabsOf('no-clients', async (page) => {
      await page.keyboard.press('2');
      await page.locator('#filter').fill('from-ip=10.244.1.4');
      await page.getByText('a filter by from-ip is hidden', { exact: false }).waitFor();
      await page.getByText('Refused', { exact: true }).waitFor();
      await page.locator('#filter').fill('');
      await page.getByText('Live', { exact: true }).waitFor();
      await page.keyboard.press('Escape');
      await page.keyboard.press('8');
      await page.locator('#name').waitFor();
      assert.equal(await page.locator('#as-client').count(), 0);
      await page.keyboard.press('7');
      await page.locator('.map .node').first().waitFor();
    });
  });

  test('a lookup is traced as its client, with the observed replies', async () => {
    await inPage({}, async (page) => {
      await page.keyboard.press('2');
      await page.locator('button.row').first().click();
      await page.getByRole('button', { name: 'trace this lookup' }).first().click();
      await page.getByText('large.example.com', { exact: false }).first().waitFor();
      assert.match(page.url(), /#trace\?name=large\.example\.com&client=10\.244\.1\.4/);
      const table = page.getByRole('region', { name: 'Clients, queries and results' });
      await table.getByRole('row', { name: /musl/ }).waitFor();
      assert.match(await page.locator('#answers').inputValue(), /answer: TC 198\.18\.0\./);
      assert.match(await page.locator('#resolv').inputValue(), /^nameserver 10\.96\.0\.10\n/);
      // The address alone restores the page.
      await page.reload();
      await table.getByRole('row', { name: /musl/ }).waitFor();
      assert.equal(await page.locator('#name').inputValue(), 'large.example.com');
    });
  });

  test('the given Corefile is shown with findings next to its lines, and its chain is drawn', async () => {
    await inPage({}, async (page) => {
      await page.keyboard.press('9');
      await page.getByText('deploy/Corefile').waitFor();
      await page.getByRole('list', { name: 'Chain of .:53' }).waitFor();
      assert.equal(await page.locator('#corefile-text').inputValue(), corefile);
      await page.locator('#corefile-text').fill('.:53 {\n    forwrd . 10.0.0.2\n}\n');
      await page.getByText('forwrd', { exact: false }).nth(1).waitFor();
      await page.locator('.gutter .error').waitFor();
      assert.match(page.url(), /#configuration\?corefile=/);
    });
  });

  test('several clusters are compared, and the address contains the selected one', async () => {
    const { model, name } = await readFiles(options);
    const at = await it.serve(model, options, name, { clusters: ['prod-eu', 'prod-us'] });
    try {
      await inPage({ at }, async (page) => {
        const table = page.getByRole('region', { name: 'Clusters' });
        await table.getByRole('button', { name: 'prod-us' }).click();
        await table.getByRole('button', { name: 'prod-eu' }).waitFor();
        assert.match(page.url(), /#now\?cluster=prod-us$/);
        assert.deepEqual(await violationsOf(page), []);
        await page.keyboard.press('6');
        await page.locator('button.row').first().waitFor();
        await page.reload();
        await page.locator('button.row').first().waitFor();
        assert.equal(await page.getByLabel('Cluster').inputValue(), 'prod-us');
      });
    } finally {
      await at.close();
    }
  });

  test('a finding links to the dashboard at the time of the finding', async () => {
    const { model, name } = await readFiles(options);
    const grafana = 'https://grafana.example/d/dns?from={from}&to={to}';
    const at = await it.serve(model, options, name, { grafana });
    try {
      await inPage({ at }, async (page) => {
        await page.keyboard.press('6');
        await page.locator('button.row').first().click();
        const link = page.getByRole('link', { name: 'Grafana at that time' });
        const [row] = model.view({ view: 'findings' }).rows;
        const { searchParams } = new URL((await link.getAttribute('href')) ?? '');
        assert.equal(Number(searchParams.get('from')), Math.floor(row!.beganMs) - 300_000);
        assert.ok(Number(searchParams.get('to')) > row!.beganMs);
      });
    } finally {
      await at.close();
    }
  });

  test('a selection is exported as packets, JSON and a page without scripts', async () => {
    await inPage({}, async (page) => {
      await page.keyboard.press('2');
      await page.locator('#filter').fill('protocol=tcp');
      await page.getByText('Export this selection').click();
      await page.getByText(/ndots capture .*tcp-blocked.pcapng -o flow --protocol tcp/).waitFor();
      for (const [link, file] of [
        ['Packets', 'lookups.pcapng'],
        ['Lookups', 'lookups.json'],
        ['Findings', 'findings.html'],
      ] as const) {
        const started = page.waitForEvent('download');
        await page.locator('.offers').getByRole('link', { name: link }).click();
        assert.equal((await started).suggestedFilename(), file);
      }
    });
  });

  for (const colorScheme of ['light', 'dark'] as const)
    for (const width of [1280, 360])
      test(`axe finds nothing on any view: ${colorScheme}, ${width} px`, async () => {
        await inPage({ colorScheme, width }, async (page) => {
          for (const key of '1234567890c') {
            await page.keyboard.press(key);
            await page.locator('section:not([hidden]) p.quiet').first().waitFor();
            if (key >= '2' && key <= '6') await page.locator('button.row').first().click();
            if (key === '2') await page.getByText('Export this selection').click();
            if (key === '8' || key === '9') await page.locator('.status.done').waitFor();
            const violations = await violationsOf(page);
            assert.deepEqual(violations, [], `view ${key}`);
          }
        });
      });
});

function trimmed(texts: readonly string[]): readonly string[] {
  return texts.map((text) => text.trim());
}
