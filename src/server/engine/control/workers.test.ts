import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeLog } from '../../base/log.ts';
import { seededRandom } from '../../base/random.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { parseCorefile } from '../../corefile/parse.ts';
import { directive } from '../../corefile/syntax.ts';
import { definePlugin } from '../contract/plugin.ts';
import type { FromWorker, ToWorker } from '../contract/protocol.ts';
import { beat, makePulse, showBuilding, showLoaded } from '../contract/pulse.ts';
import { Server } from './server.ts';
import type { WorkerPort } from './worker-link.ts';

const nothing = definePlugin({
  syntax: directive({ name: 'nothing', summary: 'for tests', repeat: 'once' }),
});

/** A worker that answers every order at once, until it hangs and no longer receives orders. */
interface Fake extends WorkerPort {
  readonly heard: ToWorker[];
  hang(): void;
  /** Makes the worker end after all, although it could not be forced to. */
  endLate(): void;
}

function fake(
  clock: VirtualClock,
  onHear: (message: ToWorker, self: Fake) => void,
  ends = true,
): Fake {
  const late = Promise.withResolvers<void>();
  const pulse = makePulse();
  const handlers: ((message: FromWorker) => void)[] = [];
  let hangs = false;
  // A hanging worker does not run, so its pulse does not change.
  beat(pulse, { ...own(clock), after: (ms, run) => clock.after(ms, () => hangs || run()) });
  showLoaded(pulse);
  // Its thread would be this one, which the system knows. A fake's thread has to be unknown.
  pulse[1] = 0;
  const self: Fake = {
    heard: [],
    pulse,
    hang() {
      hangs = true;
    },
    times: () => null,
    send(message) {
      if (hangs) return;
      self.heard.push(message);
      onHear(message, self);
      if (message.kind === 'deliver' || hangs) return;
      const done: FromWorker = { kind: 'done', seq: message.seq, problem: null, ports: {} };
      queueMicrotask(() => handlers.forEach((handler) => handler(done)));
    },
    onMessage: (handler) => void handlers.push(handler),
    onExit: () => undefined,
    end: () => Promise.resolve(ends),
    get ended() {
      return late.promise;
    },
    endLate: () => late.resolve(),
  };
  return self;
}

function own(clock: VirtualClock): { now: () => number; wall: () => number } {
  return { now: () => clock.now(), wall: () => clock.wall() };
}

interface Bench {
  readonly clock: VirtualClock;
  readonly server: Server;
  readonly workers: Fake[];
  readonly log: string[];
}

async function started(
  onHear: (message: ToWorker, self: Fake) => void = () => undefined,
  ends = true,
  refuses: () => boolean = () => false,
): Promise<Bench> {
  const clock = new VirtualClock();
  const log: string[] = [];
  const workers: Fake[] = [];
  const server = new Server({
    plugins: () => Promise.resolve([nothing]),
    clock,
    random: seededRandom(1),
    log: makeLog((line) => log.push(line)),
    env: {},
    directory: '/',
    workers: () => 2,
    load: () =>
      parseCorefile({
        file: 'Corefile',
        text: '.:53 {\n nothing\n}\n',
        dnsPort: 53,
        env: {},
        directives: ['nothing'],
        readFile: () => '',
        glob: () => [],
      }),
    spawn: () => {
      if (refuses()) throw new Error('EAGAIN');
      const worker = fake(clock, onHear, ends);
      workers.push(worker);
      return worker;
    },
    onFatal: (text) => log.push(text),
  });
  await clock.run(server.start());
  return { clock, server, workers, log };
}

const kinds = ({ heard }: Fake): string[] => heard.map(({ kind }) => kind);

describe('workers', () => {
  test('one that could not be ended counts as stuck until it ends after all', async () => {
    const { clock, server, workers, log } = await started(undefined, false);
    workers[1]!.hang();
    await clock.advance(2000);
    assert.match(log.join(), /worker 1 could not be ended/);
    assert.equal(workers.length, 3);
    workers[1]!.endLate();
    await clock.advance(1);
    assert.match(log.at(-1)!, /worker 1, which was replaced, has ended/);
    await clock.run(server.stop());
  });

  test('one that hangs is replaced by one that starts with the current configuration', async () => {
    const { clock, server, workers, log } = await started();
    workers[1]!.hang();
    await clock.advance(2000);
    assert.equal(workers.length, 3);
    assert.deepEqual(kinds(workers[2]!), ['prepare', 'open', 'commit']);
    assert.deepEqual(log, [
      '[ERROR] worker 1 hangs: its event loop has not turned for 2s; it is being replaced',
      '[INFO] worker 1 serves again',
    ]);
    assert.equal(await clock.run(server.stop()), true);
  });

  test('one whose thread the system refuses is retried until there is one', async () => {
    let refused = 0;
    const { clock, server, workers, log } = await started(undefined, true, () => refused-- > 0);
    refused = 3;
    workers[1]!.hang();
    await clock.advance(2000);
    assert.equal(workers.length, 2);
    await clock.advance(10_000);
    assert.equal(workers.length, 3);
    assert.equal(log.filter((line) => /could not be restarted.*EAGAIN/.test(line)).length, 3);
    assert.match(log.at(-1)!, /worker 1 serves again/);
    assert.equal(await clock.run(server.stop()), true);
  });

  test('one that hangs before a reload does not make it fail', async () => {
    const { clock, server, workers, log } = await started();
    workers[0]!.hang();
    const reloaded = server.reload();
    assert.equal(await clock.run(reloaded), true);
    await clock.advance(100);
    assert.match(log.join('\n'), /worker 0 hangs[^]*Reloading complete[^]*worker 0 serves again/);
    await clock.run(server.stop());
  });

  test('a configuration that makes a worker hang is rejected', async () => {
    const { clock, server, log } = await started((message, self) => {
      if (message.kind !== 'prepare' || message.program.generation < 2) return;
      showBuilding(self.pulse!, true);
      self.hang();
    });
    const reloaded = server.reload();
    // It gets ten times as long.
    await clock.advance(15_000);
    assert.doesNotMatch(log.join('\n'), /hangs/);
    assert.equal(await clock.run(reloaded), false);
    await clock.advance(5000);
    assert.match(
      log.join('\n'),
      /Restart failed: worker \d hangs while it builds the configuration[^]*stays in use/,
    );
    assert.equal(log.filter((line) => line.includes('serves again')).length, 2);
    await clock.run(server.stop());
  });

  test('all workers are replaced if all of them hang', async () => {
    const { clock, server, workers } = await started();
    const states = (): string | undefined =>
      /^ndots_workers\{state="answering"\} \d$/m.exec(server.metrics())?.[0];
    assert.match(states()!, / 2$/);
    for (const worker of workers) worker.hang();
    await clock.advance(1900);
    assert.match(server.metrics(), /^ndots_worker_restarts_total\{reason="hung"\} 2$/m);
    await clock.advance(100);
    assert.match(states()!, / 2$/);
    await clock.run(server.stop());
  });
});
