import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { costsAtMost } from '../../../../test/kit/growth.ts';
import { printMessage } from '../../wire/print.ts';
import { makeWorld, type World } from '../../../../test/kit/world.ts';
import { problemsIn } from '../../base/problem.ts';
import { directive } from '../../corefile/syntax.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { FLAG, RCODE } from '../../wire/iana.ts';
import { writeRecord, type DnsRecord } from '../../wire/message.ts';
import { printRecord } from '../../wire/print.ts';
import { SECTION } from '../../wire/writer.ts';
import { parseRecord } from '../../wire/zone-text.ts';
import { errors } from '../errors/errors.ts';
import { template } from './template.ts';

/**
 * Answers `known.test` at the end of the chain, at once or later. All other names are REFUSED, so any other answer
 * comes from this plugin.
 */
function end(later: boolean): Plugin {
  return definePlugin({
    syntax: directive({ name: 'end', summary: 'ends the chain of a test', repeat: 'once' }),
    setup(_options, { writer }) {
      return (query) => {
        const kept = query.keep();
        const reply = () => {
          writer.reply(kept, 0);
          if (kept.name !== 'known.test.') return writer.finish(RCODE.REFUSED, 'end');
          const data = kept.type === 1 ? 'A 192.0.2.9' : 'AAAA 2001:db8::9';
          writeRecord(writer, SECTION.answer, parseRecord(`known.test. 77 IN ${data}`));
          return writer.finish(RCODE.NOERROR, 'end');
        };
        return later ? Promise.resolve().then(reply) : reply();
      };
    },
  });
}

function serve(body: string, later = false): Promise<World> {
  return makeWorld(`. {\n errors\n ${body}\n end\n}`, { plugins: [errors, template, end(later)] });
}

async function problems(body: string): Promise<string[]> {
  try {
    const world = await serve(body);
    await world.close();
    return [];
  } catch (error) {
    return (problemsIn(error) ?? []).map(
      ({ message, place }) => `${place?.line}:${place?.column} ${message}`,
    );
  }
}

function texts(records: readonly DnsRecord[]): string[] {
  return records.map((record) => printRecord(record).replaceAll(/\s+/g, ' '));
}

const device = `template IN A example {
  match (^|[.])ip-(?P<a>[0-9]*)-(?P<b>[0-9]*)-(?P<c>[0-9]*)-(?P<d>[0-9]*)[.]example[.]$
  answer "{{ .Name }} 60 IN A {{ .Group.a }}.{{ .Group.b }}.{{ .Group.c }}.{{ .Group.d }}"
  fallthrough
}`;

