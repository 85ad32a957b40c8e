import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { VirtualClock } from '../../base/virtual-clock.ts';
import { ConnectionTable, type EvictableConnection } from './connection-table.ts';

class Client implements EvictableConnection {
  busy = false;
  state: 'open' | 'finishing' | 'destroyed' = 'open';

  finish(): void {
    this.state = 'finishing';
  }

  destroy(): void {
    this.state = 'destroyed';
  }
}

function fill(
  count: number,
  limit: number,
): { table: ConnectionTable<Client>; clients: Client[]; evicted: () => number } {
  let evicted = 0;
  const table = new ConnectionTable<Client>(() => evicted++);
  const clients = Array.from({ length: count }, () => new Client());
  for (const client of clients) table.add(client, limit);
  return { table, clients, evicted: () => evicted };
}

const destroyed = (clients: readonly Client[]): number[] =>
  clients.flatMap(({ state }, i) => (state === 'destroyed' ? [i] : []));

describe('a table of connections', () => {
  test('when memory is short, each new connection replaces an idle one, never a busy one, and the number stays the same', () => {
    const { table, clients, evicted } = fill(17, 100);
    clients[0]!.busy = true;
    assert.equal(table.evictIdle(16), true);
    assert.deepEqual(destroyed(clients), [1]);
    assert.equal(table.evictIdle(16), true);
    assert.equal(table.evictIdle(16), false);
    assert.deepEqual(destroyed(clients), [1, 2]);
    assert.equal(evicted(), 2);
    const all = fill(20, 100);
    for (const client of all.clients) client.busy = true;
    all.table.evictIdle(16);
    assert.deepEqual(destroyed(all.clients), []);
  });

  test('admits every client and closes the connection that has been silent longest', () => {
    const { table, clients, evicted } = fill(3, 3);
    table.touch(clients[0]!);
    table.add(new Client(), 3);
    table.add(new Client(), 3);
    assert.deepEqual(destroyed(clients), [1, 2]);
    assert.equal(evicted(), 2);
    assert.equal(table.size, 3);
  });

  test('spares clients that wait for a reply while another is idle', () => {
    const { table, clients } = fill(3, 3);
    clients[0]!.busy = true;
    clients[1]!.busy = true;
    table.add(new Client(), 3);
    assert.deepEqual(destroyed(clients), [2]);
  });

  test('when all are waiting, the one that has waited longest is closed', () => {
    const { table, clients } = fill(200, 200);
    for (const client of clients) client.busy = true;
    const newcomer = new Client();
    table.add(newcomer, 200);
    assert.deepEqual(destroyed(clients), [0]);
    assert.ok([...table].includes(newcomer));
  });

  test('a lower limit applies when the next connection arrives', () => {
    const { table, clients } = fill(5, 5);
    table.add(new Client(), 2);
    assert.deepEqual(destroyed(clients), [0, 1, 2, 3]);
    table.add(new Client(), 0);
    assert.equal(table.size, 1, 'there is always room for one');
  });

  test('a closed connection can be neither touched nor evicted', () => {
    const { table, clients } = fill(2, 2);
    assert.ok(table.delete(clients[0]!));
    assert.ok(!table.delete(clients[0]!));
    table.touch(clients[0]!);
    assert.deepEqual([...table], [clients[1]]);
  });

  test('closing lets connections finish, and after the grace period ends those that do not', async () => {
    const clock = new VirtualClock();
    const { table, clients } = fill(2, 2);
    const closing = table.close(clock, 1000);
    assert.deepEqual(
      clients.map(({ state }) => state),
      ['finishing', 'finishing'],
    );
    table.delete(clients[0]!);
    await clock.run(closing);
    assert.equal(clock.now(), 1000);
    assert.deepEqual(destroyed(clients), [1]);
    const { table: quick, clients: few } = fill(1, 2);
    const closed = quick.close(clock, 1000);
    quick.delete(few[0]!);
    await clock.run(closed);
    assert.equal(clock.now(), 1000, 'no longer than it takes');
  });
});
