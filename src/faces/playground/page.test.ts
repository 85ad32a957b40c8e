import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { chromium, type Browser, type Page, type Route } from 'playwright-core';
import { playgroundLink, type PlaygroundInputs } from './link.ts';
import { buildPlayground } from '../../../tools/browser-bundle.ts';

/**
 * Tests that the playground works in real Chromium: it shows the same output as the command line, works by keyboard and
 * in both themes, and handles bad input.
 */

const program = '/usr/bin/chromium';
const skip = existsSync(program) ? false : `needs ${program}`;

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};

/** Time limit for an engine on a busy machine, in milliseconds. */
const PATIENCE_MS = 120_000;

const capture = fileURLToPath(
  new URL('../../../examples/captures/tcp-blocked.pcapng', import.meta.url),
);

const resolv = `nameserver 10.96.0.10
search shop.svc.cluster.local svc.cluster.local cluster.local
options ndots:5
`;
const answers = `rules:
  - name: api.example.com.
    answer: [DROP, 192.0.2.7]
`;
const corefile = `.:53 {
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough
    }
    forward . 10.0.0.2
    cache 30
}
corp.example:53 {
    forward . 10.9.0.1
    cache 3600
}
`;

describe('the playground in Chromium', { skip, timeout: 900_000 }, () => {
  let directory: string;
  let server: Server;
  let base: string;
  let browser: Browser;
  const asked: string[] = [];

  before(async () => {
    directory = mkdtempSync(join(tmpdir(), 'ndots-playground-'));
    const page = join(directory, 'page');
    await buildPlayground(page);
    server = createServer((request, response) => {
      const path = new URL(request.url!, 'http://localhost').pathname;
      asked.push(path);
      const file = join(page, path === '/' ? 'index.html' : path);
      if (!existsSync(file)) return void response.writeHead(404).end();
      response.setHeader('content-type', types[extname(file)]!);
      response.end(readFileSync(file));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    // Chromium cannot use its sandbox when running as root in a container.
    browser = await chromium.launch({ executablePath: program, args: ['--no-sandbox'] });
  });
  after(async () => {
    await browser?.close();
    server?.close();
    rmSync(directory, { recursive: true, force: true });
  });

  /** Runs a test in a new page, and fails if there is any error on it. */
  async function inPage(
    use: (page: Page) => Promise<void>,
    options: Parameters<Browser['newPage']>[0] = {},
  ): Promise<void> {
    const page = await browser.newPage(options);
    page.setDefaultTimeout(PATIENCE_MS);
    const complaints: string[] = [];
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('console', (message) => {
      if (message.type() === 'error') complaints.push(message.text());
    });
    page.on('dialog', (dialog) => complaints.push(`dialog: ${dialog.message()}`));
    try {
      await use(page);
      assert.deepEqual(complaints, []);
    } finally {
      await page.close();
    }
  }

  async function open<P extends keyof PlaygroundInputs>(
    page: Page,
    name: P,
    input: PlaygroundInputs[P],
  ): Promise<void> {
    await page.goto(playgroundLink(base, name, input));
  }

  /**
   * Waits for the engine.
   * @returns the status line
   */
  async function settled(page: Page): Promise<string> {
    await page.waitForSelector('.status.done, .status.failed');
    return page.locator('.status').innerText();
  }

  /** Returns the JSON that a command prints for these files. */
  function ndots(
    words: readonly string[],
    files: Readonly<Record<string, string>>,
  ): Promise<unknown> {
    const cwd = mkdtempSync(join(directory, 'cli-'));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text);
    const bin = fileURLToPath(new URL('../../../bin/ndots', import.meta.url));
    return new Promise((resolve, reject) => {
      execFile(bin, [...words, '-o', 'json'], { cwd, maxBuffer: 1 << 26 }, (_error, out, err) => {
        // Exit code 1 is a valid result, too.
        if (out === '') reject(new Error(err));
        else resolve(JSON.parse(out));
      });
    });
  }

  const texts = (page: Page, selector: string): Promise<string[]> =>
    page.locator(selector).allInnerTexts();

  test('Lookup shows what ndots trace --client all prints', async () => {
    const cluster = fileURLToPath(new URL('../../../examples/cluster', import.meta.url));
    const printed = (await ndots(
      ['trace', 'api.example.com', '--client', 'all', '--manifests', cluster].concat([
        '--resolv-conf=resolv.conf',
        '--answers=answers.yaml',
      ]),
      { 'resolv.conf': resolv, 'answers.yaml': answers },
    )) as { items: Trace[] };
    await inPage(async (page) => {
      await open(page, 'lookup', { name: 'api.example.com', resolv, answers, clients: 'all' });
      await settled(page);
      const rows = await texts(page, '.results .table:first-of-type tbody tr');
      assert.deepEqual(
        rows.slice(0, printed.items.length).map((row) => row.split(/\s*\t\s*/)),
        printed.items.map(({ client, totals, result }) => [
          client.version === '' ? client.name : `${client.name} ${client.version}`,
          ...[totals.queries, totals.names, totals.ports].map(String),
          `${result.elapsedMs} ms`,
          result.ok ? result.addresses.join(' ') : `fails: ${result.error}${codeOf(result)}`,
        ]),
      );
      const columns = page.locator('.client');
      for (const [index, { queries }] of printed.items.entries()) {
        const column = columns.nth(index);
        const shown = await column.locator('.asked .name, .reply').allInnerTexts();
        const names = new Set(queries.map(({ name }) => name.toLowerCase()));
        const known = shown.map((text) => text.toLowerCase()).filter((text) => names.has(text));
        assert.deepEqual(new Set(known), names);
        assert.equal(await column.locator('.reply').count(), queries.length);
      }
    });
  });

  test('Corefile shows what ndots lint prints', async () => {
    const printed = (await ndots(['lint', 'Corefile'], { Corefile: corefile })) as {
      findings: { code: string; severity: string; line: number; text: string }[];
    };
    assert.ok(printed.findings.length > 2);
    await inPage(async (page) => {
      await open(page, 'corefile', { corefile });
      await settled(page);
      assert.deepEqual(
        (await texts(page, '.finding .head')).map((text) => text.replaceAll(/\s+/g, ' ')),
        printed.findings.map(({ severity, code, line }) => `${severity} ${code} line ${line}`),
      );
      assert.deepEqual(
        await texts(page, '.finding .text'),
        printed.findings.map(({ text }) => text),
      );
      assert.deepEqual(await texts(page, '.block:first-of-type .chain strong'), [
        ...['errors', 'cache', 'kubernetes', 'forward'],
      ]);
      await page.getByRole('button', { name: 'line 5' }).first().click();
      const selected = await page.evaluate(() => getSelection()?.toString());
      assert.equal(selected?.trim(), 'fallthrough');
    });
  });

  test('Diff shows what ndots diff prints', async () => {
    const later = corefile
      .replace('pods insecure', 'pods disabled')
      .replace('10.9.0.1', '10.9.0.2');
    const printed = (await ndots(['diff', 'Corefile', 'Corefile.new'], {
      Corefile: corefile,
      'Corefile.new': later,
    })) as { questions: number; same: number; changes: Change[] };
    assert.ok(printed.changes.length > 1);
    await inPage(async (page) => {
      await open(page, 'diff', { before: corefile, after: later });
      const status = await settled(page);
      assert.match(
        status,
        new RegExp(`^${printed.questions} queries: ${printed.questions - printed.same} `),
      );
      const heads = await texts(page, '.finding .head code');
      assert.equal(heads.length, printed.changes.length);
      for (const [index, { witness }] of printed.changes.entries()) {
        assert.ok(heads[index]?.startsWith(`${witness.name} ${witness.type} `), witness.name);
        const sides = page.locator('.finding').nth(index).locator('.rcode');
        assert.ok((await sides.nth(0).innerText()).startsWith(witness.before.rcode));
        assert.ok((await sides.nth(1).innerText()).startsWith(witness.after.rcode));
      }
    });
  });

  test('Capture shows what ndots doctor prints', async () => {
    const printed = (await ndots(['doctor', capture], {})) as {
      findings: { code: string; title: string; seen: string[]; fix: string[] }[];
      totals: { queries: number; packets: number };
      not: unknown[];
    };
    await inPage(async (page) => {
      await open(page, 'capture', {});
      await page.setInputFiles('#file', capture);
      await settled(page);
      assert.deepEqual(
        await texts(page, '.finding .codeword'),
        printed.findings.map(({ code }) => code),
      );
      assert.deepEqual(
        await texts(page, '.finding .head strong'),
        printed.findings.map(({ title }) => title),
      );
      const facts = await texts(page, '.finding .facts dd');
      for (const { seen, fix } of printed.findings)
        for (const text of [...seen, ...fix]) assert.ok(facts.includes(text), text);
      const numbers = await texts(page, '.numbers dd');
      assert.equal(numbers[0], String(printed.totals.packets));
      assert.equal(numbers[2], String(printed.totals.queries));
      assert.match(
        await page.locator('summary').first().innerText(),
        new RegExp(`: ${printed.not.length} `),
      );
    });
  });

  for (const colorScheme of ['light', 'dark'] as const)
    test(`no panel violates WCAG 2.2 AA, ${colorScheme}`, async () => {
      const source = readFileSync(fileURLToPath(import.meta.resolve('axe-core')), 'utf8');
      const inputs = {
        lookup: { name: 'web.shop' },
        corefile: { corefile },
        diff: {},
        capture: {},
      } as const;
      for (const [name, input] of Object.entries(inputs))
        await inPage(
          async (page) => {
            await open(page, name as keyof PlaygroundInputs, input);
            if (name === 'capture') await page.setInputFiles('#file', capture);
            await settled(page);
            await page.evaluate(source);
            const found = await page.evaluate(violations);
            assert.deepEqual(found, [], `${name}: ${JSON.stringify(found)}`);
          },
          { colorScheme },
        );
    });

  for (const width of [320, 360, 3840])
    test(`nothing is wider than a screen of ${width} pixels`, async () => {
      await inPage(
        async (page) => {
          for (const name of ['lookup', 'corefile', 'diff', 'capture'] as const) {
            await open(page, name, {});
            if (name === 'capture') await page.setInputFiles('#file', capture);
            await settled(page);
            const [content, screen] = await page.evaluate(() => [
              document.documentElement.scrollWidth,
              document.documentElement.clientWidth,
            ]);
            assert.ok(content! <= screen!, `${name}: ${content} of ${screen}`);
          }
        },
        { viewport: { width, height: 800 } },
      );
    });

  test('a whole diagnosis works by keyboard', async () => {
    await inPage(async (page) => {
      await page.goto(base);
      await settled(page);
      const press = (key: string): Promise<void> => page.keyboard.press(key);
      const focused = (): Promise<string> =>
        page.evaluate(() => document.activeElement?.textContent?.trim() ?? '');
      const tabTo = async (text: string): Promise<void> => {
        for (let stops = 0; stops < 60; stops++) {
          await press('Tab');
          if ((await focused()).startsWith(text)) return;
        }
        assert.fail(`no way to "${text}"`);
      };
      await press('Tab');
      assert.equal(await focused(), 'Skip to content');
      await tabTo('Lookup');
      await press('End');
      assert.equal(await focused(), 'Capture');
      await tabTo('Open the example');
      await press('Enter');
      assert.match(await settled(page), /1 critical finding/);
      assert.deepEqual(await texts(page, '.codeword'), ['ND3011']);
      await tabTo('Excluded');
      await press('Enter');
      await page.locator('details[open] li').first().waitFor();
      // Move to the tab, then to another tool and its first field.
      for (let stops = 0; (await focused()) !== 'Capture'; stops++) {
        assert.ok(stops < 60);
        await press('Shift+Tab');
      }
      await press('Home');
      assert.equal(await focused(), 'Lookup');
      for (let stops = 0; stops < 20; stops++) {
        await press('Tab');
        if ((await page.evaluate(() => document.activeElement?.id)) === 'name') break;
      }
      await press('Control+A');
      await page.keyboard.type('web.shop');
      await page.locator('.asked .name', { hasText: 'web.shop.' }).first().waitFor();
    });
  });

  test('the initial content needs no script and no engine', async () => {
    await inPage(
      async (page) => {
        await page.goto(base);
        assert.match(await page.locator('main').innerText(), /nothing is uploaded/);
      },
      { javaScriptEnabled: false },
    );
    await inPage(async (page) => {
      await page.route('**/engine-worker.js', () => {});
      await page.goto(base);
      await page.locator('#name').waitFor();
      assert.equal(await page.locator('.tab').count(), 4);
    });
  });

  test('an engine is loaded when its panel is opened', async () => {
    asked.length = 0;
    await inPage(async (page) => {
      await open(page, 'lookup', { cluster: 'no' });
      await settled(page);
      assert.ok(asked.some((path) => path.startsWith('/trace-engine-')));
      for (const engine of ['lint', 'diff', 'doctor'])
        assert.ok(!asked.some((path) => path.startsWith(`/${engine}-engine-`)), engine);
    });
  });

  test('pasted text is stored in the address, and not sent', async () => {
    await inPage(async (page) => {
      await open(page, 'corefile', { corefile });
      await settled(page);
      asked.length = 0;
      await page.locator('#corefile-text').fill('.:53 {\n    secret-directive\n}\n');
      await page.locator('.finding', { hasText: 'secret-directive' }).first().waitFor();
      await page.waitForFunction(() => location.hash.includes('secret-directive'));
      const address = page.url();
      assert.deepEqual(
        asked.filter((path) => path.includes('secret')),
        [],
      );
      await page.goto('about:blank');
      await page.goto(address);
      await settled(page);
      assert.match(await page.locator('#corefile-text').inputValue(), /secret-directive/);
    });
  });

  test('the page reports missing engine files, and loads the engine after a reload', async () => {
    const page = await browser.newPage();
    await page.route('**/lint-engine-*', (route) => route.abort());
    await open(page, 'corefile', { corefile });
    await page.waitForSelector('.status.failed', { timeout: PATIENCE_MS });
    assert.match(
      await page.locator('.results').innerText(),
      /could not be loaded[^]*Reload the page/,
    );
    await page.unroute('**/lint-engine-*');
    await page.reload();
    await page.waitForSelector('.status.done', { timeout: PATIENCE_MS });
    await page.close();
  });

  test('reading a capture can be stopped', async () => {
    await inPage(async (page) => {
      const held: Route[] = [];
      await page.route('**/doctor-engine-*', (route) => void held.push(route));
      await open(page, 'capture', {});
      await page.setInputFiles('#file', capture);
      await page.getByRole('button', { name: 'Stop' }).click();
      await page.getByRole('button', { name: 'Open the example' }).waitFor();
      await page.unroute('**/doctor-engine-*');
      for (const route of held) await route.continue().catch(() => undefined);
      await page.setInputFiles('#file', capture);
      assert.match(await settled(page), /1 critical finding/);
    });
  });

  test('names and texts are never interpreted as HTML', async () => {
    const markup = '<img/src=x/onerror=alert(1)>';
    await inPage(async (page) => {
      await open(page, 'lookup', { name: `${markup}.example`, resolv: `search ${markup}` });
      await settled(page);
      await page.waitForFunction(() => document.body.innerText.includes('onerror=alert'));
      assert.equal(await page.locator('.results img').count(), 0);
      await open(page, 'corefile', { corefile: `.:53 {\n    ${markup}\n}\n` });
      await page.locator('.finding', { hasText: markup }).first().waitFor();
      assert.equal(await page.locator('main img').count(), 0);
    });
  });

  const refused: readonly (readonly [string, string, Buffer, RegExp])[] = [
    [
      'a picture',
      'x.png',
      Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'),
      /PNG|not a capture/i,
    ],
    [
      'garbage',
      'x.pcap',
      Buffer.from(Array.from({ length: 4096 }, (_, at) => (at * 73) % 251)),
      /not a capture|binary/,
    ],
    ['an empty file', 'empty.pcap', Buffer.alloc(0), /contains nothing/],
    [
      'a head without packets',
      'head.pcap',
      readFileSync(capture).subarray(0, 40),
      /contains nothing|not a capture/,
    ],
    ['zstd', 'x.pcap.zst', Buffer.from('28b52ffd0000000000000000000000000000', 'hex'), /zstd -d/],
  ];
  for (const [what, name, buffer, message] of refused)
    test(`${what} is refused with what to do`, async () => {
      await inPage(async (page) => {
        await open(page, 'capture', {});
        await page.setInputFiles('#file', { name, mimeType: '', buffer });
        await settled(page);
        const text = await page.locator('.results').innerText();
        assert.match(text, message);
        assert.ok(
          (await page.locator('.finding .remedy').count()) > 0 || text.includes('It reads'),
        );
      });
    });

  test('a capture that ends within a packet is read up to that packet', async () => {
    const bytes = readFileSync(capture);
    await inPage(async (page) => {
      await open(page, 'capture', {});
      await page.setInputFiles('#file', {
        ...{ name: 'cut.pcapng', mimeType: '' },
        buffer: bytes.subarray(0, bytes.length - 100),
      });
      await settled(page);
      assert.match(await page.locator('.results').innerText(), /ND3011/);
    });
  });

  test('a broken Corefile shows its error next to the line, and no diff', async () => {
    const broken = '.:53 {\n    forward\n    cache {\n';
    await inPage(async (page) => {
      await open(page, 'corefile', { corefile: broken });
      await settled(page);
      assert.ok((await page.locator('.gutter .error').count()) > 0);
      await open(page, 'diff', { before: broken, after: corefile });
      await page.waitForSelector('.status.failed');
      assert.match(await page.locator('.results').innerText(), /Corefile:\d/);
    });
  });
});

interface Trace {
  readonly client: { readonly name: string; readonly version: string };
  readonly totals: { readonly queries: number; readonly names: number; readonly ports: number };
  readonly result: {
    readonly ok: boolean;
    readonly elapsedMs: number;
    readonly addresses: readonly string[];
    readonly error: string | null;
    readonly code: string | null;
  };
  readonly queries: readonly { readonly name: string }[];
}

function codeOf({ code, error }: Trace['result']): string {
  return code !== null && !/^\d+$/.test(code) && error !== code ? ` (${code})` : '';
}

interface Change {
  readonly witness: {
    readonly name: string;
    readonly type: string;
    readonly before: { readonly rcode: string };
    readonly after: { readonly rcode: string };
  };
}

/** Runs in the page. Returns each of axe's violations with its first location. */
async function violations(): Promise<string[]> {
  const { axe } = globalThis as unknown as {
    axe: {
      run(
        context: object,
        options: object,
      ): Promise<{
        violations: { id: string; nodes: { html: string; failureSummary: string }[] }[];
      }>;
    };
  };
  const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
  const found = await axe.run(document, { runOnly: { type: 'tag', values: tags } });
  return found.violations.map(
    ({ id, nodes }) => `${id}: ${nodes[0]!.html} ${nodes[0]!.failureSummary}`,
  );
}
