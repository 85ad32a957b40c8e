import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { printPlace, problemsIn } from '../../../server/base/problem.ts';
import { parseExpression, type Result } from './expression.ts';
import { parseStory, readStoryFile } from './story-file.ts';

/** The errors in a text, each on one line with its place, text and hint. */
function told(text: string): readonly string[] {
  try {
    parseStory(text, 'story.yaml');
  } catch (error) {
    return (problemsIn(error) ?? []).map(
      ({ place, message, hint }) =>
        `${place === null ? '' : printPlace(place)} ${message}; ${hint ?? ''}`,
    );
  }
  return [];
}

const around = (steps: string, expect = '{ value: lookup.found, is: true }'): string => `story: x
cluster:
  pods: [{ name: client }]
acts:
  - flaw: y
    steps:
      - lookup: { pod: client, name: example.com }
${steps}    expect:
      - ${expect}
`;

describe('a story file', () => {
  test('the example is valid', () => {
    const { story, corefiles } = readStoryFile('examples/lab/story.yaml');
    assert.equal(story.name, 'shop-after-a-rollout');
    assert.equal(corefiles.length, 3);
    assert.deepEqual(story.needs, [{ program: 'conntrack' }]);
  });

  test('a valid story is accepted silently', () => {
    assert.deepEqual(told(around('')), []);
  });

  const mistakes: readonly (readonly [what: string, text: string, expected: RegExp])[] = [
    [
      'a kind of step that is misspelled',
      around('      - lokup: {}\n'),
      /^story\.yaml:8:\d+ there is no step "lokup"; Did you mean lookup\?/,
    ],
    [
      'a key of a step that is misspelled',
      around('      - query: { form: client, name: a }\n'),
      /^story\.yaml:8:\d+ the step query has no key "form"; Did you mean from\?/,
    ],
    [
      'a value that is missing',
      around('      - query: { from: client }\n'),
      /^story\.yaml:8:\d+ the step query needs "name"; name: TEXT/,
    ],
    [
      'a time that is none',
      around('      - wait: soon\n'),
      /^story\.yaml:8:15 "wait" takes a time such as 250ms or 2s/,
    ],
    [
      'two steps in one',
      around('      - wait: 1s\n        api: stop\n'),
      /^story\.yaml:9:\d+ this is two steps: wait and api/,
    ],
    [
      'a pod that is not there',
      around('      - lookup: { pod: clint, name: a }\n'),
      /^story\.yaml:8:\d+ there is no pod clint; Did you mean client\?/,
    ],
    [
      'a node that is not there',
      around('      - loseSecondOfPair: { node: node1 }\n'),
      /^story\.yaml:8:\d+ there is no node node1; Did you mean node-1\?/,
    ],
    [
      'a service that is not there',
      around('      - query: { from: client, name: a, server: kube-system/kube-dsn }\n'),
      /^story\.yaml:8:\d+ there is no service or pod kube-system\/kube-dsn; Did you mean kube-system\/kube-dns\?/,
    ],
    [
      'a client that is not known',
      around('      - lookup: { pod: client, name: a, client: mussl }\n'),
      /there is no client "mussl"; Did you mean musl\?/,
    ],
    [
      'a step that no result is of',
      around('', '{ value: lokup.found, is: true }'),
      /^story\.yaml:9:\d+ no earlier step is called "lokup"; Did you mean lookup\?/,
    ],
    [
      'a result that a step has not',
      around('', '{ value: lookup.secnds, atMost: 1 }'),
      /the step "lookup" has no result "secnds"; Did you mean seconds\?/,
    ],
    [
      'a value that cannot be read',
      around('', '{ value: "lookup.count /", is: 1 }'),
      /this is not a value: something is missing at its end/,
    ],
    [
      'nothing that the value has to be',
      around('', '{ value: lookup.found }'),
      /what has the value to be\?; One of is, isNot/,
    ],
    [
      'bounds in the wrong order',
      around('', '{ value: lookup.count, between: [3, 1] }'),
      /"between" takes two numbers/,
    ],
    [
      'an act without expectations',
      'story: x\nacts: [{ flaw: y, expect: [] }]\n',
      /this act has no expectations; A verdict must be able to fail/,
    ],
    [
      'an act that is flaw and cure',
      'story: x\nacts: [{ flaw: y, cure: z, expect: [] }]\n',
      /an act is a flaw or a cure/,
    ],
    [
      'rules of the internet that cannot be read',
      'story: x\ncluster:\n  internet:\n    - { name: a, answer: NOSUCH }\nacts: []\n',
      /^story\.yaml:4:\d+ rule 1: "NOSUCH" is neither/,
    ],
    [
      'a Corefile that is not there',
      'story: x\ncluster: { corefile: nowhere/Corefile }\nacts: []\n',
      /^story\.yaml:2:\d+ nowhere\/Corefile cannot be read/,
    ],
    [
      'objects that are not there',
      'story: x\ncluster: { objects: nowhere.yaml }\nacts: []\n',
      /^story\.yaml:2:\d+ .*nowhere\.yaml/,
    ],
    [
      'an object that is wrong',
      'story: x\ncluster:\n  objects:\n    - { apiVersion: v1, kind: Servce, metadata: { name: a } }\nacts: []\n',
      /^story\.yaml:4:\d+ there is no kind 'Servce'; did you mean Service/,
    ],
    [
      'two pods of one name',
      'story: x\ncluster:\n  pods: [{ name: a }, { name: a }]\nacts: []\n',
      /^story\.yaml:3:\d+ two pods are called default\/a/,
    ],
    [
      'two pods with one address',
      'story: x\ncluster:\n  pods: [{ name: a, ip: 10.1.1.1 }, { name: b, ip: 10.1.1.1 }]\nacts: [{ cure: y, expect: [] }]\n',
      /the pod default\/b has the address 10\.1\.1\.1, which the pod default\/a already has/,
    ],
    ...['/../../tmp/a', 'etc/hosts', '/etc//hosts', '/etc/', '/', '/etc/./hosts', '/a\\u001b'].map(
      (path) =>
        [
          `a file of a pod that is called ${path}`,
          `story: x\ncluster:\n  pods: [{ name: a, files: { "${path}": a } }]\nacts: [{ cure: y, expect: [] }]\n`,
          /^story\.yaml:3:\d+ .* is not the path of a file; Example: \/etc\/hosts/s,
        ] as const,
    ),
    [
      'a replacement for text that the default Corefile does not contain',
      "story: x\ncluster:\n  corefile: { replace: { 'lameduck 6s': '' } }\nacts: []\n",
      /^story\.yaml:3:\d+ the default Corefile has no "lameduck 6s"/,
    ],
    [
      'a server that is not known',
      around('      - { wait: 1s, only: bind }\n'),
      /^story\.yaml:8:\d+ "only" takes one of ndots, CoreDNS, not "bind"/,
    ],
    [
      'a step that has no result in virtual time',
      `${around('')}model:
  acts:
    - flaw: y
      steps: [{ query: { from: client, name: a } }]
      expect: [{ value: query.lost, is: 1 }]
`,
      /^story\.yaml:14:\d+ no earlier step is called "query"/,
    ],
    ['no story at all', '[1, 2]\n', /holds no story/],
    ['no YAML', 'story: "x\n', /^story\.yaml:\d+:\d+ this is not YAML/],
    [
      'a name that is no name',
      around('      - as: a-b\n        wait: 1s\n'),
      /"a-b" is not a valid step name/,
    ],
  ];
  for (const [what, text, expected] of mistakes)
    test(`${what} is reported with its place`, () => {
      const all = told(text);
      assert.ok(
        all.some((line) => expected.test(line)),
        all.join('\n') || 'nothing was told',
      );
    });

  test('its model looks names up in virtual time, by the answers of the internet', async () => {
    const { story } = parseStory(
      `${around('')}model:
  internet: [{ name: example.com, type: A, answer: 203.0.113.80 }]
  acts:
    - flaw: 'with {lookup.who}'
      steps: [{ lookup: { pod: client, name: example.com } }]
      expect:
        - { what: 'queries of {lookup.who}', value: lookup.queries, is: 12 }
        - { value: lookup.found, is: false, only: CoreDNS }
    - cure: a dot
      steps:
        - internet: [{ name: example.com, answer: NODATA }]
        - { lookup: { pod: client, name: example.com. } }
      expect: [{ value: lookup.last, is: NODATA }]
`,
      'story.yaml',
    );
    const acts = (await story.model?.()) ?? [];
    assert.deepEqual(
      acts.map(({ kind, title, facts, packets }) => [kind, title, packets.length, facts]),
      [
        [
          'flaw',
          'with glibc',
          24,
          [{ what: 'queries of glibc', expected: '12', found: '12', holds: true }],
        ],
        [
          'cure',
          'a dot',
          4,
          [{ what: 'lookup.last', expected: 'NODATA', found: 'NODATA', holds: true }],
        ],
      ],
    );
  });

  test('no truncation or mutation of the example crashes', () => {
    const example = readFileSync('examples/lab/story.yaml', 'utf8').split('\n');
    for (let line = 0; line < example.length; line++) {
      told(example.toSpliced(line, 1).join('\n'));
      told(example.with(line, example[line]!.replace(/[a-z]+: /, 'x: ')).join('\n'));
      told(example.with(line, `${/^ */.exec(example[line]!)![0]}[`).join('\n'));
    }
  });
});

describe('a value of an expectation', () => {
  const value = (source: string): Result =>
    parseExpression(source).value(({ result }) => ({ a: 6, b: 3, c: 2 })[result] ?? 'text');

  test('multiplication precedes addition, and brackets precede both', () => {
    assert.equal(value('s.a + s.b * s.c'), 12);
    assert.equal(value('(s.a + s.b) * s.c'), 18);
    assert.equal(value('s.a - s.b - s.c'), 1);
    assert.equal(value('s.a / s.b / s.c'), 1);
    assert.equal(value('1.5 * s.c'), 3);
  });

  test('a division by zero has no value, and a text is not a number', () => {
    assert.throws(() => value('s.a / (s.b - s.b)'), /6 is divided by 0/);
    assert.throws(() => value('s.word + 1'), /is not a number/);
  });

  for (const wrong of ['', 's', 's.', '.a', 's.a s.b', '(s.a', 's.a)', '+', 's.a ** 2', 's.a.b'])
    test(`"${wrong}" is not valid`, () => {
      assert.throws(() => parseExpression(wrong));
    });
});