describe('template', () => {
  test("named groups become an address, with the question's spelling of the name", async () => {
    const world = await serve(device);
    const reply = await world.ask('iP-10-1-2-3.Example. A');
    assert.deepEqual(texts(reply.answer), ['iP-10-1-2-3.Example. 60 IN A 10.1.2.3']);
    assert.ok((reply.flags & FLAG.AA) !== 0);
    assert.equal(reply.rcode, RCODE.NOERROR);
  });

  test('a name that no expression matches is passed on with fallthrough', async () => {
    const world = await serve(device);
    assert.equal((await world.ask('other.example. A')).rcode, RCODE.REFUSED);
  });

  test('without fallthrough it gets SERVFAIL, and nothing is logged', async () => {
    const world = await serve(device.replace('fallthrough', ''));
    assert.equal((await world.ask('other.example. A')).rcode, RCODE.SERVFAIL);
    assert.deepEqual(
      world.log.filter((line) => line.includes('ERROR')),
      [],
    );
  });

  test('fallthrough with zones only applies to names in them', async () => {
    const world = await serve(device.replace('fallthrough', 'fallthrough sub.example'));
    assert.equal((await world.ask('x.sub.example. A')).rcode, RCODE.REFUSED);
    assert.equal((await world.ask('x.example. A')).rcode, RCODE.SERVFAIL);
  });

  test('another zone, class or type goes to the next template', async () => {
    const world = await serve(
      `${device}\ntemplate IN TXT example {\n answer "{{ .Name }} 5 IN TXT \\"{{ .Zone }} {{ .Type }} {{ .Class }}\\""\n}`,
    );
    assert.deepEqual(texts((await world.ask('x.example. TXT')).answer), [
      'x.example. 5 IN TXT "example. TXT IN"',
    ]);
    assert.equal((await world.ask('x.example.org. A')).rcode, RCODE.REFUSED);
    assert.equal((await world.ask('x.example. MX')).rcode, RCODE.REFUSED);
  });

  test('an ANY query matches every template and gets its type', async () => {
    const world = await serve(
      'template IN TXT example {\n answer "{{ .Name }} 5 IN TXT {{ .Type }}"\n}',
    );
    assert.deepEqual(texts((await world.ask('x.example. ANY')).answer), [
      'x.example. 5 IN TXT "TXT"',
    ]);
  });

  test('all records in all sections are written', async () => {
    const world = await serve(`template IN MX example {
      match ^ip-10-(?P<b>[0-9]*)[.]example[.]$
      answer "{{ .Name }} 60 IN MX 10 {{ .Name }}" "{{ .Name }} 60 IN MX 20 b.example."
      additional "{{ .Name }} 60 IN A 10.0.0.{{ .Group.b }}"
      authority "example. 60 IN NS ns0.example."
      authority "example. 60 IN NS ns1.example."
    }`);
    const reply = await world.ask('ip-10-7.example. MX');
    assert.deepEqual(texts(reply.answer), [
      'ip-10-7.example. 60 IN MX 10 ip-10-7.example.',
      'ip-10-7.example. 60 IN MX 20 b.example.',
    ]);
    assert.deepEqual(texts(reply.additional), ['ip-10-7.example. 60 IN A 10.0.0.7']);
    assert.deepEqual(texts(reply.authority), [
      'example. 60 IN NS ns0.example.',
      'example. 60 IN NS ns1.example.',
    ]);
  });

  test('the first matching expression sets the groups', async () => {
    const world = await serve(String.raw`template IN TXT . {
      match ^a(?P<n>.)[.] ^(?P<n>.)a[.]
      answer "{{ .Name }} 1 IN TXT {{ .Group.n }} {{ index .Match 1 }} {{ index .Group \"1\" }}"
    }`);
    assert.deepEqual(texts((await world.ask('ax.test. TXT')).answer), [
      'ax.test. 1 IN TXT "x" "x" "x"',
    ]);
    assert.deepEqual(texts((await world.ask('ya.test. TXT')).answer), [
      'ya.test. 1 IN TXT "y" "y" "y"',
    ]);
  });

  test('parseInt reads hexadecimal addresses', async () => {
    const world = await serve(`template IN A example {
      match "^ip0a(?P<b>[a-f0-9]{2})(?P<c>[a-f0-9]{2})(?P<d>[a-f0-9]{2})[.]example[.]$"
      answer "{{ .Name }} 60 IN A 10.{{ parseInt .Group.b 16 8 }}.{{ parseInt .Group.c 16 8 }}.{{ parseInt .Group.d 16 8 }}"
    }`);
    assert.deepEqual(texts((await world.ask('ip0a7bff00.example. A')).answer), [
      'ip0a7bff00.example. 60 IN A 10.123.255.0',
    ]);
  });

  test('the client, the message and metadata are available', async () => {
    const world = await serve(
      'template IN TXT . {\n answer `x`\n}'.replace(
        '`x`',
        '"{{ .Name }} 1 IN TXT \\"{{ .Remote }} {{ .Message.Id }} {{ .Question.Name }} {{ .Message.RecursionDesired }} {{ len .Message.Question }} <{{ .Meta `a/b` }}>\\""',
      ),
    );
    const [record] = texts(
      (await world.ask('Q.test. TXT', { client: '2001:db8::5', id: 99 })).answer,
    );
    assert.equal(record, 'Q.test. 1 IN TXT "2001:db8::5 99 Q.test. true 1 <>"');
  });

  test('a template without output adds no record', async () => {
    const world = await serve(
      'template IN A . {\n answer "{{ if eq .Name `a.test.` }}{{ .Name }} 1 IN A 192.0.2.1{{ end }}"\n}',
    );
    assert.equal((await world.ask('a.test. A')).answer.length, 1);
    const empty = await world.ask('b.test. A');
    assert.deepEqual([empty.answer.length, empty.rcode], [0, RCODE.NOERROR]);
  });
});

