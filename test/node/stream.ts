/** Streams queries from a client pod during an event that affects its DNS, and reports the result. */
import assert from 'node:assert/strict';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { printed } from '../kit/child.ts';
import type { NodeCluster } from './node-cluster.ts';
import { DNS_ADDRESS } from './node-settings.ts';
import { say } from './progress.ts';
import type { LostQuery, StreamReport } from './stream-client.ts';

/** Cluster and external names: ordinary services, a headless one, an external one, and some that do not exist. */
const questions = [
  'web.shop.svc.cluster.local/A',
  'web.shop.svc.cluster.local/AAAA',
  'db.shop.svc.cluster.local/A',
  'db-0.db.shop.svc.cluster.local/A',
  'kubernetes.default.svc.cluster.local/A',
  '_http._tcp.web.shop.svc.cluster.local/SRV',
  'pay.shop.svc.cluster.local/A',
  'www.example.com/A',
  'www.example.com/AAAA',
  'nosuch.shop.svc.cluster.local/A',
  'www.example.com.shop.svc.cluster.local/A',
  'nosuch.invalid/A',
];

const RATE = 200;
/** For how long queries are also sent before and after an event, to show the healthy state. */
const BEFORE_MS = 2000;

/**
 * Sends queries from the client pod while `happens` runs and for `afterMs` after that.
 * @param options.server the server to query, by default the cluster DNS service
 */
export async function streamWhile(
  node: NodeCluster,
  name: string,
  happens: () => Promise<unknown>,
  options: { readonly server?: string; readonly afterMs?: number; readonly rate?: number } = {},
): Promise<StreamReport> {
  const { server = DNS_ADDRESS, afterMs = 6000, rate = RATE } = options;
  const client = await node.pidOf('shop', 'app=client');
  const program = join(import.meta.dirname, 'stream-client.ts');
  const words = [process.execPath, '--disable-warning=ExperimentalWarning', program];
  let happenedAt = 0;
  const child = node.startInPod(name, client, [...words, server, String(rate), ...questions]);
  try {
    await printed(child, /asking/);
    await pause(BEFORE_MS);
    happenedAt = Date.now();
    await happens();
    await pause(afterMs);
    child.end();
    await child.exitCode;
  } finally {
    await child.stop();
  }
  const line = child.output().split('\n').at(-2) ?? '';
  const report = JSON.parse(line) as StreamReport;
  say(`${name}: ${summaryOf(report)}`);
  if (report.lost.length > 0) say(`${name}: lost ${firstLost(report, happenedAt)}`);
  return report;
}

/** A summary for the run's log, on one line. */
function summaryOf({ sent, lost, refused, p50, p99, most }: StreamReport): string {
  const reasons = Map.groupBy(lost, ({ protocol, failure }) => `${protocol} ${failure}`);
  return [
    `${sent} queries, ${lost.length} lost`,
    ...[...reasons].map(([reason, { length }]) => `${length} ${reason}`),
    ...(lost.length > 0 ? [`within ${spanOf(lost).toFixed(1)} s`] : []),
    `${refused} SERVFAIL or REFUSED`,
    `p50 ${p50.toFixed(1)}, p99 ${p99.toFixed(0)}, most ${most.toFixed(0)} ms`,
  ].join(', ');
}

/** The number of lost queries to print. */
const LOST_SHOWN = 8;

/** The first lost queries, with the seconds since the event started. */
function firstLost({ lost }: StreamReport, happenedAt: number): string {
  return lost
    .slice(0, LOST_SHOWN)
    .map(({ sentAt, protocol, question, failure }) => {
      const seconds = ((sentAt - happenedAt) / 1000).toFixed(2);
      return `${question} ${protocol} ${failure} at ${seconds} s`;
    })
    .join(', ');
}

/** The seconds between the first and the last of some queries. */
function spanOf(queries: readonly LostQuery[]): number {
  if (queries.length === 0) return 0;
  const times = queries.map(({ sentAt }) => sentAt);
  return (Math.max(...times) - Math.min(...times)) / 1000;
}

/**
 * The number of runnable processes per CPU above which a server may wait longer for the CPU than a client waits for a
 * reply.
 */
const TOO_BUSY = 4;

/**
 * Asserts that no query was lost or answered with SERVFAIL or REFUSED.
 * @param forgiven the losses to expect, by protocol
 */
export function assertNoneLost(
  t: TestContext,
  report: StreamReport,
  forgiven: { readonly TCP?: number } = {},
): void {
  const { lost, refused } = report;
  const udp = lost.filter(({ protocol }) => protocol === 'UDP').length;
  if (udp > 0 || lost.length > (forgiven.TCP ?? 0) || refused > 0) failUnlessBusy(t, report);
}

/** Asserts that all losses are within this time. */
export function assertLostWithin(t: TestContext, report: StreamReport, seconds: number): void {
  if (spanOf(report.lost) >= seconds) failUnlessBusy(t, report);
}

/** Losses on an overloaded machine prove nothing, so the test is skipped and reports its figures. */
function failUnlessBusy(t: TestContext, { lost, sent, refused, p99 }: StreamReport): void {
  const busy = loadavg()[0]! / availableParallelism();
  const figures = `${lost.length} of ${sent} queries lost within ${spanOf(lost).toFixed(1)} s, ${refused} refused, p99 ${p99.toFixed(0)} ms`;
  if (busy > TOO_BUSY)
    t.skip(`${busy.toFixed(0)} processes per CPU want to run: ${figures} prove nothing`);
  else assert.fail(`${figures}: ${JSON.stringify(lost.slice(0, 5))}`);
}

/** Waits in real time, because a real cluster has no other clock. */
export const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));
