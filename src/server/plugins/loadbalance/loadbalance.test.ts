import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { directive } from '../../corefile/syntax.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import type { DnsRecord, Message } from '../../wire/message.ts';
import type { Query } from '../../transport/query.ts';
import type { Reply } from '../../wire/reply.ts';
import { fromUpstream } from '../../wire/upstream.ts';
import { ttlOffsets } from '../../../../test/kit/ttl-offsets.ts';
import { replyBytes, type Answer } from '../../../../test/kit/upstream.ts';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { loadbalance } from './loadbalance.ts';

/** Answers each question from one stored reply as a cache does, and checks that the reply is not modified. */
function stored(answer: (query: Query) => Answer, levelled: number): Plugin {
  const replies = new Map<string, { readonly reply: Reply; readonly bytes: Uint8Array }>();
  return definePlugin({
    syntax: directive({ name: 'stored', summary: 'answers from memory', repeat: 'once' }),
    setup: () => (query) => {
      const key = `${query.name} ${query.type}`;
      let entry = replies.get(key);
      if (entry === undefined) {
        const bytes = replyBytes(query, answer(query));
        const taken = fromUpstream(bytes, 0, bytes.length, 'stored');
        if (taken instanceof Error) throw taken;
        const ttlAt = ttlOffsets(taken.bytes, taken.start, taken.end);
        const reply = levelled >= 0 ? taken.with({ ttlAt, ttl: levelled }) : taken;
        entry = { reply, bytes: reply.bytes.slice(reply.start, reply.end) };
        replies.set(key, entry);
      }
      const { reply, bytes } = entry;
      assert.deepEqual(
        reply.bytes.slice(reply.start, reply.end),
        bytes,
        'the stored bytes were changed',
      );
      return reply;
    },
  });
}

async function world(
  lines: string,
  answer: Answer | ((query: Query) => Answer),
  levelled = -1,
  directory = '/world',
): Promise<World> {
  const text = `. {\n ${lines.replaceAll('{', '{\n').replaceAll(';', '\n').replaceAll('}', '\n}\n')}\n stored\n}`;
  const behind = stored(typeof answer === 'function' ? answer : () => answer, levelled);
  return makeWorld(text, { clock: new VirtualClock(), plugins: [loadbalance, behind], directory });
}

const data = (record: DnsRecord): string => Object.values(record.data).join(' ');

async function orders(
  world: World,
  question: string,
  times: number,
  of: (message: Message) => readonly DnsRecord[] = ({ answer }) => answer,
): Promise<Map<string, number>> {
  const seen = new Map<string, number>();
  for (let i = 0; i < times; i++) {
    const order = of(await world.ask(question, { proto: i % 2 ? 'tcp' : 'udp' }))
      .map(data)
      .join(' | ');
    seen.set(order, (seen.get(order) ?? 0) + 1);
  }
  return seen;
}

const three: Answer = { answer: ['@ 30 A 10.0.0.1', '@ 30 A 10.0.0.2', '@ 30 A 10.0.0.3'] };

