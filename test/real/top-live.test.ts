import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Views } from '../../src/tools/watch/view.ts';
import { start, type Child } from '../kit/child.ts';
import { missing } from '../kit/dig.ts';
import { until } from '../kit/dnstap-collector.ts';
import { serveAnswers } from '../kit/local-answers.ts';

/** `ndots top` on live traffic, from packets on an interface and from a log that it follows. */

const program = join(import.meta.dirname, '../../bin/ndots');
const root = process.getuid?.() === 0 ? false : 'packet sockets need root';

/** The latest line of JSON that was printed, or null if there is none yet. */
function latest<V extends keyof Views>(child: Child): Views[V] | null {
  const line = child
    .output()
    .split('\n')
    .findLast((each) => each.startsWith('{') && each.endsWith('}'));
  return line === undefined ? null : (JSON.parse(line) as Views[V]);
}

test(
  'a query by dig is a row a moment later',
  { skip: missing('dig') ?? root, timeout: 120_000 },
  async () => {
    const server = await serveAnswers({
      rules: [{ name: 'live.example.com', answer: '192.0.2.1' }],
    });
    const words = [
      'top',
      '-i',
      'lo',
      '--port',
      String(server.port),
      '-o',
      'json',
      '--view',
      'names',
    ];
    const top = start('top', [program, ...words, '--for', '100s']);
    try {
      await until(() => latest(top) !== null, 'the first line');
      for (let i = 0; i < 3; i++)
        await start('dig', ['dig', '@127.0.0.1', '-p', String(server.port), 'live.example.com'])
          .exitCode;
      await until(() => (latest<'names'>(top)?.rows[0]?.lookups ?? 0) === 3, 'three lookups');
      const { rows, lostByKernel, inputs } = latest<'names'>(top)!;
      assert.equal(rows[0]!.name, 'live.example.com.');
      assert.equal(lostByKernel, 0);
      assert.equal(inputs[0]!.state, 'reading');
    } finally {
      await top.stop();
      await server.close();
    }
  },
);

test('lines of a log that is followed count when they come', { timeout: 120_000 }, async () => {
  const line = (id: number): string =>
    `[INFO] 10.244.1.4:40112 - ${id} "A IN log.example.com. udp 34 false 512" NXDOMAIN qr,aa,rd 110 0.0004s`;
  const top = start('top', [program, 'top', '-', '-o', 'json', '--view', 'clients']);
  try {
    top.tell(line(1));
    await until(() => (latest<'clients'>(top)?.rows[0]?.queries ?? 0) === 1, 'the first line');
    top.tell(line(2));
    await until(() => (latest<'clients'>(top)?.rows[0]?.queries ?? 0) === 2, 'the second line');
    top.end();
    assert.equal(await top.exitCode, 0);
    assert.equal(latest<'clients'>(top)!.rows[0]!.address, '10.244.1.4');
  } finally {
    await top.stop();
  }
});
