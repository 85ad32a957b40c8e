import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { read } from '../../../test/corefiles/read.ts';
import type { World } from '../../../test/corefiles/read.ts';
import { setting } from './properties.ts';
import { directive } from './syntax.ts';
import type { Directive, Property, ServerBlock } from './corefile-tree.ts';
import { word } from './word-values.ts';

/** A block as nested lists of words. */
type Words = (string | Words)[];

const line = (name: string, { args, block }: Directive | Property): Words => [
  name,
  ...args.map(({ text }) => text),
  ...(block === null ? [] : [block.map((property) => line(property.name.text, property))]),
];
const show = ({ keys, directives }: ServerBlock): Words => [
  keys.map(({ text }) => text).join(' '),
  ...directives.map((found) => line(found.name, found)),
];

function blocks(text: string, world: World = {}): Words[] {
  const { corefile, problems } = read(text, world);
  assert.deepEqual(
    problems.map(({ message }) => message),
    [],
  );
  return corefile.blocks.map(show);
}

const keys = (text: string, world: World = {}): [string, string, number][] =>
  read(text, world).corefile.blocks.flatMap((block) =>
    block.keys.map(({ scheme, zone, port }): [string, string, number] => [scheme, zone, port]),
  );

describe('structure', () => {
  test('addresses, then directives in braces; a directive has arguments and properties', () => {
    assert.deepEqual(
      blocks('example.org {\n log\n cache 30 a b {\n  prefetch 1\n  keepttl\n }\n}'),
      [['example.org', ['log'], ['cache', '30', 'a', 'b', [['prefetch', '1'], ['keepttl']]]]],
    );
  });

  test("the file's last } may be missing after a directive's }, as in CoreDNS, with a warning", () => {
    const text = '. {\n  cache {\n    keepttl\n}\n';
    assert.deepEqual(blocks(text), [['.', ['cache', [['keepttl']]]]]);
    assert.deepEqual(
      read(text).warnings.map(({ code, message, hint }) => [code, message, hint]),
      [
        [
          'corefile-end',
          'the last } in the file is missing',
          "Most likely the } for 'cache' at Corefile:2 is missing.",
        ],
      ],
    );
  });

  test('words after a } are another directive of that name, as in CoreDNS, with a warning', () => {
    const text = '. {\n acl {\n  allow\n } x example.org {\n  block\n } y\n log\n}';
    assert.deepEqual(blocks(text), [
      ['.', ['acl', [['allow']]], ['acl', 'example.org', [['block']]], ['acl'], ['log']],
    ]);
    const { corefile, warnings } = read(text);
    assert.deepEqual(
      warnings.map(({ message, place }) => [message, place?.line, place?.column]),
      [
        ["'x' after a } is read as another 'acl'", 4, 4],
        ["'y' after a } is read as another 'acl'", 6, 4],
      ],
    );
    assert.deepEqual(
      corefile.blocks[0]!.directives.map(({ at }) => at.place.line),
      [2, 4, 6, 7],
    );
  });

  test('a file with exactly one block may omit the braces', () => {
    assert.deepEqual(blocks('. example.org\nlog\nwhoami'), [
      ['. example.org', ['log'], ['whoami']],
    ]);
  });

  test('an address line alone is a block without plugins', () => {
    assert.deepEqual(blocks('example.org'), [['example.org']]);
    assert.deepEqual(blocks('example.org {\n}'), [['example.org']]);
  });

  test('an empty file, one with only comments and one with an empty word contain no blocks', () => {
    for (const text of ['', ' \n', '# nothing\n', '""']) assert.deepEqual(blocks(text), []);
  });

  test('a comma announces another key, possibly on the next line', () => {
    assert.deepEqual(blocks('a.org, b.org,\nc.org {\n}'), [['a.org b.org c.org']]);
  });

  test('the block’s brace may be on the next line, followed by the first directive', () => {
    assert.deepEqual(blocks('a.org\n{ log\n}'), [['a.org', ['log']]]);
  });

  test('repeated directives stay in order', () => {
    assert.deepEqual(blocks('. {\nforward a 1\nlog\nforward b 2\n}'), [
      ['.', ['forward', 'a', '1'], ['log'], ['forward', 'b', '2']],
    ]);
  });

  test('braces inside a directive may nest', () => {
    assert.deepEqual(blocks('. {\n tls {\n  acme a.org {\n   email x\n  }\n  ca y\n }\n log\n}'), [
      [
        '.',
        [
          'tls',
          [
            ['acme', 'a.org', [['email', 'x']]],
            ['ca', 'y'],
          ],
        ],
        ['log'],
      ],
    ]);
  });

  test('an empty pair of braces may be on one line', () => {
    assert.deepEqual(blocks('. {\n cache { }\n}'), [['.', ['cache', []]]]);
  });

  test('a quoted word across several lines does not end the line', () => {
    assert.deepEqual(blocks('. {\n log "a\nb" c\n}'), [['.', ['log', 'a\nb', 'c']]]);
  });

  test('positions give file, line and column of every word', () => {
    const { corefile } = read('. {\n  cache 30 {\n    keepttl\n  }\n}');
    const [cache] = corefile.blocks[0]!.directives;
    assert.deepEqual(cache!.at.place, { file: 'Corefile', line: 2, column: 3 });
    assert.deepEqual(cache!.args[0]!.place, { file: 'Corefile', line: 2, column: 9 });
    assert.deepEqual(cache!.block![0]!.name.place, { file: 'Corefile', line: 3, column: 5 });
  });

  test('the tree can be sent to other threads', () => {
    const { corefile } = read('10.0.0.0/15 {\n cache {\n keepttl\n }\n}');
    assert.deepEqual(structuredClone(corefile), corefile);
  });
});