describe('template rcode and ederror', () => {
  test('a result code alone gives an authoritative reply without records', async () => {
    const world = await serve('template ANY ANY reddog.microsoft.com {\n rcode NXDOMAIN\n}');
    const reply = await world.ask('vm.Reddog.microsoft.com. AAAA');
    assert.deepEqual(
      [reply.rcode, reply.answer.length, (reply.flags & FLAG.AA) !== 0],
      [RCODE.NXDOMAIN, 0, true],
    );
    assert.equal((await world.ask('microsoft.com. A')).rcode, RCODE.REFUSED);
  });

  test('the AKS template only stops names with four or more labels', async () => {
    const world = await serve(String.raw`template ANY ANY internal.cloudapp.net {
      match "^(?:[^.]+\.){4,}internal\.cloudapp\.net\.$"
      rcode NXDOMAIN
      fallthrough
    }`);
    assert.equal((await world.ask('a.b.c.d.internal.cloudapp.net. A')).rcode, RCODE.NXDOMAIN);
    assert.equal((await world.ask('b.c.d.internal.cloudapp.net. A')).rcode, RCODE.REFUSED);
  });

  test('REFUSED, FORMERR and NOTIMP are written once, with their records', async () => {
    for (const name of ['REFUSED', 'FORMERR', 'NOTIMP'] as const) {
      const world = await serve(
        `template IN A . {\n rcode ${name}\n authority "test. 9 IN NS ns.test."\n}`,
      );
      const reply = await world.ask('a.test. A');
      assert.deepEqual([reply.rcode, reply.authority.length], [RCODE[name], 1]);
    }
  });

  test('SERVFAIL has no records', async () => {
    const world = await serve(
      'template IN A . {\n rcode SERVFAIL\n answer "{{ .Name }} 1 IN A 192.0.2.1"\n}',
    );
    const reply = await world.ask('a.test. A');
    assert.deepEqual(
      [reply.rcode, reply.answer.length, reply.flags & FLAG.AA],
      [RCODE.SERVFAIL, 0, 0],
    );
  });

  test('ederror is sent to EDNS clients only', async () => {
    const world = await serve(`template ANY ANY invalid {
      rcode NXDOMAIN
      authority "invalid. 60 {{ .Class }} SOA ns.invalid. hostmaster.invalid. (1 60 60 60 60)"
      ederror 21 "Blocked according to RFC2606"
    }`);
    const text = await world.dig('x.invalid. A', { edns: true });
    assert.match(text, /EDE: 21 \(Not Supported\): \(Blocked according to RFC2606\)/);
    const plain = await world.ask('x.invalid. A');
    assert.equal(plain.edns, null);
    assert.deepEqual(texts(plain.authority), [
      'invalid. 60 IN SOA ns.invalid. hostmaster.invalid. 1 60 60 60 60',
    ]);
  });
});

