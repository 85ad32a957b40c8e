import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { parseCorefile } from '../../server/corefile/parse.ts';
import { directiveNames, external } from '../../server/plugins/order.ts';
import { lintTexts } from '../../../test/kit/lint-text.ts';
import type { LintFinding } from './finding.ts';

/** Corefiles with indented blocks, whose mistakes are real ones. */
const corefiles = [
  ...globSync('test/corefiles/*.corefile').filter((file) => !file.includes('story-')),
  'deploy/cluster-dns/Corefile',
  'deploy/node-cache/Corefile',
  'examples/protection/Corefile',
].map((file) => ({ file, lines: readFileSync(file, 'utf8').split('\n') }));

/** Findings as `line code`, where `line` is mapped to the line in the intact file. */
async function found(
  lines: readonly string[],
  intactLine: (line: number) => number = (line) => line,
): Promise<readonly string[]> {
  const { findings } = await lintTexts({ files: { Corefile: lines.join('\n') }, live: false });
  return findings.map(({ code, text, spot }) =>
    isBrace(code, text) ? `brace ${spot.line}` : `${intactLine(spot.line)} ${code} ${text}`,
  );
}

const isBrace = (code: string, text: string): boolean => code === 'CF34' && /[{}]/.test(text);
const withoutPlaces = (findings: readonly string[]): readonly string[] =>
  findings.map((each) => each.replaceAll(/Corefile:\d+/g, 'Corefile')).toSorted();
const others = (findings: readonly string[]): readonly string[] =>
  withoutPlaces(findings.filter((each) => !each.startsWith('brace ')));

