import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeWorld } from '../../../../test/kit/world.ts';
import type { ListenerLimits } from '../../transport/limits/limits.ts';

async function limitsOf(corefile: string): Promise<Record<string, ListenerLimits>> {
  const world = await makeWorld(corefile);
  const { endpoints } = world.server;
  await world.close();
  return Object.fromEntries(endpoints.map(({ server, limits }) => [server, limits]));
}

describe('limits', () => {
  test('without it there are defaults, with fewer connections for TLS', async () => {
    const of = await limitsOf('. tls://. {\n tls cert.pem key.pem\n whoami\n}').catch(() => null);
    const { 'dns://:53': plain } = of ?? (await limitsOf('. {\n whoami\n}'));
    assert.deepEqual(plain, {
      readTimeoutMs: 3000,
      writeTimeoutMs: 5000,
      idleTimeoutMs: 10_000,
      maxQueries: -1,
      connections: 4096,
      spared: 4096,
      handshakes: 256,
      streams: 250,
      pipelined: 256,
      unreadBytes: 131_072,
      heldBytes: 16_777_216,
      waiting: 65_536,
    });
  });

  test("each limit can be set, lines add up, and an address's first block decides", async () => {
    const { 'dns://:53': plain } = await limitsOf(
      `a. {
        limits {
          waiting 100
          connections 50
          held 1MiB
        }
        limits {
          unread 4KiB
          pipelined 7
        }
        whoami
      }
      b. {
        limits {
          waiting 5
        }
        whoami
      }`,
    );
    assert.equal(plain!.waiting, 100);
    assert.equal(plain!.connections, 50);
    assert.equal(plain!.heldBytes, 1_048_576);
    assert.equal(plain!.unreadBytes, 4096);
    assert.equal(plain!.pipelined, 7);
    assert.equal(plain!.streams, 250);
  });

  test('numbers and sizes out of range, and an empty block, are rejected', async () => {
    const cases: readonly (readonly [string, RegExp])[] = [
      ['waiting 0', /COUNT must be in range \[1, 16777216\]: 0/],
      ['held 1KiB', /SIZE must be in range \[64KiB, 4GiB\]: 1KiB/],
      ['held much', /not a size: "much"/],
      ['connection 5', /unknown property 'connection'/],
      ['', /limits block with no limits specified/],
    ];
    for (const [line, message] of cases)
      await assert.rejects(limitsOf(`. {\n limits {\n${line}\n}\n whoami\n}`), message);
  });
});
