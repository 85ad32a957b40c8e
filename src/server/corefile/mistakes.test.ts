import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { read } from '../../../test/corefiles/read.ts';

/** Invalid inputs and the resulting messages, of which the first line is CoreDNS's. */
const corpus: readonly [what: string, text: string, ...messages: string[]][] = [
  [
    'an unknown directive',
    '. {\n foo\n}',
    "Corefile:2 - Error during parsing: Unknown directive 'foo'",
  ],
  [
    'several mistakes are reported at once',
    'a {\n foo {\n  x\n }\n cache\n bar\n}\nb: {\n}',
    "Corefile:2 - Error during parsing: Unknown directive 'foo'",
    "Corefile:6 - Error during parsing: Unknown directive 'bar'",
    'error inspecting server blocks: expecting data after last colon: "b:"',
  ],
  [
    'addresses are looked at last',
    'a..b {\n foo\n}',
    "Corefile:2 - Error during parsing: Unknown directive 'foo'",
    'error inspecting server blocks: zone is not a valid domain name: a..b',
  ],
  [
    'two blocks without braces',
    'a\nlog\nb.org\nerrors',
    "Corefile:3 - Error during parsing: Unknown directive 'b.org'",
  ],
  [
    'a comma too much before the brace',
    'a, {\n}',
    "Corefile:1 - Error during parsing: Expected another address but had '{' - check for extra comma",
  ],
  ['a comma at the end', 'a, b,', 'Corefile:1 - Error during parsing: Unexpected EOF'],
  [
    'the block is never closed',
    '. {\n log',
    "Corefile:2 - Syntax error: Unexpected token 'log', expecting '}'",
  ],
  [
    'the file ends inside a directive',
    '. {\n cache {\n  keepttl\n',
    'Corefile:3 - Error during parsing: Unexpected EOF',
  ],
  [
    'the file ends inside nested braces',
    '. {\n tls {\n  acme {\n',
    'Corefile:3 - Error during parsing: Unexpected EOF',
  ],
  [
    'a block on one line',
    '. { whoami }',
    "Corefile:1 - Error during parsing: Unexpected '}' because no matching opening brace",
  ],
  [
    'two closing braces on one line',
    '. {\n cache {\n } }\n',
    "Corefile:3 - Error during parsing: Unexpected '}' because no matching opening brace",
  ],
  [
    'a closing brace at the top',
    '}\na {\n log\n}',
    "Corefile:1 - Error during parsing: Unexpected '}' because no matching opening brace",
  ],
  [
    'a directive’s brace on the next line',
    '. {\n cache\n {\n  keepttl\n }\n}',
    "Corefile:2 - Error during parsing: Wrong argument count or unexpected line ending after 'cache'",
  ],
  [
    'a brace behind a closing brace',
    '. {\n dns64 {\n } {\n }\n}',
    "Corefile:3 - Error during parsing: Wrong argument count or unexpected line ending after '}'",
  ],
  [
    'a brace as a property',
    '. {\n cache {\n  {\n  }\n }\n}',
    "Corefile:3 - Error during parsing: unknown property '{'",
  ],
  [
    'a snippet without braces',
    '(a)\n',
    "Corefile:1 - Syntax error: Unexpected token '(a)', expecting '{'",
  ],
  [
    'a snippet that is never closed',
    '(a) {\n log',
    "Corefile:2 - Syntax error: Unexpected token 'log', expecting '}'",
  ],
  [
    'a snippet defined twice',
    '(a) {\n}\n(a) {\n}',
    'Corefile:3 - Error during parsing: redeclaration of previously declared snippet a',
  ],
  ['only a port', ':53 {\n}', 'error inspecting server blocks: zone is not a valid domain name: '],
  [
    'a name with an empty label',
    'a..b {\n}',
    'error inspecting server blocks: zone is not a valid domain name: a..b',
  ],
  [
    'a name that is too long',
    `${'a.'.repeat(130)} {\n}`,
    'error inspecting server blocks: specified zone is too long: 260 > 255',
  ],
  [
    'a CIDR that begins with a colon',
    '::/0 {\n}',
    'error inspecting server blocks: invalid CIDR ::/0',
  ],
  [
    'unix as a scheme',
    'unix:///tmp/x {\n}',
    'error inspecting server blocks: cannot serve on unix://: unix:///tmp/x',
  ],
  [
    'a port that is none',
    'a:70000 {\n}',
    'error inspecting server blocks: invalid port in a:70000',
  ],
];

