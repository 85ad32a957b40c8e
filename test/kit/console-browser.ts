/** Opens `ndots console` in a real Chromium. */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Browser, type Page } from 'playwright-core';
import { systemClock } from '../../src/server/base/clock.ts';
import { secretGate, type AccessGate } from '../../src/server/base/http-access.ts';
import { LiveModel } from '../../src/tools/watch/live-model.ts';
import { PrivateViews, type PrivacyLevel } from '../../src/tools/watch/view-privacy.ts';
import type { Io } from '../../src/faces/cli/command.ts';
import { CheckSources } from '../../src/faces/cli/console/check-sources.ts';
import { findConsoleAssets } from '../../src/faces/cli/console/console-assets.ts';
import { ConsoleServer } from '../../src/faces/cli/console/console-server.ts';
import { HandOver } from '../../src/faces/cli/console/hand-over.ts';
import { ServerCaches } from '../../src/faces/cli/console/server-caches.ts';
import type { CommandSource } from '../../src/faces/cli/top/equivalent-command.ts';
import { startFeed } from '../../src/faces/cli/live/live-feed.ts';
import { buildConsole, type BuiltConsole } from '../../tools/browser-bundle.ts';

const program = '/usr/bin/chromium';
/** Why browser tests are skipped, or false if they run. */
export const noBrowser: string | false = existsSync(program) ? false : `needs ${program}`;
const PATIENCE_MS = 120_000;
export const consoleToken = 'a-token-for-tests-only';
export const testIo: Pick<Io, 'env' | 'signal'> = {
  env: {},
  signal: new AbortController().signal,
};
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The options for a console that reads these files. */
export function fileSource(...files: readonly string[]): CommandSource {
  return {
    ...{ files, device: null, netns: null, dnstap: null, ports: null },
    ...{ servers: [], serverToken: null, replicas: null },
    ...{ kubeconfig: null, context: null, as: null, asGroup: [], manifests: null, cluster: false },
  };
}

/** A model that has read the files, and its input's name. */
export async function readFiles(
  options: CommandSource,
  model: LiveModel = new LiveModel({}),
): Promise<{ readonly model: LiveModel; readonly name: string }> {
  const feed = await startFeed({ ...options, speed: Infinity }, model, systemClock, testIo);
  await feed.over;
  return { model, name: feed.name };
}

/** The page, built for a single test file. */
export class TestConsole {
  readonly directory: string = mkdtempSync(join(tmpdir(), 'ndots-console-'));
  /** The page, or null until it is built. Without it, the server only has the data. */
  #built: BuiltConsole | null = null;
  #browser: Browser | null = null;

  async build(): Promise<void> {
    this.#built = await buildConsole(this.directory);
  }

  get built(): BuiltConsole {
    return this.#built!;
  }

  async close(): Promise<void> {
    await this.#browser?.close();
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** Serves the page over a model. */
  serve(
    model: LiveModel,
    options: CommandSource,
    name: string,
    parts: {
      readonly privacy?: PrivacyLevel;
      /** Authorizes readers. If absent, `consoleToken` does. */
      readonly gate?: AccessGate;
      readonly corefile?: string;
      readonly caches?: ServerCaches;
      readonly checks?: CheckSources;
      readonly grafana?: string;
      /** The names of the clusters, all of which show this model. */
      readonly clusters?: readonly string[];
    } = {},
  ): Promise<ConsoleServer> {
    const { privacy = 'full', corefile = '', grafana = '' } = parts;
    return ConsoleServer.start({
      listen: { host: '127.0.0.1', port: 0 },
      hosts: [],
      gate: parts.gate ?? secretGate(() => consoleToken),
      token: parts.gate === undefined ? consoleToken : null,
      clock: systemClock,
      assets: this.#built === null ? new Map() : findConsoleAssets(this.directory),
      grafana,
      clusters: (parts.clusters ?? ['']).map((cluster) => ({
        name: cluster,
        source: () => name,
        views: new PrivateViews(model, privacy, 'key'),
        handOver: new HandOver(options, model, privacy),
        caches: parts.caches ?? new ServerCaches({ choice: null, mayFlush: false, io: testIo }),
      })),
      privacy,
      hasOwners: options.cluster || options.manifests !== null,
      corefile: () => ({ name: 'deploy/Corefile', text: corefile }),
      checks: parts.checks ?? new CheckSources({ servers: [], clock: systemClock }),
    });
  }

  /** Runs a function in a new page. Any error that the page reports fails the test. */
  async inPage(
    given: {
      readonly colorScheme?: 'light' | 'dark';
      readonly width?: number;
      readonly at: ConsoleServer;
    },
    use: (page: Page) => Promise<void>,
  ): Promise<void> {
    const { colorScheme = 'light', width = 1280, at } = given;
    // When it runs as root in a container, the browser has no sandbox.
    this.#browser ??= await chromium.launch({ executablePath: program, args: ['--no-sandbox'] });
    const context = await this.#browser.newContext({
      colorScheme,
      viewport: { width, height: 800 },
      bypassCSP: false,
    });
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('console', (message) => {
      if (message.type() === 'error') complaints.push(message.text());
    });
    await page.goto(at.address);
    await page.getByText('Live', { exact: true }).waitFor();
    await use(page);
    await context.close();
    assert.deepEqual(complaints, []);
  }
}

/** Runs axe outside the page's context, as a debugger would, because the page's own policy blocks scripts. */
export async function violationsOf(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe);
  return page.evaluate(async () => {
    const { axe: engine } = globalThis as unknown as {
      axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
    };
    const { violations } = await engine.run();
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`);
  });
}
