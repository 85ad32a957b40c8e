import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import fc from 'fast-check';
import { plugins as allPlugins } from '../../../../test/kit/plugins.ts';
import { scriptedNetwork, type Answer, type Asked } from '../../../../test/kit/upstream.ts';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { sizeUpstream, writeQuery } from '../../transport/upstream/write-query.ts';
import type { EdnsOption } from '../../wire/edns.ts';
import { FLAG, OPTION, RCODE } from '../../wire/iana.ts';
import { readMessage, writeMessage, type Message } from '../../wire/message.ts';
import { printRecord } from '../../wire/print.ts';

/** Fields in a client's query that each change the message. */
interface Sent {
  readonly flags: number;
  readonly udpSize: number;
  readonly dnssecOk: boolean;
  readonly options: readonly EdnsOption[] | null;
  readonly upper: boolean;
  readonly tcp: boolean;
}

const FLAGS = [FLAG.RD, FLAG.AD, FLAG.CD, FLAG.RA, FLAG.TC, FLAG.AA, 0x40];

const option: fc.Arbitrary<EdnsOption> = fc.record({
  code: fc.oneof(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: 0xffff })),
  data: fc.uint8Array({ maxLength: 24 }),
});

const sent: fc.Arbitrary<Sent> = fc.record({
  flags: fc.subarray(FLAGS).map((flags) => flags.reduce<number>((all, flag) => all | flag, 0)),
  udpSize: fc.integer({ min: 0, max: 0xffff }),
  dnssecOk: fc.boolean(),
  options: fc.option(fc.array(option, { maxLength: 4 })),
  upper: fc.boolean(),
  tcp: fc.boolean(),
});

let open: World | null = null;

afterEach(async () => {
  await open?.close();
  open = null;
});

interface Here {
  readonly clock: VirtualClock;
  readonly asked: readonly Asked[];
  upstream(): Message[];
  ask(name: string, sent?: Partial<Sent>): Promise<Message>;
  /** Sends a query without advancing the clock. */
  begin(name: string, sent?: Partial<Sent>): Promise<Message>;
  metrics(): string;
}

async function world(corefile: string, script: (asked: Asked) => Answer): Promise<Here> {
  const clock = new VirtualClock();
  const network = scriptedNetwork(clock, script);
  const text = corefile.replaceAll(' { ', ' {\n').replaceAll(' }', '\n}\n').replaceAll(';', '\n');
  const here = (open = await makeWorld(text, { clock, network, plugins: allPlugins }));
  const { exchange } = here;
  const begin = async (name: string, made: Partial<Sent> = {}): Promise<Message> => {
    const bytes = message(name, made);
    const reply = await exchange(bytes, { proto: made.tcp === true ? 'tcp' : 'udp' });
    assert.ok(reply, `no reply to ${name}`);
    return readMessage(reply);
  };
  return {
    clock,
    asked: network.asked,
    upstream: () => network.asked.map(({ query }) => onWire(query)),
    begin,
    ask: (name, made) => clock.run(begin(name, made)),
    metrics: () => here.metrics(),
  };
}

function message(name: string, made: Partial<Sent>): Uint8Array {
  const { flags = FLAG.RD, udpSize = 1232, dnssecOk = false, options = null, upper } = made;
  return writeMessage({
    id: 7,
    flags,
    rcode: 0,
    question: [{ name: upper === true ? name.toUpperCase() : name, type: 1, class: 1 }],
    answer: [],
    authority: [],
    additional: [],
    edns: options === null ? null : { udpSize, version: 0, dnssecOk, options },
  });
}

function onWire(query: Asked['query']): Message {
  const bytes = new Uint8Array(sizeUpstream(query));
  writeQuery(query, 1, bytes, 0);
  return readMessage(bytes);
}

const answers = ({ answer }: Message): string =>
  answer.map((record) => printRecord(record).toLowerCase()).join('\n');

/** An upstream whose answer depends on every option sent to it, as with Client Subnet. */
function byOptions({ query }: Asked): Answer {
  const options = onWire(query).edns?.options ?? [];
  let sum = 0;
  for (const { code, data } of options) sum = (sum * 31 + code + data.length) & 0xff;
  return { answer: [`@ 300 A 192.0.2.${sum}`] };
}