describe('template with a CNAME', () => {
  const alias =
    'template IN ANY foogle.com {\n match "^foogle\\.com\\.$"\n answer "foogle.com 60 IN CNAME known.test"\n}';

  for (const later of [false, true]) {
    test(`addresses of the target are looked up${later ? ', also when that takes time' : ''}`, async () => {
      const world = await serve(alias, later);
      assert.deepEqual(texts((await world.ask('foogle.com. A')).answer), [
        'foogle.com. 60 IN CNAME known.test.',
        'known.test. 77 IN A 192.0.2.9',
      ]);
      assert.deepEqual(texts((await world.ask('Foogle.com. AAAA')).answer), [
        'Foogle.com. 60 IN CNAME known.test.',
        'known.test. 77 IN AAAA 2001:db8::9',
      ]);
    });
  }

  test('other types only get the CNAME', async () => {
    const world = await serve(alias);
    assert.deepEqual(texts((await world.ask('foogle.com. TXT')).answer), [
      'foogle.com. 60 IN CNAME known.test.',
    ]);
  });

  test('an unresolvable target leaves the CNAME and NOERROR', async () => {
    const world = await serve(alias.replace('known.test', 'unknown.test'));
    const reply = await world.ask('foogle.com. A');
    assert.deepEqual([reply.rcode, reply.answer.length], [RCODE.NOERROR, 1]);
  });

  for (const target of ['{{ .Name }}', 'x{{ .Name }}'])
    test(`a CNAME that leads to ${target} without end gets SERVFAIL: sent to the client, logged and counted once`, async () => {
      for (const later of [false, true]) {
        const world = await serve(
          `template IN A loop.test {\n answer "{{ .Name }} 60 IN CNAME ${target}"\n}\ntemplate IN A to.test {\n answer "{{ .Name }} 60 IN CNAME a.loop.test."\n}`,
          later,
        );
        for (const name of ['a.loop.test.', 'to.test.']) {
          const reply = await world.ask(`${name} A`, { edns: true });
          assert.deepEqual([reply.rcode, reply.answer.length], [RCODE.SERVFAIL, 0]);
          assert.match(printMessage(reply), /EDE: 0 .*aliases continue more than 20 times/);
        }
        const lines = world.log.filter((line) => line.includes('aliases continue'));
        assert.equal(lines.length, 2, lines.join('\n'));
        assert.ok(lines[0]!.includes(`CNAME ${target.replaceAll(' ', '')}"`), lines.join('\n'));
        assert.match(world.metrics(), /template_rr_failures_total\{.*zone="loop\.test\."\} 2\n/);
        await world.close();
      }
    });

  for (const count of [2, 3, 30])
    test(`${count} CNAMEs that lead to themselves end soon`, { timeout: 20_000 }, async () => {
      const world = await serve(
        `template IN A loop.test {\n${' answer "{{ .Name }} 60 IN CNAME {{ .Name }}"\n'.repeat(count)}}`,
      );
      const other = await serve(
        'template IN A loop.test {\n answer "{{ .Name }} 60 IN A 10.0.0.1"\n}',
      );
      // With two of them, it used to take minutes, because each one doubles the number of lookups.
      await costsAtMost(
        100 * count,
        () => world.ask('loop.test. A'),
        () => other.ask('loop.test. A'),
      );
    });
});