describe('errors', () => {
  for (const [what, text, ...messages] of corpus) {
    test(what, () => {
      const { problems } = read(text);
      assert.deepEqual(
        problems.map(({ message }) => message),
        messages,
      );
      for (const { place, code } of problems) {
        assert.equal(place?.file, 'Corefile');
        assert.ok(place.column > 0);
        assert.match(code, /^[a-z]+(-[a-z]+)+$/);
      }
    });
  }

  const hintOf = (text: string): string | null | undefined => read(text).problems[0]?.hint;

  test('a misspelled directive: the problem suggests the likely one', () => {
    assert.equal(hintOf('. {\n froward . 8.8.8.8\n}'), "Did you mean 'forward'?");
  });

  test('a missing brace: the problem shows where it was opened, or which one is probably missing', () => {
    assert.equal(hintOf('. {\n log'), 'The { at Corefile:1 is never closed.');
    assert.equal(
      hintOf('. {\n  forward . 8.8.8.8 {\n    force_tcp\n}\n  cache'),
      "Most likely the } for 'forward' at Corefile:2 is missing.",
    );
  });

  test('a second block without braces: the problem says that it looks like an address', () => {
    assert.equal(hintOf('a\nlog\nb.org\n'), 'This looks like an address.');
  });

  const external = { fanout: 'Write `forward`.' };

  test('a nested server block is recognized as one', () => {
    const [problem] = read('.:53 {\n errors\n example.org:53 {\n  whoami\n }\n}').problems;
    assert.match(problem!.hint!, /a server block.s address inside another/);
    assert.match(problem!.remedy!, /end the one above with }/);
  });

  test('an external CoreDNS plugin is distinguished from a typo, and the message names the alternative', () => {
    const [problem] = read('. {\n fanout . 8.8.8.8\n}', { external }).problems;
    assert.match(problem!.hint!, /external CoreDNS plugin/);
    assert.equal(problem!.remedy, 'Write `forward`.');
  });

  test('a pasted ConfigMap is a single problem that identifies it', () => {
    const whole =
      'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: coredns\ndata:\n  Corefile: |\n    .:53 {\n        errors\n    }\n';
    for (const text of [whole, whole.slice(whole.indexOf('data:'))]) {
      const { problems, warnings } = read(text);
      assert.deepEqual([problems.length, warnings.length], [1, 0]);
      assert.match(problems[0]!.hint!, /a Kubernetes manifest/);
    }
    assert.equal(read('. {\n hosts {\n  data: x\n }\n}').problems.length, 0);
  });

  test("a chart's template is a single problem that identifies it", () => {
    for (const text of [
      '{{- if .Values.dns }}\n.:53 {\n  errors\n  forward . {{ .Values.upstream }}\n}\n{{- end }}\n',
      '.:53 {\n  errors\n  {{- range .Values.plugins }}\n  {{ .name }}\n  {{- end }}\n}\n',
    ]) {
      const { problems, warnings } = read(text);
      assert.deepEqual([problems.length, warnings.length], [1, 0]);
      assert.match(problems[0]!.hint!, /a Helm chart template/);
    }
    const [typo] = read(
      '. {\n template IN A {\n  answer "{{ .Name }} A 192.0.2.1"\n }\n lgo\n}',
    ).problems;
    assert.doesNotMatch(typo!.hint!, /Helm/);
  });

  test('a comma between words gives a warning, except in quotes', () => {
    const [warning] = read('. {\n forward . 1.1.1.1, 8.8.8.8\n}').warnings;
    assert.equal(warning?.code, 'word-comma');
    assert.deepEqual(warning?.place, { file: 'Corefile', line: 2, column: 12 });
    assert.deepEqual(read('. {\n forward . "1.1.1.1," 8.8.8.8\n}').warnings, []);
  });

  test('a comma within an expression gives no warning', () => {
    for (const line of [
      "expr let m = {'a': 1, 'b': 2}; m.a == 1",
      'expr bufsize() in [512, 1232, 4096]',
      'expr max(1, id(), 2) > 1',
    ])
      assert.deepEqual(read(`. {\n view v {\n  ${line}\n }\n}`).warnings, [], line);
    const [warning] = read('. {\n bind [::1], 127.0.0.1\n}').warnings;
    assert.equal(warning?.code, 'word-comma');
  });

  test('a port number too high: the fix gives the range', () => {
    assert.match(read('.:99999 {\n}').problems[0]!.remedy!, /65535/);
  });

  test('a port alone: the fix suggests the root zone', () => {
    assert.equal(
      read(':53 {\n}').problems[0]?.remedy,
      "Include the zone; the root zone is '.:53'.",
    );
  });

  test('a block without an address is left out with a warning', () => {
    const { corefile, problems, warnings } = read('{\n debug\n}\n. {\n log\n}');
    assert.deepEqual([corefile.blocks.length, problems.length], [1, 0]);
    assert.deepEqual(
      warnings.map(({ code }) => code),
      ['block-without-address'],
    );
  });

  test('endlessly nested braces are a problem, not an overflow', () => {
    for (const piece of ['{ ', '{\n', 'a {\n', '. { a { ']) {
      const { problems } = read(`. {\n cache {\n${piece.repeat(50_000)}`);
      assert.ok(problems.length > 0 && problems.length <= 100);
    }
  });

  test('a file of garbage gives a readable report', () => {
    const { problems, warnings } = read(`. {\n${'nonsense{$X} a#b c\n'.repeat(20_000)}}`);
    assert.equal(problems.length, 100);
    assert.equal(warnings.length, 100);
  });
});
