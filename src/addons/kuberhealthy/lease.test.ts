import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeLog } from '../../server/base/log.ts';
import { seededRandom } from '../../server/base/random.ts';
import { VirtualClock } from '../../server/base/virtual-clock.ts';
import type { ApiClient, ApiRequest } from '../../server/kube/api/client.ts';
import { statusFailure } from '../../server/kube/api/failure.ts';
import { Lease } from './lease.ts';

/** An API server that stores a single lease and can be made to stop responding. */
class LeaseServer implements ApiClient {
  readonly host = 'api';
  silent = false;
  #lease: string | null = null;

  stream({ change, into, task, signal }: ApiRequest): Promise<void> {
    if (this.silent)
      return new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      });
    if (change !== undefined) this.#lease = change.body;
    if (this.#lease === null)
      return Promise.reject(statusFailure({ status: 404, body: null, task, retryAfterMs: null }));
    into.push(Buffer.from(this.#lease));
    return Promise.resolve();
  }

  close(): void {}
}

/** A replica that wants the lease. `led` records when its leadership began, and when it was due to end. */
function replica(clock: VirtualClock, client: ApiClient, identity: string) {
  const led: [begun: number, ended: number | null][] = [];
  const stop = new AbortController();
  const lease = new Lease({
    client,
    clock,
    identity,
    namespace: 'kube-system',
    name: 'checks',
    random: seededRandom(1),
    log: makeLog(() => undefined),
  });
  const run = lease.run(stop.signal, (signal) => {
    const turn: [number, number | null] = [clock.now(), null];
    led.push(turn);
    return new Promise((resolve) => {
      signal.addEventListener('abort', () => {
        turn[1] = clock.now();
        resolve();
      });
    });
  });
  const close = async (): Promise<void> => {
    stop.abort();
    await run;
  };
  return { led, close };
}

describe('a lease', () => {
  test('belongs to one replica, and to the other as soon as the first one ends', async () => {
    const clock = new VirtualClock();
    const server = new LeaseServer();
    const first = replica(clock, server, 'a');
    await clock.advance(1000);
    const second = replica(clock, server, 'b');
    await clock.advance(60_000);
    assert.deepEqual([first.led.length, second.led.length], [1, 0]);
    await first.close();
    await clock.advance(10_000);
    assert.equal(second.led.length, 1);
    await second.close();
  });

  test('that cannot be renewed is given up before it expires for the others', async () => {
    const clock = new VirtualClock();
    const server = new LeaseServer();
    const { led, close } = replica(clock, server, 'a');
    await clock.advance(7000);
    server.silent = true;
    await clock.advance(60_000);
    // It was renewed after 6 s at the latest, and from then on lasts 15 s.
    assert.ok(led[0]![1] !== null && led[0]![1] - led[0]![0] < 6000 + 15_000, String(led));
    await close();
  });
});
