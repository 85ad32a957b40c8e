import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseName } from '../../server/wire/name.ts';
import { Redaction } from './redaction.ts';

test('a pseudonym has as many labels as its name, of the same lengths, for any bytes', () => {
  const redaction = new Redaction('k');
  const lengths = (text: string): number[] => {
    const found: number[] = [];
    const wire = parseName(text);
    for (let at = 0; wire[at] !== 0; at += wire[at]! + 1) found.push(wire[at]!);
    return found;
  };
  for (const name of [
    `${'\\027'.repeat(63)}.${'\\000'.repeat(63)}.${'\\255'.repeat(63)}.${'\\127'.repeat(61)}.`,
    'with\\.dot.and\\\\backslash.svc.cluster.local.',
    'plain.example.',
    '.',
  ]) {
    const hidden = redaction.name(name);
    assert.deepEqual(lengths(hidden), lengths(name), name);
    assert.doesNotMatch(hidden, /[^a-z0-9.]/);
    assert.equal(redaction.name(name), hidden);
  }
});

test('a name with the most labels possible stays a valid name, though its labels run out of pseudonyms', () => {
  const redaction = new Redaction('k');
  const letters = 'abcdefghijklmnopqrstuvwxyz0123456789';
  for (let nth = 0; nth < 50; nth++) {
    const name = `${Array.from({ length: 127 }, (_, at) => letters[(at * 7 + nth) % 36]).join('.')}.`;
    const hidden = redaction.name(name);
    assert.equal(parseName(hidden).length, 255);
    assert.equal(redaction.name(name), hidden);
  }
});

test('text in the place of an address is hidden even if it is not an address', () => {
  const redaction = new Redaction('k');
  for (const text of ['db-7.prod', 'fe80::1%eth0', '10.0.0.1.5', '2001:db8::g'])
    assert.match(redaction.address(text), /^fd[0-9a-f:]+$/, text);
  assert.deepEqual(
    ['', '127.0.0.1', '0.0.0.0'].map((text) => redaction.address(text)),
    ['', '127.0.0.1', '0.0.0.0'],
  );
});
