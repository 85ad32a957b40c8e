/** Runs `ndots check serve` in virtual time with three replicas, over a network that loses messages. */
import { makeLog } from '../../src/server/base/log.ts';
import { seededRandom } from '../../src/server/base/random.ts';
import type { VirtualClock } from '../../src/server/base/virtual-clock.ts';
import { noObjects } from '../../src/tools/probe/cluster-objects.ts';
import { planChecks } from '../../src/tools/probe/check-file.ts';
import type { ProbeContext } from '../../src/tools/probe/check.ts';
import type { ProbeResult, ProbeNetwork, ProbeServer } from '../../src/tools/probe/network.ts';
import { CheckSchedule } from '../../src/tools/probe/watch.ts';
import { RCODE, TYPE } from '../../src/server/wire/iana.ts';
import type { Message } from '../../src/server/wire/message.ts';

export const replicas: readonly ProbeServer[] = ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map(
  (host) => ({ host, port: 53 }),
);
const random = seededRandom(7);

/** Servers that answer after a millisecond. Each message is lost with the given probability. */
export function lossyNetwork(
  clock: VirtualClock,
  dead: ReadonlySet<string>,
  loss: number,
): ProbeNetwork {
  const wait = (ms: number): Promise<void> =>
    new Promise((resolve) => void clock.after(ms, resolve));
  const isLost = (): boolean => loss > 0 && random.integer(1_000_000) < loss * 1_000_000;
  return {
    lookup: () => Promise.reject(new Error('not in this test')),
    async ask(server, questions, { timeoutMs, tries }) {
      let sent = 0;
      while (sent < tries) {
        sent++;
        if (dead.has(server.host) || isLost() || isLost()) {
          await wait(timeoutMs);
          continue;
        }
        await wait(1);
        return questions.map((question) => answered(question.name, sent));
      }
      return questions.map(() => ({
        reply: null,
        size: 0,
        tookMs: null,
        sent,
        lost: sent,
        failure: 'no reply',
      }));
    },
  };
}

function answered(name: string, sent: number): ProbeResult {
  const data = { address: new Uint8Array([10, 96, 0, 1]) };
  const reply: Message = {
    id: 1,
    flags: 0,
    rcode: RCODE.NOERROR,
    question: [],
    answer: [{ name, type: TYPE.A, class: 1, ttl: 5, data }],
    authority: [],
    additional: [],
    edns: null,
  };
  return { reply, size: 60, tookMs: 1, sent, lost: sent - 1, failure: null };
}

/** A watch that checks all replicas every 10 s, and its log. */
export function watchOf(
  clock: VirtualClock,
  dead: ReadonlySet<string>,
  loss: number,
): { watch: CheckSchedule; lines: string[] } {
  const plan = planChecks({ every: 10_000, timeout: 1000 }, [
    { kind: 'replica-answers', values: {} },
  ]);
  const context: ProbeContext = {
    ...plan,
    network: lossyNetwork(clock, dead, loss),
    random,
    clock,
    objects: noObjects,
    vip: [],
    replicas,
  };
  const lines: string[] = [];
  const watch = new CheckSchedule({
    checks: plan.checks,
    context: () => context,
    clock,
    random,
    log: makeLog((line) => lines.push(line)),
    targetsMax: 100,
  });
  return { watch, lines };
}