describe('round_robin', () => {
  test('all orders of three addresses are about equally likely', async () => {
    const seen = await orders(await world('loadbalance', three), 'www.example.org. A', 600);
    assert.equal(seen.size, 6);
    for (const count of seen.values())
      assert.ok(count > 50 && count < 160, String([...seen.values()]));
  });

  test('two addresses swap half of the time', async () => {
    const seen = await orders(
      await world('loadbalance round_robin', { answer: three.answer!.slice(0, 2) }),
      'www.example.org. A',
      200,
    );
    assert.equal(seen.size, 2);
    for (const count of seen.values()) assert.ok(count > 60, String(count));
  });

  test('aliases stay first, regardless of the original order', async () => {
    const records = [
      'b.example.org. 30 A 10.0.0.1',
      '@ 30 CNAME b.example.org.',
      'b.example.org. 30 A 10.0.0.2',
      '@ 30 TXT x',
    ];
    const all = permutations(records);
    assert.equal(all.length, 24);
    for (const answer of all) {
      const found = await orders(await world('loadbalance', { answer }), 'www.example.org. A', 20);
      for (const order of found.keys())
        assert.match(order, /^b\.example\.org\. \| x \| 10\.0\.0\.[12] \| 10\.0\.0\.[12]$/);
    }
  });

  test('MX records are shuffled, and their compressed targets stay correct', async () => {
    const answer: Answer = {
      answer: [
        '@ 30 MX 10 mail1.example.org.',
        '@ 30 MX 20 mail2.example.org.',
        '@ 30 MX 30 mx.mail1.example.org.',
      ],
    };
    const seen = await orders(await world('loadbalance', answer), 'example.org. MX', 200);
    assert.equal(seen.size, 6);
    for (const order of seen.keys()) {
      assert.deepEqual(order.split(' | ').toSorted(), [
        '10 mail1.example.org.',
        '20 mail2.example.org.',
        '30 mx.mail1.example.org.',
      ]);
    }
  });

  test('addresses of SRV targets in the additional section keep their names', async () => {
    const answer: Answer = {
      answer: ['@ 30 SRV 0 50 80 a.example.org.', '@ 30 SRV 0 50 80 b.example.org.'],
      additional: [
        'a.example.org. 30 A 10.0.0.1',
        'a.example.org. 30 AAAA 2001:db8::1',
        'b.example.org. 30 A 10.0.0.2',
      ],
    };
    const here = await world('loadbalance', answer, 9);
    const seen = new Set<string>();
    for (let i = 0; i < 60; i++) {
      const { additional, answer: srv } = await here.ask('_http._tcp.example.org. SRV');
      seen.add(additional.map(data).join());
      assert.deepEqual(srv.map(data), ['0 50 80 a.example.org.', '0 50 80 b.example.org.']);
      assert.deepEqual(
        additional.map((record) => `${record.name} ${record.ttl} ${data(record)}`).toSorted(),
        ['a.example.org. 9 10.0.0.1', 'a.example.org. 9 2001:db8::1', 'b.example.org. 9 10.0.0.2'],
      );
    }
    assert.equal(seen.size, 6);
  });

  test("TTLs move with their records, and a reply's overriding TTL applies to all", async () => {
    const answer: Answer = { answer: ['@ 10 A 10.0.0.1', '@ 20 A 10.0.0.2', '@ 30 A 10.0.0.3'] };
    const plain = await world('loadbalance', answer);
    const levelled = await world('loadbalance', answer, 7);
    for (let i = 0; i < 20; i++) {
      for (const record of (await plain.ask('www.example.org. A')).answer)
        assert.equal(data(record), `10.0.0.${record.ttl / 10}`);
      assert.ok((await levelled.ask('www.example.org. A')).answer.every(({ ttl }) => ttl === 7));
    }
  });

  test("owner names follow the client's spelling", async () => {
    const here = await world('loadbalance', three);
    const { answer } = await here.ask('WWW.example.ORG. A');
    assert.ok(answer.every(({ name }) => name === 'WWW.example.ORG.'));
  });

  test('denials and zone transfers are unchanged', async () => {
    const denied = await orders(
      await world('loadbalance', { ...three, rcode: 'NXDOMAIN' }),
      'www.example.org. A',
      20,
    );
    assert.equal(denied.size, 1);
    const here = await world('loadbalance', three);
    for (let i = 0; i < 10; i++) {
      assert.equal(
        (await here.ask('example.org. AXFR', { proto: 'tcp' })).answer.map(data).join(),
        '10.0.0.1,10.0.0.2,10.0.0.3',
      );
    }
  });

  test('prefer moves addresses in its networks to the front, for both families', async () => {
    const answer: Answer = {
      answer: ['@ 30 A 10.0.0.1', '@ 30 A 10.1.0.1', '@ 30 A 10.0.0.2', '@ 30 A 10.1.0.2'],
    };
    const seen = await orders(
      await world('loadbalance { prefer 10.1.0.0/16 2001:db8::/32 }', answer),
      'www.example.org. A',
      60,
    );
    assert.equal(seen.size, 4);
    for (const order of seen.keys())
      assert.match(order, /^10\.1\.0\.. \| 10\.1\.0\.. \| 10\.0\.0\.. \| 10\.0\.0\..$/);
  });
});

describe('one address', () => {
  test('the identical reply is passed on', async () => {
    const [first, second] = [
      await world('loadbalance', { answer: ['@ 30 A 10.0.0.1'] }),
      await world('loadbalance', {}),
    ];
    assert.equal((await first.ask('www.example.org. A')).answer.length, 1);
    assert.equal((await second.ask('www.example.org. A')).answer.length, 0);
  });
});