describe('a Corefile with one wrong brace has one more finding than the intact file', () => {
  for (const { file, lines } of corefiles)
    test(file, async () => {
      const intact = others(await found(lines));
      for (const [index, line] of lines.entries()) {
        const broken: (readonly [string, readonly string[], (line: number) => number])[] = [];
        if (line.trim() === '}') {
          const shortened = (at: number): number => (at > index ? at + 1 : at);
          broken.push(['without }', lines.toSpliced(index, 1), shortened]);
          const longer = (at: number): number => (at > index + 1 ? at - 1 : at);
          if (line.startsWith(' '))
            broken.push(['with another }', lines.toSpliced(index, 0, line), longer]);
        }
        if (/\S\s\{$/.test(line))
          broken.push(['without {', lines.with(index, line.slice(0, -2)), (at) => at]);
        for (const [how, text, intactLine] of broken) {
          const findings = await found(text, intactLine);
          const where = `${file}:${index + 1} ${how}`;
          assert.deepEqual(others(findings), intact, where);
        }
      }
    });
});

/** A line with a brace, and the lines with one brace less or more that replace it. */
interface WrongBrace {
  readonly index: number;
  readonly instead: readonly string[];
}

function wrongBraces(lines: readonly string[]): readonly WrongBrace[] {
  return lines.flatMap((line, index): readonly WrongBrace[] => {
    if (/\S\s\{$/.test(line)) return [{ index, instead: [line.slice(0, -2)] }];
    if (line.trim() !== '}') return [];
    const surplus = { index, instead: [line, line] };
    return [{ index, instead: [] }, ...(line.startsWith(' ') ? [surplus] : [])];
  });
}

/** The findings of a text with these braces, its lines, and the number of each line in the intact file. */
async function withWrong(
  lines: readonly string[],
  wrong: readonly WrongBrace[],
): Promise<{
  readonly findings: readonly LintFinding[];
  readonly left: readonly string[];
  readonly numbers: readonly number[];
}> {
  const instead = new Map(wrong.map((each) => [each.index, each.instead]));
  const numbered = lines.flatMap((line, index) =>
    (instead.get(index) ?? [line]).map((text) => ({ text, number: index + 1 })),
  );
  const left = numbered.map(({ text }) => text);
  const { findings } = await lintTexts({ files: { Corefile: left.join('\n') }, live: false });
  return { findings, left, numbers: numbered.map(({ number }) => number) };
}

/** The sentences of a finding that mention a } or a place that the text does not contain. */
function falseQuotes({ hint, text, remedy, spot }: LintFinding, left: readonly string[]): string[] {
  return [text, hint ?? '', remedy ?? ''].filter((sentence) => {
    const isBraceHere = left[spot.line - 1]?.includes('}') === true;
    if (/^(?:this|Remove this) \}/i.test(sentence) && !isBraceHere) return true;
    if (/ \((?:corrected|version)/.test(sentence)) return true;
    return [...sentence.matchAll(/(\} at )?Corefile:(\d+)/g)].some(([, brace, number]) => {
      const line = left[Number(number) - 1];
      return line === undefined || (brace !== undefined && !line.includes('}'));
    });
  });
}

/** True if the server accepts the text, as it does if the only or last block has no braces. */
function parses(lines: readonly string[]): boolean {
  const { problems } = parseCorefile({
    file: 'Corefile',
    text: lines.join('\n').replaceAll(/__\w+__/g, '10.0.0.1'),
    dnsPort: 53,
    env: {},
    directives: directiveNames,
    external,
    readFile: () => '',
    glob: () => [],
  });
  return problems.length === 0;
}

describe('a Corefile with two wrong braces has no other findings than the intact file', () => {
  for (const { file, lines } of corefiles)
    test(file, async () => {
      const whole = others(await found(lines));
      const braces = wrongBraces(lines);
      const pairs = braces.flatMap((first, at) =>
        braces
          .slice(at + 1)
          .flatMap((second) => (first.index < second.index ? [[first, second]] : [])),
      );
      for (const pair of pairs) {
        const { findings, left, numbers } = await withWrong(lines, pair);
        const where = JSON.stringify({ file, pair });
        const rest = findings
          .filter(({ code, text }) => !isBrace(code, text))
          .map(({ code, text, spot }) => `${numbers[spot.line - 1]} ${code} ${text}`);
        assert.deepEqual(withoutPlaces(rest), whole, where);
        assert.ok(rest.length < findings.length || parses(left), where);
        for (const finding of findings) assert.deepEqual(falseQuotes(finding, left), [], where);
      }
    });
});

/** The findings in a text, as `line code`. */
async function codes(text: string): Promise<readonly string[]> {
  const { findings } = await lintTexts({ files: { Corefile: text }, live: false });
  return findings.map(({ code, spot }) => `${spot.line} ${code}`);
}

test('several missing braces are each reported, along with the other mistakes', async () => {
  const text = `.:53 {
    kubernetes cluster.local {
        pods insecure

    cachee 30
}

example.org:53 {
    forward . 10.0.0.2
    cache 30

corp.internal:53 {
    erors
    forward . 10.0.0.3
}
`;
  const found = await codes(text);
  for (const wanted of ['5 CF34', '12 CF34', '5 CF01', '13 CF01'])
    assert.ok(found.includes(wanted), `${wanted} in ${found.join(', ')}`);
});

test('without indentation, a line like a server block ends the block before it', async () => {
  const text = `.:53 {
forward . 10.0.0.2
cache 30
example.org:53 {
erors
forward . 10.0.0.3
}
`;
  const found = await codes(text);
  assert.ok(found.includes('4 CF34'), found.join(', '));
  assert.ok(found.includes('5 CF01'), found.join(', '));
  assert.equal(found.filter((each) => each.endsWith('CF01')).length, 1, found.join(', '));
});

test('a directive that is indented like a property ends the block before it', async () => {
  const text = `.:53 {
    kubernetes cluster.local {
        pods insecure
        forward . 10.0.0.2
    cache 30
}
`;
  const found = await codes(text);
  assert.ok(found.includes('4 CF34'), found.join(', '));
  assert.ok(!found.some((each) => each.endsWith('CF01')), found.join(', '));
});

test('places in a ConfigMap stay those of the file', async () => {
  const text = `kind: ConfigMap
metadata: { name: coredns, namespace: kube-system }
data:
  Corefile: |
    .:53 {
        kubernetes cluster.local {
            pods insecure
        cachee 30
    }
    example.org:53 {
        erors
        forward . 10.0.0.3
    }
`;
  const { findings } = await lintTexts({ files: { 'map.yaml': text }, live: false });
  const found = findings.map(({ code, spot }) => `${spot.line}:${spot.column} ${code}`);
  for (const wanted of ['8:9 CF34', '8:9 CF01', '11:9 CF01'])
    assert.ok(found.includes(wanted), `${wanted} in ${found.join(', ')}`);
  const brace = findings.find(({ code }) => code === 'CF34');
  assert.match(brace?.text ?? '', /'kubernetes' \(map\.yaml:6\)/);
  assert.ok(findings.every(({ text, hint }) => !/corrected/.test(`${text} ${hint}`)));
});

test('nothing is fixed in a file whose structure is a guess', async () => {
  const text = '.:53 {\n    errors\n    forward . 10.0.0.2 {\n    cache 30\n}\n';
  const { findings } = await lintTexts({ files: { Corefile: text }, live: false });
  assert.ok(findings.length > 1);
  assert.deepEqual(
    findings.flatMap(({ edits }) => edits),
    [],
  );
});

test('a brace that is missing in an imported file is reported there, and the rest is linted', async () => {
  const { findings } = await lintTexts({
    files: {
      'map.yaml': `kind: ConfigMap
metadata: { name: coredns, namespace: kube-system }
data:
  Corefile: |
    .:53 {
        import common.override
        cachee 30
    }
  common.override: |
    errors
    kubernetes cluster.local {
        pods insecure
    forwrd . 10.0.0.2
`,
    },
    live: false,
  });
  const found = findings
    .filter(({ severity }) => severity === 'error')
    .map(({ code, spot, text }) => `${spot.line}:${spot.column} ${code} ${text}`);
  assert.deepEqual(found, [
    "13:5 CF34 the } for 'kubernetes' (map.yaml:11) is missing before this line",
    "7:9 CF01 Unknown directive 'cachee'",
    "13:5 CF01 Unknown directive 'forwrd'",
  ]);
});
