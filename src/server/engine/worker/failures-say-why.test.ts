import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plugins } from '../../../../test/kit/plugins.ts';
import { scriptedNetwork } from '../../../../test/kit/upstream.ts';
import { makeWorld } from '../../../../test/kit/world.ts';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { EDE, OPTION, RCODE } from '../../wire/iana.ts';

const rows: readonly (readonly [
  what: string,
  block: string,
  question: string,
  rcode: number,
  code: number,
])[] = [
  ['nothing but `log`', '. {\n log\n}', 'a. A', RCODE.SERVFAIL, EDE.OTHER],
  ['an empty block', '. {\n}', 'a. A', RCODE.REFUSED, EDE.NOT_AUTHORITATIVE],
  ['no block for the name', 'x. {\n whoami\n}', 'a. A', RCODE.REFUSED, EDE.NOT_AUTHORITATIVE],
  [
    '`hosts` without fallthrough',
    '. {\n hosts {\n  192.0.2.1 a\n }\n}',
    'b. A',
    RCODE.SERVFAIL,
    EDE.OTHER,
  ],
  [
    '`template` for another zone',
    '. {\n template IN A b. {\n  rcode NXDOMAIN\n }\n}',
    'a. A',
    RCODE.SERVFAIL,
    EDE.OTHER,
  ],
  [
    '`forward` for another zone',
    '. {\n forward b. 192.0.2.1\n}',
    'a. A',
    RCODE.SERVFAIL,
    EDE.OTHER,
  ],
  ['`cache` in front of nothing', '. {\n cache\n}', 'a. A', RCODE.SERVFAIL, EDE.OTHER],
  [
    'a rewrite to no name',
    `. {\n rewrite name regex a\\. ${'x'.repeat(70)}.\n whoami\n}`,
    'a. A',
    RCODE.SERVFAIL,
    EDE.OTHER,
  ],
  [
    'an upstream that is silent',
    '. {\n forward . 192.0.2.1\n}',
    'a. A',
    RCODE.SERVFAIL,
    EDE.NO_REACHABLE_AUTHORITY,
  ],
  ['another class', '. {\n whoami\n}', 'a. A CH', RCODE.REFUSED, EDE.NOT_SUPPORTED],
];

for (const [what, block, question, rcode, code] of rows)
  test(`the reply gives the reason for a failure: ${what}`, async () => {
    const clock = new VirtualClock();
    const network = scriptedNetwork(clock, () => ({ fail: 'timeout' }));
    const world = await makeWorld(block, { clock, network, plugins });
    const qclass = question.endsWith(' CH') ? 3 : 1;
    const reply = await world.ask(question.replace(' CH', ''), { edns: true, qclass });
    await world.close();
    const errors = reply.edns!.options.filter((option) => option.code === OPTION.EDE);
    assert.equal(reply.rcode, rcode);
    assert.deepEqual(
      errors.map(({ data }) => (data[0]! << 8) | data[1]!),
      [code],
    );
    const text = Buffer.from(errors[0]!.data.subarray(2)).toString();
    assert.match(text, /^[a-z]/);
    assert.doesNotMatch(text, /\d+\.\d+\.\d+\.\d+/, 'addresses of upstreams are not told');
  });