describe('weighted', () => {
  const withFile = async (
    run: (directory: string, write: (text: string) => void) => Promise<void>,
  ): Promise<void> => {
    const directory = mkdtempSync(join(tmpdir(), 'weights-'));
    try {
      await run(directory, (text) => writeFileSync(join(directory, 'weights'), text));
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  };
  const firsts = async (here: World, times = 300): Promise<Map<string, number>> => {
    const seen = new Map<string, number>();
    for (const [order, count] of await orders(here, 'www.example.org. A', times)) {
      const first = order.split(' | ')[0]!;
      seen.set(first, (seen.get(first) ?? 0) + count);
    }
    return seen;
  };

  test('the first address is drawn by weight, and unlisted addresses have weight 1', async () => {
    await withFile(async (directory, write) => {
      write('# canary\nWWW.example.org\n10.0.0.1 8\n10.0.0.2 1 # new\n');
      const seen = await firsts(await world('loadbalance weighted weights', three, -1, directory));
      assert.ok(seen.get('10.0.0.1')! > 200 && seen.get('10.0.0.3')! > 5, String([...seen]));
    });
  });

  test('a changed file is read again, and an invalid one changes nothing', async () => {
    await withFile(async (directory, write) => {
      write('www.example.org\n10.0.0.1 255\n');
      const here = await world('loadbalance weighted weights { reload 10s }', three, -1, directory);
      assert.ok((await firsts(here, 100)).get('10.0.0.1')! > 90);
      write('www.example.org\n10.0.0.2 255\n');
      await here.clock.advance(10_001);
      assert.ok((await firsts(here, 100)).get('10.0.0.2')! > 90);
      assert.ok(
        here.log.some((line) =>
          line.includes('[INFO] plugin/loadbalance: Successfully reloaded weight file'),
        ),
      );
      write('www.example.org\n10.0.0.3 256\n');
      await here.clock.advance(10_001);
      assert.ok((await firsts(here, 100)).get('10.0.0.2')! > 90);
      assert.ok(
        here.log.some((line) => /\[ERROR\].*Wrong weight value:"256"/.test(line)),
        here.log.join('\n'),
      );
    });
  });

  test('a missing file is awaited', async () => {
    await withFile(async (directory, write) => {
      const here = await world('loadbalance weighted weights', three, -1, directory);
      assert.ok(
        here.log.some(
          (line) =>
            line.includes('Failed to open weight file') && line.includes('Will try again in 30s'),
        ),
      );
      write('www.example.org\n10.0.0.2 255\n');
      await here.clock.advance(30_001);
      assert.ok((await firsts(here, 100)).get('10.0.0.2')! > 90);
    });
  });

  test('two in a server block are merged: the last policy, and the networks of both', async () => {
    await withFile(async (directory, write) => {
      write('www.example.org\n10.0.0.2 255\n');
      const both = 'loadbalance weighted weights; loadbalance { prefer 10.0.0.3/32 }';
      const here = await world(both, three, -1, directory);
      assert.equal((await firsts(here, 20)).get('10.0.0.3'), 20);
    });
  });

  test('errors in the file and the directive are reported', async () => {
    await withFile(async (directory, write) => {
      const refusal = async (lines: string): Promise<string> => {
        try {
          await world(lines, three, -1, directory);
        } catch (error) {
          return (error as Error).message;
        }
        return 'it started';
      };
      write('10.0.0.1 5\n');
      assert.match(await refusal('loadbalance weighted weights'), /Missing domain name/);
      write('www.example.org\n10.0.0 5\n');
      assert.match(await refusal('loadbalance weighted weights'), /Wrong IP address:"10.0.0"/);
      write('www.example.org\n10.0.0.1 5 5\n');
      assert.match(await refusal('loadbalance weighted weights'), /Could not parse weight line/);
      write('a..b\n');
      assert.match(await refusal('loadbalance weighted weights'), /Wrong domain name/);
      assert.match(
        await refusal('loadbalance weighted nofile { reload 0 }'),
        /weight file nofile does not exist/,
      );
      assert.match(await refusal('loadbalance weighted'), /missing weight file argument/);
      assert.match(await refusal('loadbalance sticky'), /unknown policy: sticky/);
      assert.match(await refusal('loadbalance { reload 5s }'), /unknown property 'reload'/);
      assert.match(
        await refusal('loadbalance { prefer 10.0.0.0/33 }'),
        /invalid CIDR address: 10.0.0.0\/33/,
      );
      assert.match(
        await refusal('loadbalance weighted weights { prefer 10.0.0.0/8 }'),
        /unknown property 'prefer'/,
      );
    });
  });
});

/** Returns every order of these items. */
function permutations<T>(items: readonly T[]): readonly (readonly T[])[] {
  if (items.length < 2) return [items];
  return items.flatMap((first, at) =>
    permutations(items.toSpliced(at, 1)).map((rest) => [first, ...rest]),
  );
}
