import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { sleep } from '../../base/clock.ts';
import { directive } from '../../corefile/syntax.ts';
import { definePlugin } from '../../engine/contract/plugin.ts';
import { metadataProviders } from '../../engine/contract/ports.ts';
import { FLAG, RCODE, TYPE } from '../../wire/iana.ts';
import { failure } from '../../wire/reply.ts';
import { SECTION } from '../../wire/writer.ts';
import { plugins } from '../../../../test/kit/plugins.ts';
import { printSeconds } from '../../engine/contract/log-format.ts';

/** Answers by the first label and provides metadata. */
const oracle = definePlugin({
  syntax: directive({ name: 'oracle', summary: 'answers by the first label', repeat: 'last' }),
  setup(_options, context) {
    const { writer, clock } = context;
    context.offer(metadataProviders, (_query, notes) => {
      notes.set('oracle/mood', 'good');
    });
    return (query) => {
      const [label] = query.name.split('.');
      if (label === 'late')
        return sleep(clock, 37.990251).then(() => failure(RCODE.REFUSED, 'oracle'));
      if (label === 'refused') return failure(RCODE.REFUSED, 'oracle');
      writer.reply(query, FLAG.AA | FLAG.RA | FLAG.AD);
      if (label === 'found')
        writer.record(SECTION.answer, null, TYPE.A, 5, Uint8Array.of(192, 0, 2, 1));
      else if (label === 'delegated') {
        writer.open(SECTION.authority, null, TYPE.NS, 5);
        writer.u8(0);
        writer.close();
      } else {
        writer.open(SECTION.authority, null, TYPE.SOA, 5);
        for (let i = 0; i < 22; i++) writer.u8(0);
        writer.close();
      }
      return writer.finish(label === 'nowhere' ? RCODE.NXDOMAIN : RCODE.NOERROR, 'oracle');
    };
  },
});

const worldWith = (lines: string): Promise<World> =>
  makeWorld(`.:53 {\n${lines}\n oracle\n}`, { plugins: [...plugins, oracle] });

async function logged(
  lines: string,
  ...questions: readonly Parameters<World['tryAsk']>[]
): Promise<readonly string[]> {
  const world = await worldWith(lines);
  for (const question of questions) await world.tryAsk(...question);
  await world.close();
  return world.log;
}

describe('log', () => {
  test("the common format is CoreDNS's", async () => {
    const lines = await logged('log', [
      'Found.Example.ORG. A',
      { id: 29_008, edns: true, udpSize: 4096, dnssecOk: true },
    ]);
    assert.deepEqual(lines, [
      '[INFO] 10.244.0.9:40000 - 29008 "A IN found.example.org. udp 46 true 4096" NOERROR qr,aa,rd,ra,ad 51 0s',
    ]);
  });

  test('a delayed reply has its duration in seconds', async () => {
    const [line] = await logged('log', ['late.example.org. A']);
    assert.equal(
      line,
      '[INFO] 10.244.0.9:40000 - 4711 "A IN late.example.org. udp 34 false 512" REFUSED qr,rd 34 0.037990251s',
    );
  });

  test("durations use Go's format", () => {
    assert.equal(printSeconds(0), '0s');
    assert.equal(printSeconds(0.0005), '0.0000005s');
    assert.equal(printSeconds(1500), '1.5s');
    assert.equal(printSeconds(37.990251), '0.037990251s');
  });

  test('every placeholder has its value', async () => {
    const format =
      '"{type}|{name}|{class}|{proto}|{remote}|{local}|{size}|{port}|{rcode}|{rsize}|{>rflags}|{>bufsize}|{>do}|{>id}|{>opcode}"';
    const lines = await logged(`log . ${format}`, [
      'Found.org. AAAA',
      { proto: 'tcp', client: '2001:db8::1', flags: 0x0010 },
    ]);
    assert.deepEqual(lines, [
      '[INFO] AAAA|found.org.|IN|tcp|[2001:db8::1]|10.96.0.10|27|40000|NOERROR|43|qr,aa,ra,cd|65535|false|4711|0',
    ]);
  });

  test('AD is logged for clients that requested it with AD or DO, because others do not get it', async () => {
    const lines = await logged(
      'log . "{>rflags}"',
      ['found.org. A', { flags: FLAG.RD }],
      ['found.org. A', { flags: FLAG.RD | FLAG.AD }],
      ['found.org. A', { flags: FLAG.RD, edns: true, dnssecOk: true }],
    );
    assert.deepEqual(lines, [
      '[INFO] qr,aa,rd,ra',
      '[INFO] qr,aa,rd,ra,ad',
      '[INFO] qr,aa,rd,ra,ad',
    ]);
  });

  test('class ANY is CLASS255, since ANY is a type', async () => {
    assert.deepEqual(
      await logged('chaos\n log . "{class} {type}"', ['found.org. ANY', { qclass: 255 }]),
      ['[INFO] CLASS255 ANY'],
    );
  });

  test('combined adds the opcode, unknown placeholders stay, and unknown metadata is a dash', async () => {
    const lines = await logged('metadata\n log . "{ {x} } {/oracle/mood} {/no/such} {combined}"', [
      'found.org.',
    ]);
    assert.match(lines[0]!, /^\[INFO\] \{ \{x\} \} good - 10\.244\.0\.9:40000 - .* 0s "0"$/);
  });

  test('without metadata its placeholders are dashes', async () => {
    assert.deepEqual(await logged('log . "{/oracle/mood}"', ['found.org.']), ['[INFO] -']);
  });

  test('a single argument is always a name, even if it looks like a format', async () => {
    assert.deepEqual(await logged('log {type}', ['found.org.']), []);
  });

  test('the first rule whose name covers the question decides', async () => {
    const rules = 'log example.org a.test "one {name}"\n log . "two {name}"';
    assert.deepEqual(
      await logged(rules, ['x.EXAMPLE.org.'], ['a.test.'], ['b.test.'], ['anexample.org.']),
      [
        '[INFO] one x.example.org.',
        '[INFO] one a.test.',
        '[INFO] two b.test.',
        '[INFO] two anexample.org.',
      ],
    );
  });

  test('classes: success, denial, error', async () => {
    const all = ['found', 'delegated', 'nowhere', 'nodata', 'refused'].map((label): [string] => [
      `${label}. A`,
    ]);
    const of = (classes: string): Promise<readonly string[]> =>
      logged(`log . "{name}" {\n class ${classes}\n}`, ...all);
    assert.deepEqual(await of('success'), ['[INFO] found.', '[INFO] delegated.']);
    assert.deepEqual(await of('denial'), ['[INFO] nowhere.', '[INFO] nodata.']);
    assert.deepEqual(await of('error'), ['[INFO] refused.']);
    assert.deepEqual(await of('denial error'), [
      '[INFO] nowhere.',
      '[INFO] nodata.',
      '[INFO] refused.',
    ]);
    assert.equal((await of('all')).length, 5);
  });

  test('a query dropped by acl is logged', async () => {
    const lines = await logged('log . "{name} {rcode} {>rflags} {rsize}"\n acl {\n drop\n}', [
      'found.org.',
    ]);
    assert.deepEqual(lines, ['[INFO] found.org. - - 0']);
  });

  test('an unknown class is rejected, and a format without a name is explained', async () => {
    await assert.rejects(worldWith('log {\n class good\n}'), /invalid Class: good/);
    await assert.rejects(worldWith('log . {\n classes all\n}'), /unknown property 'classes'/);
  });
});
