/** Tests that the prose checker finds unidiomatic sentences and accepts plain ones. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { faultsOf } from './faults.ts';

/** Sentences from this repository, each with its plain form. */
const pairs: readonly (readonly [before: string, after: string])[] = [
  [
    'Many queries can never succeed: the search path makes names that nobody has',
    'Most queries cannot succeed: the search path creates names that do not exist',
  ],
  [
    'A dot at the end of names of outside (api.example.com.), where programs let you write it: two queries.',
    'Write external names with a trailing dot (api.example.com.) where the program allows it: 2 queries instead of 10.',
  ],
  [
    'Names of services with two dots or more (redis.cache.svc) then are asked as they are first: musl (Alpine) stops there.',
    'Service names with two or more dots (redis.cache.svc) are then tried as written first, and musl (Alpine) stops at the NXDOMAIN.',
  ],
  [
    'Somebody has a wildcard record *.corp.example., and corp.example. is in the search path of the pods.',
    "A wildcard record *.corp.example. exists and corp.example. is in the pods' search path.",
  ],
  [
    'who leaves queries without a reply answers none',
    'the servers that lose queries answer none at all, so this is not overload',
  ],
  [
    'queries got no reply from servers that waited for it: those that give up sooner than its replies come drop them',
    'N queries went unanswered because the servers in between time out before this one replies',
  ],
  [
    'what is lost besides is of the moments of what is explained',
    'the remaining losses coincide with losses that another finding explains',
  ],
  [
    'Nothing was sent: a name of which no --answers FILE, --corefile FILE or --manifests DIR tells is taken for one that does not exist.',
    'Nothing was sent. Names not covered by --answers, --corefile or --manifests are treated as NXDOMAIN.',
  ],
  [
    'Behind -- stands a verb of ndots, as in trace redis.cache.',
    'After --, give an ndots command, for example: trace redis.cache',
  ],
  [
    'A capture has addresses alone; whose they are is read there.',
    'A capture contains only addresses; pod names come from --cluster or --manifests.',
  ],
  [
    'metrics that name who asks most, for what, and what of it is in vain',
    'metrics for the busiest clients, their most-queried names, and failed lookups',
  ],
  [
    'the certificate with its chain, its key, whom clients are signed by',
    'certificate chain, private key, and the CA for client certificates',
  ],
  [
    'for pods that nobody asks for (default: those are left alone)',
    'ndots value for pods without an annotation (default: leave them unchanged)',
  ],
  ['so that nothing waits for it that it waits for itself', 'to avoid a circular dependency'],
  [
    'plays a real incident, once with its flaw and once with its cure, and says whether it went as it is told',
    'plays a real incident, first with the fault, then with the fix, and checks that both behave as documented',
  ],
  [
    'Lookups are answered all through a change of image and back: old pods stay until new ones are ready, and those that go answer until the end of the pause.',
    'Changing the image loses no lookups: old pods stay until new ones are ready, and terminating pods answer until the pause ends.',
  ],
  [
    'An option that would be passed over is none that its person wanted so.',
    'Rejects options that would have no effect without another option.',
  ],
  [
    'Whether it goes by the name which queries a server leaves without a reply.',
    'Detects losses that depend on the query name.',
  ],
  [
    'Whether the query looks for its own way round: waiting for itself, it would never find out.',
    'True for loop-detection probes, which must not be coalesced with themselves.',
  ],
  ['What is less likely is no chance.', 'Below this probability a pattern is not chance.'],
  [
    'doctor tells of programs whose lookups wait for one of a few threads, as in Node.js (ND2009).',
    'doctor detects programs whose lookups queue behind a small thread pool, as in Node.js (ND2009).',
  ],
  [
    'doctor: who hears that nobody listens does not wait',
    'doctor: an ICMP port-unreachable ends the wait',
  ],
];

/** Pairs that only differ in word choice, which a pattern cannot detect. */
const undetectable: ReadonlySet<string> = new Set([
  'queries got no reply from servers that waited for it: those that give up sooner than its replies come drop them',
  'so that nothing waits for it that it waits for itself',
  'Lookups are answered all through a change of image and back: old pods stay until new ones are ready, and those that go answer until the end of the pause.',
]);