describe('template failures', () => {
  test('a failing template gets SERVFAIL, and is logged and counted', async () => {
    const world = await serve(
      'template IN A . {\n answer "{{ .Name }} 1 IN A {{ index .Match 4 }}"\n}',
    );
    assert.equal((await world.ask('a.test. A')).rcode, RCODE.SERVFAIL);
    assert.ok(
      world.log.some((line) =>
        /ERROR.* 2 a\.test\. A: template: answer:1:\d+: executing "answer" at <index>/.test(line),
      ),
      world.log.join('\n'),
    );
    assert.match(
      world.metrics(),
      /template_failures_total\{class="IN",section="answer",server="dns:\/\/:53",template="\{\{\.Name\}\} 1 IN A \{\{index \.Match 4\}\}",type="A",view="",zone="\."\} 1/,
    );
  });

  test('output that is not a record gets SERVFAIL, and is logged and counted', async () => {
    const world = await serve('template IN A . {\n additional "{{ .Name }} 1 IN A {{ .Type }}"\n}');
    assert.equal((await world.ask('a.test. A')).rcode, RCODE.SERVFAIL);
    assert.ok(
      world.log.some((line) => line.includes('"a.test. 1 IN A A"')),
      world.log.join('\n'),
    );
    assert.match(world.metrics(), /rr_failures_total\{.*section="additional".*\} 1/);
  });

  test('matches are counted by zone, class and type, with unnamed types combined', async () => {
    const world = await serve('template IN ANY example {\n rcode NXDOMAIN\n}');
    await world.ask('a.example. A');
    await world.ask('b.example. A');
    await world.ask('b.example. TYPE65280');
    await world.ask('b.example. TYPE65281');
    await world.ask('b.example. TYPE0');
    await world.ask('b.example. TYPE65535');
    const metrics = world.metrics();
    assert.match(
      metrics,
      /matches_total\{class="IN",server="dns:\/\/:53",type="A",view="",zone="example\."\} 2/,
    );
    assert.match(
      metrics,
      /matches_total\{class="IN",server="dns:\/\/:53",type="",view="",zone="example\."\} 2/,
    );
    // The names in CoreDNS's library.
    assert.match(metrics, /matches_total\{.*type="None".*\} 1\n/);
    assert.match(metrics, /matches_total\{.*type="Reserved".*\} 1\n/);
  });

  const cases: readonly (readonly [string, string])[] = [
    [
      'template',
      "3:2 plugin/template: Corefile:3 - Error during parsing: Wrong argument count or unexpected line ending after 'template'",
    ],
    [
      'template XX A',
      '3:11 plugin/template: Corefile:3 - Error during parsing: invalid query class XX',
    ],
    [
      'template IN XX',
      '3:14 plugin/template: Corefile:3 - Error during parsing: invalid RR class XX',
    ],
    [
      'template IN A {\n rcode NOPE\n}',
      '4:8 plugin/template: Corefile:4 - Error during parsing: unknown rcode NOPE',
    ],
    [
      'template IN A {\n match (\n}',
      '4:8 plugin/template: Corefile:4 - Error during parsing: could not parse regex: (, error parsing regexp: missing closing ): `(`',
    ],
    [
      `template IN A {\n match ${'a'.repeat(10_001)}\n}`,
      '4:8 plugin/template: Corefile:4 - Error during parsing: regex pattern too long: 10001 > 10000',
    ],
    [
      'template IN A {\n match\n}',
      "4:2 plugin/template: Corefile:4 - Error during parsing: Wrong argument count or unexpected line ending after 'match'",
    ],
    [
      'template IN A {\n ederror x\n}',
      '4:10 plugin/template: Corefile:4 - Error during parsing: error parsing extended DNS error code x',
    ],
    [
      'template IN A {\n answer "{{ print \\"a\\" }} {{ nope }}"\n}',
      '4:31 plugin/template: Corefile:4 - Error during parsing: could not compile template: {{ print "a" }} {{ nope }}, template: answer:1: function "nope" not defined',
    ],
    [
      'template IN A {\n answer "a\n  {{ nope }}"\n}',
      '5:6 plugin/template: Corefile:5 - Error during parsing: could not compile template: a\n  {{ nope }}, template: answer:2: function "nope" not defined',
    ],
    [
      'template IN A {\n var x 1\n}',
      "4:2 plugin/template: Corefile:4 - Error during parsing: unknown property 'var'",
    ],
  ];
  for (const [body, wanted] of cases)
    test(`rejected with its location: ${body}`, async () =>
      assert.deepEqual(await problems(body), [wanted]));

  test('a template that fails for every query causes a warning at startup', async () => {
    const world = await serve(
      'template IN A . {\n answer "{{ .name }} 1 IN A 192.0.2.1"\n authority "no record"\n}',
    );
    const warnings = world.log.filter((line) => line.startsWith('[WARNING]')).join('\n');
    assert.match(warnings, /there is no field \.name/);
    assert.match(warnings, /this is not a record/);
  });
});
