import assert from 'node:assert/strict';
import { test } from 'node:test';

import fc from 'fast-check';

import { read } from '../../../test/corefiles/read.ts';
import { lex, needsQuotes } from './lex.ts';
import { printCorefile } from './print.ts';
import type { Corefile, Property } from './corefile-tree.ts';
import { expandZone } from './zones.ts';

/** Fragments that matter to the grammar, and some that do not. */
const pieces = [
  '{',
  '}',
  '{ ',
  ' }',
  '\n',
  '\n',
  ' ',
  ' ',
  '"',
  '\\',
  '\\"',
  '#',
  '\r',
  '\t',
  ',',
  '(',
  ')',
  '(a)',
  'import ',
  'import a',
  'log',
  'cache',
  'forward',
  'a',
  'b.org',
  '.',
  ':53',
  'tls://',
  '10.0.0.0/15',
  '{$A}',
  '{$B}',
  '{%A%}',
  '{$}',
  '""',
  'é',
  '\u00A0',
  '. {\n',
  '\n}\n',
  'log "x y"\n',
  'cache {\n',
  '\uFEFF',
  '[',
  '*',
  '\u{1F600}',
];
const soup = fc.array(fc.constantFrom(...pieces), { maxLength: 60 }).map((parts) => parts.join(''));
const text = fc.oneof(soup, fc.string({ unit: 'binary', maxLength: 200 }));
const env = { A: 'value', B: '{$A} "x" {' };
const files = { a: 'log\n', b: 'import a\n}' };

test('parsing never throws, and ends', () => {
  fc.assert(
    fc.property(text, (input) => {
      const { corefile, problems, warnings } = read(input, { env, files });
      assert.match(corefile.fingerprint, /^[0-9a-f]{128}$/);
      assert.ok(problems.length <= 100 && warnings.length <= 100);
      structuredClone(corefile);
    }),
    { numRuns: 3000 },
  );
});

test('printed output parses back to the same tree', () => {
  let whole = 0;
  fc.assert(
    fc.property(soup, (input) => {
      // A variable's value may contain text that no word in a file can contain: `x\"` in quotes.
      const first = read(input.replaceAll(/\{[$%][AB]/g, ''), { files });
      if (first.problems.length > 0) return;
      whole++;
      const printed = printCorefile(first.corefile);
      const again = read(printed);
      assert.deepEqual(
        again.problems.map(({ message }) => message),
        [],
        printed,
      );
      assert.deepEqual(shape(again.corefile), shape(first.corefile), printed);
      assert.equal(printCorefile(again.corefile), printed);
      assert.equal(again.corefile.fingerprint, first.corefile.fingerprint);
    }),
    { numRuns: 5000 },
  );
  assert.ok(whole > 100);
});

test('a printed word parses back unchanged', () => {
  // Inside quotes, there cannot be an odd number of backslashes before a quote or at the end.
  const words = fc
    .string({ unit: fc.constantFrom('a', ' ', '#', '"', '\\\\', '\n', 'é', '{', '.') })
    .filter((word) => word.trim() !== '{' && !word.includes('{\\'));
  fc.assert(
    fc.property(fc.array(words, { minLength: 1, maxLength: 5 }), (args) => {
      const place = { file: 'Corefile', line: 1, column: 1 };
      const token = (word: string): { text: string; place: typeof place; quoted: boolean } => ({
        text: word,
        place,
        quoted: false,
      });
      const key = { text: '.', place, scheme: 'dns', zone: '.', port: 53 } as const;
      const directive = { name: 'log', at: token('log'), args: args.map(token), block: null };
      const printed = printCorefile({ blocks: [{ keys: [key], directives: [directive], place }] });
      const { corefile } = read(printed);
      assert.deepEqual(
        corefile.blocks[0]!.directives[0]!.args.map((found) => found.text),
        args,
      );
    }),
    { numRuns: 500 },
  );
});

test('every word is at its reported position', () => {
  fc.assert(
    fc.property(soup, (input) => {
      const lines = input.replace(/^\uFEFF/, '').split('\n');
      for (const { text: word, place, quoted } of lex(input, 'f').tokens) {
        const rest = lines[place.line - 1]!.slice(place.column - 1);
        if (quoted) assert.ok(rest.startsWith('"'));
        else assert.ok(rest.replaceAll('\r', '').startsWith(word));
        if (!quoted) assert.equal(needsQuotes(word), false);
      }
    }),
    { numRuns: 1000 },
  );
});

test('a CIDR gives one zone per subnet at the next boundary, all different', () => {
  const octet = fc.integer({ min: 1, max: 255 });
  fc.assert(
    fc.property(octet, octet, octet, octet, fc.integer({ min: 0, max: 32 }), (a, b, c, d, bits) => {
      const zones = expandZone(`${a}.${b}.${c}.${d}/${bits}`)!;
      const cut = Math.ceil(bits / 8);
      assert.equal(zones.length, 2 ** (8 * cut - bits));
      assert.equal(new Set(zones).size, zones.length);
      const address = [a, b, c, d].slice(0, cut).toReversed();
      assert.ok(zones.includes([...address, 'in-addr.arpa.'].join('.')));
      for (const zone of zones) assert.deepEqual(expandZone(zone), [zone]);
    }),
  );
});

test('parsing takes linear time', () => {
  const block = '. {\n cache 30 {\n  prefetch 1\n  success 10 "a b" # c\n }\n}\n';
  assert.equal(read(block.repeat(4000)).corefile.blocks.length, 4000);
});

function shape({ blocks }: Corefile): unknown {
  const line = ({ name, args, block }: Property): unknown => ({
    name: name.text,
    args: args.map(({ text: word }) => word),
    block: block?.map(line) ?? null,
  });
  return blocks.map(({ keys, directives }) => ({
    keys: keys.map(({ text: key, scheme, zone, port }) => ({ key, scheme, zone, port })),
    directives: directives.map(({ name, at, args, block }) => ({
      today: name,
      line: line({ name: at, args, block }),
    })),
  }));
}
