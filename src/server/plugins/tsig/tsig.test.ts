import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { problemsIn } from '../../base/problem.ts';
import { algorithmNamed, SignedExchange, type TsigSigningKey } from '../../transport/tsig-keys.ts';
import { OPCODE, RCODE, typeNumber } from '../../wire/iana.ts';
import { dataOf, readMessage, writeMessage, type Message } from '../../wire/message.ts';
import { foldName, parseName } from '../../wire/name.ts';
import { tsig as tsigRecord } from '../../wire/record/tsig.ts';
import { readTsig, tsigAlgorithms, tsigAt } from '../../wire/tsig.ts';

const secret = Buffer.alloc(32, 7).toString('base64');

const key = (name = 'key.example.', algorithm = 'hmac-sha256', text = secret): TsigSigningKey => ({
  name: foldName(parseName(name)),
  secret: Buffer.from(text, 'base64'),
  algorithm: algorithmNamed(algorithm)!,
});

function question(text: string, opcode: number = OPCODE.QUERY, edns = true): Uint8Array {
  const [name, type] = text.split(' ') as [string, string];
  return writeMessage({
    id: 4711,
    flags: opcode << 11,
    rcode: 0,
    question: [{ name, type: typeNumber(type)!, class: 1 }],
    answer: [],
    authority: [],
    additional: [],
    edns: edns ? { udpSize: 1232, version: 0, dnssecOk: false, options: [] } : null,
  });
}

async function served(t: TestContext, lines: string, more = 'whoami'): Promise<World> {
  const world = await makeWorld(`. {\n tsig example.org {\n${lines}\n }\n ${more}\n}`);
  t.after(() => world.close());
  return world;
}

const now = (world: World): number => Math.floor(world.clock.wall() / 1000);

interface Signed {
  readonly reply: Message;
  readonly bytes: Uint8Array;
  /** The error in the reply's TSIG record, or null if there is none. */
  readonly error: number | null;
  /** Size of the MAC in bytes. */
  readonly mac: number;
  readonly exchange: SignedExchange;
}

/** Sends a signed query, which `alter` changes after it was signed. */
async function asked(
  world: World,
  text: string,
  by: TsigSigningKey = key(),
  alter: (bytes: Uint8Array) => Uint8Array = (bytes) => bytes,
  seconds = now(world),
): Promise<Signed> {
  const exchange = new SignedExchange(by);
  const bytes = (await world.send(alter(exchange.sign(question(text), seconds))))!;
  const reply = readMessage(bytes);
  const data = dataOf(reply.additional.at(-1) ?? ({} as never), tsigRecord);
  return {
    reply,
    bytes,
    exchange,
    error: data === null ? null : data.error,
    mac: data === null ? 0 : data.mac.length,
  };
}