describe('keys', () => {
  test('each scheme has its port; plain dns has the server’s', () => {
    assert.deepEqual(
      keys('a dns://b tls://c quic://d grpc://e https://f https3://g', { dnsPort: 1053 }),
      [
        ['dns', 'a.', 1053],
        ['dns', 'b.', 1053],
        ['tls', 'c.', 853],
        ['quic', 'd.', 853],
        ['grpc', 'e.', 443],
        ['https', 'f.', 443],
        ['https3', 'g.', 443],
      ],
    );
  });

  test('an explicit port overrides the scheme’s; the zone is lower case and absolute', () => {
    assert.deepEqual(keys('tls://Example.ORG:5353'), [['tls', 'example.org.', 5353]]);
  });

  test('a CIDR between two boundaries makes several keys with the same text', () => {
    const [block] = read('10.0.0.0/15:54').corefile.blocks;
    assert.deepEqual(
      block!.keys.map(({ text, zone, port }) => [text, zone, port]),
      [
        ['10.0.0.0/15:54', '0.10.in-addr.arpa.', 54],
        ['10.0.0.0/15:54', '1.10.in-addr.arpa.', 54],
      ],
    );
  });

  test('a zone outside the preferred syntax is served, with a warning', () => {
    const { warnings, problems } = read('_tcp.example.org {\n}\nhttp://example.com {\n}');
    assert.deepEqual(problems, []);
    assert.deepEqual(
      warnings.map(({ message, hint }) => [message, hint]),
      [
        ['Domain "_tcp.example.org." does not follow RFC1035 preferred syntax', null],
        [
          'Domain "http://example.com." does not follow RFC1035 preferred syntax',
          "'http' is not a scheme. Did you mean 'https'?",
        ],
      ],
    );
  });
});