const inDocstring = (text: string): string => `/** ${text} */\nexport const a = 1;\n`;
const rulesOf = (file: string, text: string): readonly string[] =>
  faultsOf(file, text).map(({ rule }) => rule);

describe('the prose checker', () => {
  for (const [before, after] of pairs) {
    if (!undetectable.has(before))
      test(`reports: ${before}`, () =>
        assert.notDeepEqual(rulesOf('src/a.ts', inDocstring(before)), []));
    test(`accepts: ${after}`, () => assert.deepEqual(rulesOf('src/a.ts', inDocstring(after)), []));
  }

  for (const [text, rule] of [
    ['It is told of that, and it is asked anew.', 'is told'],
    ['The file is no capture.', 'negated noun'],
    ['This is none of ours.', 'negated noun'],
    ['The cache lets go of the name.', 'let go of'],
    ['The reply is kept for 5 s.', 'is kept'],
    ['It asks once more.', 'asks anew'],
    ['Queries sent meanwhile are lost.', 'old word'],
    ['It was mended in 1.2.', 'mend'],
    ['The label stands in front.', 'stands'],
    ['A misspelt name is refused.', 'misspelt'],
    ['The option is silently passed over.', 'passed over'],
    ['It uses one processor.', 'processor'],
    ['A folder of manifests.', 'folder'],
    ['The finding has a remedy.', 'remedy'],
    ['It shows so many bytes.', 'so many'],
    ['The option has its page.', 'has its page'],
    ['The name goes on asking.', 'goes on'],
    ['The tool reckons the cost.', 'reckons'],
    ['It finds out where the query went.', 'finds out'],
  ] as const)
    test(`reports "${rule}" in: ${text}`, () =>
      assert.ok(rulesOf('docs/a.md', `# A\n\n${text}\n`).includes(rule)));

  for (const text of [
    'There is no server, and there are none to come.',
    'The server is no longer used and no more than 3 queries wait.',
    'What is a search path? Who asks for it?',
    'Print what to type next, and what to do about it.',
    'A wildcard stands for any label.',
    'The `folder` option and `processor` count.',
    'Clients who wait are counted.',
    'The program uses so many threads that the limit is reached.',
    'See [the folder](folder/nobody.md#anew), then `anew`.',
    'It takes 3 seconds for the reply.',
  ])
    test(`accepts: ${text}`, () => {
      const found = rulesOf('docs/a.md', `# A\n\n${text}\n`);
      assert.deepEqual(text.includes('[the folder]') ? found.slice(1) : found, []);
    });

  test('reports a sentence of 25 words, and not one of 24', () => {
    const sentence = (count: number): string => `# A\n\n${'word '.repeat(count).trim()}.\n`;
    assert.ok(rulesOf('docs/a.md', sentence(25)).includes('long sentence'));
    assert.ok(!rulesOf('docs/a.md', sentence(24)).includes('long sentence'));
  });

  test('a list of code words or of numbers counts as one word, and markup as none', () => {
    const long = 'word '.repeat(22);
    for (const list of ['`a`, `b`, `c`, and `d`', '1.2.3 1.2.4 1.3.0 1.4.0', '<img alt="a b c d">'])
      assert.ok(
        !rulesOf('docs/a.md', `# A\n\n${long}\n${list}.\n`).includes('long sentence'),
        list,
      );
  });

  test('each tag of a docstring and each item of a list is a sentence', () => {
    const text = Array.from({ length: 9 }, () => '@param name what it is\n * - an item').join(
      '\n * ',
    );
    assert.ok(!rulesOf('src/a.ts', `/**\n * ${text}\n */\n`).includes('long sentence'));
  });

  test('the links of a list are separate sentences', () => {
    const links = Array.from({ length: 9 }, () => '[a page with a name](a.md)').join(' · ');
    assert.ok(!rulesOf('docs/a.md', `# A\n\n${links}\n`).includes('long sentence'));
  });
});