describe('tsig', () => {
  for (const { name } of tsigAlgorithms)
    test(`the reply to a query signed with ${name} is signed with it too`, async (t) => {
      const world = await served(t, `secret key.example ${secret}\nrequire all`);
      const { reply, bytes, exchange, error } = await asked(
        world,
        'a.example.org. A',
        key('key.example.', name),
      );
      assert.deepEqual([reply.rcode, error], [0, 0]);
      assert.equal(exchange.prove(bytes, now(world)), true);
      assert.ok(reply.edns !== null, 'the signature comes after OPT');
    });

  test('unsigned queries are refused if a signature is required, and others are unaffected', async (t) => {
    const world = await served(
      t,
      `secret key.example ${secret}\nrequire TXT AXFR\nrequire_opcode NOTIFY`,
    );
    const rcode = async (text: string, opcode?: number): Promise<number> =>
      readMessage((await world.send(question(text, opcode)))!).rcode;
    assert.equal(await rcode('example.org. TXT'), RCODE.REFUSED);
    assert.equal(await rcode('example.org. SOA', OPCODE.NOTIFY), RCODE.REFUSED);
    assert.equal(await rcode('a.example.org. A'), 0);
    assert.equal(await rcode('example.net. TXT'), 0, 'another zone');
    assert.match(world.metrics(), /ndots_tsig_queries_total\{result="missing"\} 2/);
  });

  test('an unknown key is answered with BADKEY and without a MAC', async (t) => {
    const world = await served(t, `secret key.example ${secret}`);
    const { reply, bytes, error, mac } = await asked(world, 'example.org. A', key('other.'));
    assert.deepEqual([reply.rcode, error, mac], [RCODE.NOTAUTH, RCODE.BADKEY, 0]);
    assert.equal(readTsig(bytes, tsigAt(bytes)).signedAt, 0, 'nothing was signed');
    assert.equal(reply.answer.length, 0);
  });

  test('a wrong secret, and a message modified in transit, cause BADSIG', async (t) => {
    const world = await served(t, `secret key.example ${secret}`);
    const wrong = key('key.example.', 'hmac-sha256', Buffer.alloc(32, 8).toString('base64'));
    const changed = (bytes: Uint8Array): Uint8Array => bytes.with(13, 0x7a);
    for (const one of [
      await asked(world, 'example.org. A', wrong),
      await asked(world, 'a.example.org. A', key(), changed),
    ])
      assert.deepEqual([one.reply.rcode, one.error, one.mac], [RCODE.NOTAUTH, 16, 0]);
    assert.match(world.metrics(), /ndots_tsig_queries_total\{result="BADSIG"\} 2/);
  });

  test("if clocks differ by more than the fudge, the client gets the server's time, signed", async (t) => {
    const world = await served(t, `secret key.example ${secret}`);
    const late = now(world) - 301;
    const { reply, bytes, exchange, error, mac } = await asked(
      world,
      'example.org. A',
      key(),
      undefined,
      late,
    );
    assert.deepEqual([reply.rcode, error, mac], [RCODE.NOTAUTH, RCODE.BADTIME, 32]);
    const { other, signedAt } = readTsig(bytes, tsigAt(bytes));
    assert.equal(signedAt, late);
    assert.equal(Buffer.from(other).readUIntBE(0, 6), now(world));
    assert.throws(() => exchange.prove(bytes, late), /BADTIME/);
    const near = await asked(world, 'example.org. A', key(), undefined, now(world) + 299);
    assert.equal(near.reply.rcode, 0);
  });

  test('an ID changed by a forwarder does not matter, because the original one is signed', async (t) => {
    const world = await served(t, `secret key.example ${secret}`);
    const { reply, error } = await asked(world, 'example.org. A', key(), (bytes) =>
      bytes.with(0, 0x55),
    );
    assert.deepEqual([reply.rcode, error, reply.id >> 8], [0, 0, 0x55]);
  });

  test('a signature that is not the last record, or is truncated, causes FORMERR', async (t) => {
    const world = await served(t, `secret key.example ${secret}`);
    const other = (bytes: Uint8Array): Uint8Array => {
      const at = tsigAt(bytes);
      const opt = bytes.slice(at - 11, at);
      return Uint8Array.from([...bytes.subarray(0, at - 11), ...bytes.subarray(at), ...opt]);
    };
    const cut = (bytes: Uint8Array): Uint8Array => {
      const out = bytes.slice(0, -22);
      const at = tsigAt(bytes) + 13 + 8;
      out[at + 1]! -= 22;
      return out;
    };
    // Otherwise, a client that knows a key's name could have 64 KiB hashed for each message.
    const talkative = (bytes: Uint8Array): Uint8Array => {
      const at = tsigAt(bytes) + 13 + 8;
      const out = Uint8Array.from([...bytes, ...new Uint8Array(7)]);
      out[at + 1]! += 7;
      out[bytes.length - 1] = 7;
      return out;
    };
    for (const alter of [other, cut, talkative])
      assert.equal((await asked(world, 'example.org. A', key(), alter)).reply.rcode, RCODE.FORMERR);
  });

  test('a truncated MAC causes BADTRUNC, and one that is too short FORMERR', async (t) => {
    const world = await served(t, `secret key.example ${secret}`);
    const shortened =
      (left: number) =>
      (bytes: Uint8Array): Uint8Array => {
        const at = tsigAt(bytes);
        const head = at + 'key.example.'.length + 1;
        const size = head + 10 + 'hmac-sha256.'.length + 1 + 8;
        const out = [
          ...bytes.subarray(0, size),
          0,
          left,
          ...bytes.subarray(size + 2, size + 2 + left),
          ...bytes.subarray(size + 34),
        ];
        out[head + 9]! -= 32 - left;
        return Uint8Array.from(out);
      };
    const cut = await asked(world, 'example.org. A', key(), shortened(16));
    assert.deepEqual([cut.reply.rcode, cut.error, cut.mac], [RCODE.NOTAUTH, RCODE.BADTRUNC, 32]);
    assert.equal(
      (await asked(world, 'example.org. A', key(), shortened(15))).reply.rcode,
      RCODE.FORMERR,
    );
  });

  test('failures of later plugins are signed, and so are truncated replies', async (t) => {
    const world = await served(
      t,
      `secret key.example ${secret}`,
      'template ANY ANY {\n rcode SERVFAIL\n }',
    );
    const { reply, bytes, exchange } = await asked(world, 'example.org. A');
    assert.equal(reply.rcode, RCODE.SERVFAIL);
    assert.equal(exchange.prove(bytes, now(world)), true);
    const long = Array.from(
      { length: 30 },
      (_, i) => `answer "{{ .Name }} 60 IN TXT ${'x'.repeat(40)}${i}"`,
    ).join('\n');
    const wide = await served(t, `secret key.example ${secret}`, `template ANY ANY {\n${long}\n }`);
    const one = await asked(wide, 'example.org. TXT');
    assert.ok((one.reply.flags & 0x0200) !== 0 && one.bytes.length <= 1232);
    assert.equal(one.exchange.prove(one.bytes, now(wide)), true);
  });

  test("an alias's target needs no separate signature", async (t) => {
    const world = await served(
      t,
      `secret key.example ${secret}\nrequire all`,
      'rewrite name exact alias.example.org. www.example.org. answer auto\n hosts {\n 192.0.2.1 www.example.org\n }',
    );
    const { reply, bytes, exchange } = await asked(world, 'alias.example.org. A');
    assert.equal(reply.answer.length, 1);
    assert.equal(exchange.prove(bytes, now(world)), true);
  });

  test('keys can be in files with named.conf syntax', async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-tsig-'));
    t.after(() => rmSync(directory, { recursive: true }));
    const corefile = '. {\n tsig {\n secrets keys\n }\n whoami\n}';
    writeFileSync(
      join(directory, 'keys'),
      `# two keys\nkey "key.example." {\n  algorithm hmac-sha512; /* a\n comment */\n  secret "${secret}";\n};\nkey b { secret ${secret}; };\n`,
    );
    const world = await makeWorld(corefile, { directory });
    t.after(() => world.close());
    for (const name of ['key.example.', 'b.'])
      assert.equal((await asked(world, 'example.org. A', key(name))).reply.rcode, 0);
    for (const [text, message] of [
      ['key a {\n algorithm hmac-sha256;\n};', /keys:1: expected secret for key "a"/],
      ['zone a { };', /keys:1: unexpected token "zone"/],
      [`key a { secret ${secret}; };\nkey a { secret ${secret}; };`, /keys:2: key "a" redefined/],
      [`key a { secret ${secret};`, /unexpected token ""/],
    ] as const) {
      writeFileSync(join(directory, 'keys'), text);
      await assert.rejects(makeWorld(corefile, { directory }), message);
    }
    writeFileSync(join(directory, 'keys'), `key a { secret ${secret}; };`);
    await assert.rejects(
      makeWorld(`. {\n tsig {\nsecret a ${secret}\nsecrets keys\n }\n}`, { directory }),
      (error) => /key "a\." redefined/.test(String(problemsIn(error)?.[0]?.message)),
    );
    rmSync(join(directory, 'keys'));
    await assert.rejects(makeWorld(corefile, { directory }), /cannot be read/);
  });

  test('a secret that is not base64, and an unknown algorithm, cause a warning and verify nothing', async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'ndots-tsig-'));
    t.after(() => rmSync(directory, { recursive: true }));
    writeFileSync(
      join(directory, 'keys'),
      `key "file.example." {\n algorithm hmac-md5;\n secret "?";\n};\n`,
    );
    const world = await makeWorld(
      '. {\n tsig example.org {\nsecret line.example test-key\nsecrets keys\n }\n whoami\n}',
      { directory },
    );
    t.after(() => world.close());
    const log = world.log.join('\n');
    assert.match(log, /the secret of key "line\.example\." is not base64.*\n {2}at Corefile:3/);
    assert.match(log, /keys:2: key "file\.example\.": hmac-md5 must no longer be used/);
    assert.match(log, /keys:3: the secret of key "file\.example\." is not base64/);
    for (const name of ['line.example.', 'file.example.']) {
      const { reply, error } = await asked(world, 'example.org. A', key(name));
      assert.deepEqual([reply.rcode, error], [RCODE.NOTAUTH, 16]);
    }
  });

  test('errors in the directive are reported', async () => {
    for (const [line, message] of [
      [`secret a ${secret}\nsecret a ${secret}`, /Corefile:4 .*key "a\." redefined/],
      ['require FOO', /unknown query type 'FOO'/],
      ['require_opcode FOO', /unknown opcode 'FOO'/],
      ['require', /Wrong argument count/],
    ] as const)
      await assert.rejects(makeWorld(`. {\n tsig {\n${line}\n }\n}`), message);
  });
});