describe('a Corefile without braces', () => {
  for (const [text, warnings] of [
    ['errors\nlog\ncache 30\n', [[/^'errors' is read as a zone, although it is a plugin$/, 1, 1]]],
    ['forward . 192.0.2.1\ncache\n', [[/^'forward' is read as a zone/, 1, 1]]],
    ['.:53 errors cache 30\n', [[/^'errors' is read as a zone/, 1, 6]]],
    ['.:53\n', [[/^the server block has no plugins, so it refuses every query$/, 1, 1]]],
    ['log\n', [[/^'log' is read as a zone/, 1, 1]]],
    ['.:53\nerrors\ncache 30\n', []],
    ['log.example {\n errors\n}\n', []],
    ['log {\n errors\n}\nexample.org {\n}\n', []],
    ['import parts\n', []],
  ] as const)
    test(`${JSON.stringify(text)} has ${warnings.length} warnings about the missing brace`, () => {
      const found = read(text, { files: { parts: '.:53 {\n log\n}\n' } }).warnings;
      assert.equal(found.length, warnings.length, found.map(({ message }) => message).join());
      for (const [at, [message, line, column]] of warnings.entries()) {
        assert.match(found[at]!.message, message);
        assert.deepEqual([found[at]!.place?.line, found[at]!.place?.column], [line, column]);
        assert.match(found[at]!.remedy!, /\{/);
      }
    });
});

describe('environment', () => {
  const env = {
    A: 'servername.com',
    P: '8080',
    F: 'foobar',
    D: 'g',
    BLANK: 'a b',
    LOOP: '{$LOOP}x',
    TWO: '{$F}',
  };

  test('a surplus } at the end of the file is ignored, with a warning', () => {
    const { corefile, problems, warnings } = read('. {\n log\n }\n}\n');
    assert.deepEqual(problems, []);
    assert.deepEqual(
      warnings.map(({ code, place }) => [code, place?.line]),
      [['corefile-brace', 4]],
    );
    assert.equal(corefile.blocks.length, 1);
    for (const text of ['}\n', '. {\n log\n}\n}\na {\n log\n}\n', '. {\n log\n}\na }\n'])
      assert.notEqual(read(text).problems.length, 0, text);
  });

  test('a } after the words of a property ends the braces, with a warning', () => {
    const { corefile, problems, warnings } = read(
      '. {\n forward . 192.0.2.53 { max_concurrent 1000 }\n health {\n lameduck 5s }\n log\n}\n',
    );
    assert.deepEqual(problems, []);
    assert.deepEqual(
      warnings.map(({ code, place }) => [code, place?.line]),
      [
        ['brace-behind-words', 2],
        ['brace-behind-words', 4],
      ],
    );
    assert.deepEqual(
      corefile.blocks[0]!.directives.map(({ name, block }) => [
        name,
        ...(block ?? []).map((line) => [line.name.text, ...line.args.map(({ text }) => text)]),
      ]),
      [['forward', ['max_concurrent', '1000']], ['health', ['lameduck', '5s']], ['log']],
    );
  });

  test('{$NAME} and {%NAME%} are replaced in addresses, names and arguments', () => {
    assert.deepEqual(blocks('{$A}:{%P%} {\n lo{$D} {$F}/{%F%} "in {$F}"\n}', { env }), [
      ['servername.com:8080', ['log', 'foobar/foobar', 'in foobar']],
    ]);
  });

  test('the value remains a single word and may refer to another variable', () => {
    assert.deepEqual(blocks('. {\n log {$BLANK} {$TWO}\n}', { env }), [
      ['.', ['log', 'a b', 'foobar']],
    ]);
  });

  test('an unset variable becomes empty, with a warning', () => {
    const { corefile, warnings } = read('. {\n log a{$NONE}b\n}', { env });
    assert.deepEqual(show(corefile.blocks[0]!), ['.', ['log', 'ab']]);
    assert.deepEqual(
      warnings.map(({ code }) => code),
      ['environment-unset'],
    );
  });

  test('without a name the reference stays unchanged', () => {
    assert.deepEqual(blocks('. {\n log {$} {%%} {%A} {$A\n}', { env }), [
      ['.', ['log', '{$}', '{%%}', '{%A}', '{$A']],
    ]);
  });

  test('Go template text is replaced, with a warning that shows how to write it', () => {
    const { corefile, warnings } = read('. {\n log {{$x}} "{{ $x }}"\n}', { env });
    assert.deepEqual(show(corefile.blocks[0]!), ['.', ['log', '{}', '{{ $x }}']]);
    assert.deepEqual(
      warnings.map(({ code }) => code),
      ['environment-template'],
    );
  });

  test('a variable that refers to itself is a problem, not a hang', () => {
    const { problems } = read('. {\n log {$LOOP}\n}', { env });
    assert.deepEqual(
      problems.map(({ code }) => code),
      ['environment-endless'],
    );
  });

  test('JavaScript’s own property names are not variables', () => {
    assert.deepEqual(show(read('. {\n log x{$toString}\n}').corefile.blocks[0]!), [
      '.',
      ['log', 'x'],
    ]);
  });
});

describe('fingerprint', () => {
  const of = (text: string, world: World = {}): string => read(text, world).corefile.fingerprint;
  const plain = of('. {\n cache 30\n}');

  test('white space, comments and quotes do not change it', () => {
    assert.match(plain, /^[0-9a-f]{128}$/);
    assert.equal(of('\n. {  # all\n\tcache  "30"\n\n}\n'), plain);
  });

  test('a word, a brace, a line end, the environment and an imported file do', () => {
    const others = [
      of('. {\n cache 31\n}'),
      of('. {\n cache 30 {\n }\n}'),
      of('. {\n cache 3 0\n}'),
      of('. {\n cache 30\n log\n}'),
      of('.:54 {\n cache 30\n}'),
      of('. {\n cache 30\n nonsense\n}'),
      of('. {\n cache 30\n nonsens\n}'),
    ];
    assert.equal(new Set([plain, ...others]).size, others.length + 1);
    assert.equal(of('. {\n cache {$T}\n}', { env: { T: '30' } }), plain);
    assert.notEqual(of('. {\n cache {$T}\n}', { env: { T: '31' } }), plain);
    assert.equal(of('. {\n import f\n}', { files: { f: 'cache 30' } }), plain);
    assert.notEqual(of('. {\n import f\n}', { files: { f: 'cache 31' } }), plain);
  });
});

describe('older names', () => {
  const forward = directive({
    name: 'forward',
    summary: '',
    repeat: 'each',
    properties: { policy: setting('policy', word('POLICY')) },
    retired: { protocol: 'write force_tcp' },
    formerly: { proxy: 'it was replaced in CoreDNS 1.5' },
  });

  test("a directive's older name is read as the current one, with a warning", () => {
    const { corefile, problems, warnings } = read('. {\n proxy . 8.8.8.8\n}', {
      syntaxes: [forward],
    });
    const [found] = corefile.blocks[0]!.directives;
    assert.deepEqual([found!.name, found!.at.text, problems], ['forward', 'proxy', []]);
    assert.deepEqual(
      warnings.map(({ message }) => message),
      ["'proxy' is read as 'forward': it was replaced in CoreDNS 1.5"],
    );
  });

  test('a property used as a directive: the problem shows where it belongs', () => {
    const { problems } = read('. {\n policy random\n}', { syntaxes: [forward] });
    assert.equal(problems[0]!.hint, "'policy' belongs inside the braces of 'forward'.");
  });
});
