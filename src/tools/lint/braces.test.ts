import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { costsAtMost } from '../../../test/kit/growth.ts';
import { braceFault } from './braces.ts';

/** Indented Corefiles, and others from old reports. */
const corefiles = [
  ...globSync('test/corefiles/*.corefile').filter((file) => !file.includes('story-')),
  'deploy/cluster-dns/Corefile',
  'deploy/node-cache/Corefile',
  'examples/Corefile',
  'examples/protection/Corefile',
].map((file) => ({ file, lines: readFileSync(file, 'utf8').split('\n') }));

const isBlank = (line: string | undefined): boolean => /^\s*(?:#.*)?$/.test(line ?? '');

test('balanced braces are not a fault', () => {
  for (const { file, lines } of corefiles)
    assert.equal(braceFault(file, lines.join('\n'), null), null, file);
});

test('a } that is taken away is missing before the line that follows', () => {
  for (const { file, lines } of corefiles)
    for (const [index, line] of lines.entries()) {
      if (line.trim() !== '}') continue;
      const without = lines.toSpliced(index, 1);
      const next = without.findIndex((each, at) => at >= index && !isBlank(each));
      const fault = braceFault(file, without.join('\n'), null);
      assert.match(fault?.text ?? '', /^the \} for '.*is missing/, `${file}:${index + 1}`);
      if (next >= 0) assert.equal(fault?.line, next + 1, `${file}:${index + 1}`);
    }
});

test('a { that is taken away is missing at the end of its line', () => {
  for (const { file, lines } of corefiles)
    for (const [index, line] of lines.entries()) {
      if (!/\S\s\{$/.test(line)) continue;
      const fault = braceFault(file, lines.with(index, line.slice(0, -2)).join('\n'), null);
      assert.match(fault?.text ?? '', /^the \{ for '.*is missing/, `${file}:${index + 1}`);
      assert.equal(fault?.line, index + 1);
    }
});

test('a } that is surplus is found at its line', () => {
  for (const { file, lines } of corefiles)
    for (const [index, line] of lines.entries()) {
      if (line.trim() !== '}' || !line.startsWith(' ')) continue;
      const fault = braceFault(file, lines.toSpliced(index, 0, line).join('\n'), null);
      assert.match(fault?.text ?? '', /^this \} closes/, `${file}:${index + 1}`);
    }
});

test('a quote over several lines hides what closes', () => {
  assert.equal(braceFault('f', '.:53 {\n    a "x\n}\n    y"\n', null), null);
});

test('in a file that indents the } of every block, only the one inside a block is surplus', () => {
  const text = 'a:53 {\n  errors\n  }\nb:53 {\n  log\n  }\n  errors\n  }\n';
  assert.equal(braceFault('f', text, null)?.line, 6);
});

test('many wrong braces or quotes are judged in time that grows with their number', async () => {
  const texts: readonly ((count: number) => string)[] = [
    (count) => ' a {\n}\n'.repeat(count) + 'a {\n',
    (count) => 'a {\n }\n'.repeat(count) + '}\n',
    (count) => `"${'\\"'.repeat(count)}`,
  ];
  for (const text of texts) {
    const [many, few] = [text(8000), text(1000)];
    await costsAtMost(
      24,
      () => braceFault('Corefile', many, null),
      () => braceFault('Corefile', few, null),
    );
  }
});