describe("EDNS options and flags in a client's query", () => {
  for (const corefile of ['. { forward . 10.0.0.1 }', '. { cache; forward . 10.0.0.1 }'])
    test(`do not change the answer: ${corefile}`, async () => {
      const here = await world(corefile, byOptions);
      let number = 0;
      await fc.assert(
        fc.asyncProperty(sent, sent, async (one, other) => {
          const name = `n${number++}.example.`;
          const first = await here.ask(name, one);
          const second = await here.ask(name, other);
          if (first.rcode === 0 && second.rcode === 0)
            assert.equal(answers(first), answers(second));
        }),
        { numRuns: 60 },
      );
    });

  test('do not reach the upstream: options, sizes and undefined flags', async () => {
    const here = await world('. { forward . 10.0.0.1 }', () => ({}));
    let number = 0;
    await fc.assert(
      fc.asyncProperty(sent, async (made) => {
        const before = here.asked.length;
        await here.ask(`n${number++}.example.`, made);
        for (const { flags, edns, additional } of here.upstream().slice(before)) {
          assert.equal(flags & ~(FLAG.RD | FLAG.AD | FLAG.CD), 0);
          assert.equal(additional.length, 0);
          if (made.options === null) assert.equal(edns, null);
          else
            assert.deepEqual(
              { ...edns },
              { udpSize: 1232, version: 0, dnssecOk: made.dnssecOk, options: [] },
            );
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe('one question, sent many times at once', () => {
  for (const corefile of ['. { forward . 10.0.0.1 }', '. { cache; forward . 10.0.0.1 }'])
    test(`is in flight at most four times over UDP and over TCP, and each query gets a reply: ${corefile}`, async () => {
      const here = await world(corefile, () => ({ afterMs: 50, answer: ['@ 300 A 192.0.2.1'] }));
      let number = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(sent, { minLength: 20, maxLength: 60 }), async (all) => {
          const name = `n${number++}.example.`;
          const from = here.asked.length;
          const replies = await here.clock.run(
            Promise.all(all.map((made) => here.begin(name, made))),
          );
          for (const { rcode } of replies) assert.equal(rcode, RCODE.NOERROR);
          const sends = here.asked.slice(from);
          for (const { at: time, proto } of sends) {
            const now = sends.filter(({ at }) => at <= time && at > time - 50);
            assert.ok(now.filter((send) => send.proto === proto).length <= 4);
          }
        }),
        { numRuns: 30 },
      );
    });

  const forms: readonly Partial<Sent>[] = [[], null].flatMap((options) =>
    [0, FLAG.RD, FLAG.CD, FLAG.AD, FLAG.RD | FLAG.CD, FLAG.RD | FLAG.AD].map((flags) => ({
      flags,
      options,
    })),
  );

  test('fails after five seconds in all its forms, including waiting ones', async () => {
    const here = await world('. { forward . 10.0.0.1 { max_connect_attempts 1 } }', () => ({
      fail: 'timeout',
    }));
    const from = here.clock.now();
    const replies = await here.clock.run(
      Promise.all(forms.map((made) => here.begin('a.example.', made))),
    );
    assert.ok(replies.every(({ rcode }) => rcode === RCODE.SERVFAIL));
    assert.ok(here.clock.now() - from <= 5000);
    const times = here.asked.filter(({ name }) => name === 'a.example.').map(({ at }) => at - from);
    assert.deepEqual(
      times,
      [0, 2000, 4000].flatMap((at) => [at, at, at, at]),
    );
    assert.match(here.metrics(), /^ndots_forward_waiting_queries 0$/m);
  });

  test('an unanswered form does not make the others fail', async () => {
    const here = await world('. { forward . 10.0.0.1 { max_connect_attempts 1 } }', ({ query }) =>
      onWire(query).edns === null ? { answer: ['@ 300 A 192.0.2.1'] } : { fail: 'timeout' },
    );
    const replies = await here.clock.run(
      Promise.all(forms.map((made) => here.begin('a.example.', made))),
    );
    assert.deepEqual(
      replies.map(({ rcode }) => rcode),
      forms.map(({ options }) => (options === null ? RCODE.NOERROR : RCODE.SERVFAIL)),
    );
  });

  test('UDP queries do not wait for TCP queries', async () => {
    const here = await world('. { forward . 10.0.0.1 }', ({ proto }) =>
      proto === 'tcp' ? { fail: 'timeout' } : { answer: ['@ 300 A 192.0.2.1'] },
    );
    const stuck = forms.map((made) => here.begin('a.example.', { ...made, tcp: true }));
    const from = here.clock.now();
    assert.equal((await here.ask('a.example.')).rcode, RCODE.NOERROR);
    assert.ok(here.clock.now() - from < 1000);
    await here.clock.run(Promise.all(stuck));
    assert.match(here.metrics(), /^ndots_forward_waiting_queries 0$/m);
  });

  test('a stream client does not get a reply truncated for a datagram', async () => {
    const here = await world('. { forward . 10.0.0.1 }', () => ({ afterMs: 50 }));
    await here.clock.run(
      Promise.all([here.begin('a.example.'), here.begin('a.example.', { tcp: true })]),
    );
    assert.deepEqual(here.asked.map(({ proto }) => proto).toSorted(), ['tcp', 'udp']);
  });
});

describe('options set by the operator', () => {
  const codes = (here: Here): number[][] =>
    here.upstream().map(({ edns }) => edns?.options.map(({ code }) => code) ?? []);

  test('are sent, while those from the client are not', async () => {
    const here = await world(
      '. { rewrite edns0 local set 0xffee hello; forward . 10.0.0.1 }',
      byOptions,
    );
    const cookie = { code: OPTION.COOKIE, data: new Uint8Array(8) };
    await here.ask('a.example.', { options: [cookie] });
    await here.ask('b.example.');
    assert.deepEqual(codes(here), [[0xffee], [0xffee]]);
  });

  test('bypass the cache only if they differ between clients', async () => {
    for (const [rule, times] of [
      ['edns0 local set 0xffee hello', 1],
      ['edns0 local set 0xffee {qname}', 1],
      ['edns0 local set 0xffee {client_ip}', 2],
      ['edns0 subnet set 24 56', 2],
      ['edns0 local append 0xffee hello', 2],
    ] as const) {
      const here = await world(`. { cache; rewrite ${rule}; forward . 10.0.0.1 }`, byOptions);
      await here.ask('a.example.');
      await here.ask('a.example.');
      assert.equal(here.asked.length, times, rule);
      await open?.close();
      open = null;
    }
  });
});
