/**
 * The `ndots console` page in a real Chromium: `node bench/console-page.ts`. The model has 100 000 lookups. Reports the
 * compressed size of the first files, and the time until the current numbers are first shown. The Lookups page then
 * receives frames while it is filtered, sorted and scrolled. Its memory and its longest task are reported. Goals apply
 * to a task's CPU time, because tasks take longer on a busy machine.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { chromium, type Page } from 'playwright-core';
import { fileSource, noBrowser, readFiles, TestConsole } from '../test/kit/console-browser.ts';
import { writeNodeCapture } from '../test/kit/node-captures.ts';
import { LiveModel } from '../src/tools/watch/live-model.ts';
import { spread } from './kit/dnsperf.ts';
import { figure, smoke } from './kit/figures.ts';

if (noBrowser !== false) {
  console.log(`skipped: ${noBrowser}`);
  process.exit(0);
}
const LOOKUPS = smoke ? 1000 : 100_000;
/** More packets than necessary, because a lookup has at least a query and a reply. */
const PACKETS = 12 * LOOKUPS;
const LOADS = smoke ? 1 : 9;
/** The time for which frames arrive before the table is used, in milliseconds. */
const WATCH_MS = smoke ? 1000 : 10_000;
const MIB = 1024 * 1024;
const PATIENCE_MS = 120_000;

/** A trace event (Trace Event Format), with times in microseconds. */
interface TraceEvent {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  readonly dur?: number;
  /** CPU time. */
  readonly tdur?: number;
  readonly args?: { readonly name?: string; readonly data?: { readonly frames?: unknown } };
}

const directory = mkdtempSync(join(tmpdir(), 'ndots-bench-'));
const it = new TestConsole();
try {
  await it.build();
  const bytes = it.built.first
    .map((name) => gzipSync(readFileSync(join(it.directory, name))).length)
    .reduce((sum, each) => sum + each, 0);
  const capture = join(directory, 'node.pcap');
  writeNodeCapture(capture, { packets: PACKETS, trouble: 'none', sightings: 1 });
  const model = new LiveModel({ limits: { windowMs: 86_400_000, detailBytes: 256 * MIB } });
  const options = fileSource(capture);
  const { name } = await readFiles(options, model);
  const server = await it.serve(model, options, name);
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox'],
  });
  const opened = async (use: (page: Page) => Promise<void>): Promise<void> => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    await use(page);
    await context.close();
  };

  const paints: number[] = [];
  const replies: number[] = [];
  for (let load = 0; load < LOADS; load++)
    await opened(async (page) => {
      await page.goto(server.address);
      await page.getByText('Live', { exact: true }).waitFor();
      const [paint, reply] = await page.evaluate(() => [
        performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN,
        (performance.getEntriesByType('navigation' as 'resource')[0] as PerformanceResourceTiming)
          .responseEnd,
      ]);
      paints.push(paint!);
      replies.push(reply!);
    });

  let heap = NaN;
  let nodes = NaN;
  const tasks = { cpu: 0, wall: 0 };
  await opened(async (page) => {
    await page.goto(server.address);
    await page.getByText('Live', { exact: true }).waitFor();
    await browser.startTracing(page, { categories: ['toplevel', '__metadata'] });
    await page.keyboard.press('2');
    await page.locator('button.row').first().waitFor();
    await page.waitForTimeout(WATCH_MS);
    await page.locator('button.row').first().click();
    for (const column of ['Took', 'Name', 'Client'])
      await page.getByRole('button', { name: column }).first().click();
    await page.mouse.wheel(0, 4000);
    await page.keyboard.press('/');
    await page.keyboard.type('type=AAAA', { delay: 30 });
    await page.waitForTimeout(WATCH_MS / 2);
    const trace = JSON.parse((await browser.stopTracing()).toString()) as {
      readonly traceEvents: readonly TraceEvent[];
    };
    for (const { dur = 0, tdur = 0 } of mainTasks(trace.traceEvents)) {
      tasks.cpu = Math.max(tasks.cpu, tdur / 1000);
      tasks.wall = Math.max(tasks.wall, dur / 1000);
    }
    const session = await page.context().newCDPSession(page);
    await session.send('HeapProfiler.collectGarbage');
    await session.send('Performance.enable');
    const { metrics } = await session.send('Performance.getMetrics');
    const metric = (wanted: string): number =>
      metrics.find((each) => each.name === wanted)?.value ?? NaN;
    heap = metric('JSHeapUsedSize') / MIB;
    nodes = metric('Nodes');
  });
  await browser.close();
  await server.close();

  console.log(`${model.ring.size} lookups`);
  figure('console page: first files, compressed', bytes / 1024, 'KiB', { atMost: 60 });
  figure('console page: first paint, median', spread(paints).median, 'ms', { atMost: 300 });
  figure('console page: document received, median', spread(replies).median, 'ms');
  figure('console page: JavaScript heap with 100 000 lookups', heap, 'MiB', { atMost: 60 });
  figure('console page: elements in the document', nodes, '');
  figure('console page: longest task, CPU time', tasks.cpu, 'ms', { atMost: 50 });
  figure('console page: longest task, elapsed time', tasks.wall, 'ms');
} finally {
  await it.close();
  rmSync(directory, { recursive: true });
}
process.exit(0);

/** The tasks on the busiest main thread of any renderer, which is the page's. */
function mainTasks(events: readonly TraceEvent[]): readonly TraceEvent[] {
  const mains = events.filter(
    ({ name, args }) => name === 'thread_name' && args?.name === 'CrRendererMain',
  );
  const threads = mains.map(({ pid, tid }) =>
    events.filter(
      (event) => event.pid === pid && event.tid === tid && event.name.endsWith('RunTask'),
    ),
  );
  const sum = (of: readonly TraceEvent[]): number =>
    of.reduce((all, { tdur = 0 }) => all + tdur, 0);
  return threads.toSorted((one, other) => sum(other) - sum(one))[0] ?? [];
}
