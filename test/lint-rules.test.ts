import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, test } from 'node:test';
import { lintTexts, type LintTexts } from './kit/lint-text.ts';
import { lintRules as rules } from '../src/faces/cli/lint/lint-rules.ts';

/** All codes ever used. The number of a removed code must not be reused. */
const codesEverUsed: readonly string[] = Array.from(
  { length: 60 },
  (_, index) => `CF${String(index + 1).padStart(2, '0')}`,
);

const sections = ['Problem', 'Bad', 'Good', 'Why', 'When to ignore', 'Since'] as const;

interface Page {
  readonly code: string;
  readonly text: string;
}

const pages: readonly Page[] = globSync('docs/rules/CF*.md')
  .toSorted()
  .map((file) => ({ code: basename(file, '.md'), text: readFileSync(file, 'utf8') }));

function section({ text, code }: Page, heading: string): string {
  const parts = text.split(/^## /m);
  const part = parts.find((each) => each.startsWith(`${heading}\n`));
  assert.ok(part !== undefined, `${code} has no section ${heading}`);
  return part.slice(heading.length).trim();
}

/** The fenced blocks in a section are files that are linted together. */
function example(page: Page, heading: 'Bad' | 'Good'): LintTexts {
  const files: Record<string, string> = {};
  let target: string | undefined;
  let running: string | undefined;
  for (const [, info = '', body = ''] of section(page, heading).matchAll(
    /^```([^\n]*)\n([^]*?)^```$/gm,
  )) {
    const [kind = '', ...words] = info.split(' ');
    const named = words.find((word) => word.startsWith('file='))?.slice(5);
    target ??= words.find((word) => word.startsWith('target='))?.slice(7);
    if (words.includes('running')) running = body;
    else files[named ?? (kind === 'yaml' ? 'objects.yaml' : 'Corefile')] = body;
  }
  assert.ok(Object.keys(files).length > 0, `${page.code}: nothing under ${heading}`);
  return {
    files,
    ...(target === undefined ? {} : { target }),
    ...(running === undefined ? {} : { running }),
  };
}

describe('rules and their pages', () => {
  test('every code has one rule, and none is used again', () => {
    const codes = rules.map(({ code }) => code).toSorted();
    assert.deepEqual(
      codes.filter((code, index) => codes.indexOf(code) !== index),
      [],
    );
    assert.deepEqual(codes, codesEverUsed);
  });

  test('every rule has a page, every page has a rule, and the index has them all', () => {
    const index = readFileSync('docs/rules/README.md', 'utf8');
    assert.deepEqual(
      pages.map(({ code }) => code),
      codesEverUsed,
    );
    for (const { code } of pages) assert.ok(index.includes(`| [${code}](${code}.md) |`), code);
  });

  for (const page of pages) {
    const { code } = page;

    test(`${code}: the page has all its sections`, () => {
      assert.match(page.text, new RegExp(`^# ${code}: \\S`));
      for (const heading of sections) assert.notEqual(section(page, heading), '', heading);
    });

    test(`${code}: the bad example is found`, async () => {
      const { findings } = await lintTexts(example(page, 'Bad'));
      const codes = findings.map((finding) => finding.code);
      assert.ok(codes.includes(code), `found ${codes.join(' ')}`);
      for (const { text, spot, excerpt } of findings) {
        assert.doesNotMatch(text, /undefined|\[object|\.$/);
        assert.ok(spot.column >= 1 && spot.endColumn > spot.column);
        assert.ok(excerpt === null || spot.column <= excerpt.length + 1, `${text}: ${excerpt}`);
      }
    });

    test(`${code}: nothing at all is found in the good example but notes`, async () => {
      const { findings } = await lintTexts(example(page, 'Good'));
      assert.deepEqual(
        findings
          .filter((finding) => finding.severity !== 'note' || finding.code === code)
          .map(
            (finding) =>
              `${finding.code} ${finding.spot.file}:${finding.spot.line} ${finding.text}`,
          ),
        [],
      );
    });
  }
});

describe('a query goes to the block with the longest zone', () => {
  const cluster = '    kubernetes cluster.local in-addr.arpa ip6.arpa\n';
  const judged = async (...blocks: readonly string[]): Promise<readonly string[]> => {
    const { findings } = await lintTexts({ files: { Corefile: blocks.join('\n') } });
    return findings.filter(({ code }) => code === 'CF51').map(({ text }) => text);
  };

  test('a plugin whose zones another block serves gets no query', async () => {
    const taken = [
      "no query for 'cluster.local.' reaches the server block for '.': the block for 'cluster.local.' gets them",
    ];
    const other = 'cluster.local:53 {\n    forward . 10.0.0.3\n}\n';
    assert.deepEqual(await judged(`.:53 {\n${cluster}}\n`, other), taken);
    assert.deepEqual(
      await judged('.:53 {\n    forward corp.example 10.0.0.2\n}\n', 'example {\n    whoami\n}\n'),
      [
        "no query for 'corp.example.' reaches the server block for '.': the block for 'example.' gets them",
      ],
    );
  });

  test('a block at another port, of a part of the zone, for some clients or at some addresses changes nothing', async () => {
    for (const other of [
      'cluster.local:5353 {\n    whoami\n}\n',
      'tls://cluster.local:53 {\n    whoami\n}\n',
      'db.cluster.local:53 {\n    whoami\n}\n',
      "cluster.local:53 {\n    view some {\n        expr type() == 'A'\n    }\n    whoami\n}\n",
      'cluster.local:53 {\n    bind 169.254.20.10\n    whoami\n}\n',
    ])
      assert.deepEqual(await judged(`.:53 {\n${cluster}}\n`, other), [], other);
  });
});

describe('rules and the plugin pages', () => {
  const examples = [
    'README.md',
    ...globSync(['src/server/plugins/*/*.md', 'docs/*.md', 'deploy/*.md']),
  ]
    .toSorted()
    .flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(/^```corefile\n([^]*?)^```$/gm)].map(
        ([, body = '']) => ({ file, body }),
      ),
    );

  test('no example of a page is an error or a warning', async () => {
    assert.ok(examples.length > 100);
    const wrong: string[] = [];
    for (const { file, body } of examples) {
      const { findings } = await lintTexts({ files: { Corefile: body }, live: false });
      // An example shows the plugin that its page is about, and does not need a cache.
      for (const { severity, code, text } of findings)
        if (severity !== 'note' && code !== 'CF50')
          wrong.push(`${basename(file)}: ${code} ${text}`);
    }
    assert.deepEqual(wrong, []);
  });
});
