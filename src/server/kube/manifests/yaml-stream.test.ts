import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PIECE_MEMORY, YamlBoundError, yamlPieces } from './yaml-stream.ts';

/** Returns the output, with list entries as `[index, value]` and documents unchanged. */
function pieces(text: string, memory = PIECE_MEMORY): unknown[] {
  return [...yamlPieces(text, memory)].map(({ document, item }) => {
    assert.deepEqual(document.errors, []);
    const value = document.toJS() as unknown;
    return item === null ? value : [item, value];
  });
}

describe('a YAML file arrives piece by piece', () => {
  test('each document separately', () => {
    assert.deepEqual(pieces('a: 1\n---\nb: 2\n...\n---\n# c\n'), [{ a: 1 }, { b: 2 }, null]);
  });

  test('the entries of items before the document that contains them, except the last', () => {
    assert.deepEqual(pieces('kind: List\nitems:\n- a: 1\n  b: [1, 2]\n\n# two\n- c\n- d: {}\n'), [
      [0, { a: 1, b: [1, 2] }],
      [1, 'c'],
      { kind: 'List', items: [null, null, { d: {} }] },
    ]);
  });

  test('a merge key copies the keys of another mapping, as in kubectl', () => {
    assert.deepEqual(pieces('a: &a { b: 1, c: 2 }\nd: { <<: *a, c: 3 }\n'), [
      { a: { b: 1, c: 2 }, d: { b: 1, c: 3 } },
    ]);
  });

  test('those in JSON, too', () => {
    assert.deepEqual(pieces('{\n "items": [\n {"a": [1, 2]} ,\n {"b": 2},3],\n "kind": "List"}'), [
      [0, { a: [1, 2] }],
      [1, { b: 2 }],
      { items: [null, null, 3], kind: 'List' },
    ]);
  });

  test('those of several lists, each after the preceding document', () => {
    const list = (name: string): string => `items:\n  - ${name}1\n  - ${name}2\n`;
    assert.deepEqual(pieces([list('a'), 'x: 1\n', list('b')].join('---\n')), [
      [0, 'a1'],
      { items: [null, 'a2'] },
      { x: 1 },
      [0, 'b1'],
      { items: [null, 'b2'] },
    ]);
  });

  test('lists with anchors as a whole from the first anchor on, because an alias may be anywhere', () => {
    assert.deepEqual(pieces('items:\n- a\n- &x b\n- c\n- *x\n'), [
      [0, 'a'],
      { items: [null, 'b', 'c', 'b'] },
    ]);
  });

  test('lists elsewhere as a whole', () => {
    for (const text of [
      'list:\n- a\n- b\n',
      'spec: {items: [a, b]}',
      '- a\n- b\n',
      'items: {a: 1, b: 2}',
    ])
      assert.equal(pieces(text).length, 1, text);
  });

  test('a file of any size with the memory of its largest piece', () => {
    const memory = 32 * 1024;
    const entry = '- name: a\n  value: b\n';
    assert.equal(pieces(`items:\n${entry.repeat(20)}`, memory).length, 20);
    assert.equal(pieces('---\na: 1\n'.repeat(1000), memory).length, 1000);
    assert.equal(pieces(`${'# nothing\n\n'.repeat(1000)}a: 1\n`, memory).length, 1);
    assert.throws(() => pieces(`items: [${'1,'.repeat(1000)}]`, memory), YamlBoundError);
    assert.throws(() => pieces('%YAML 1.2\n'.repeat(1000), memory), YamlBoundError);
    assert.throws(() => pieces(`list:\n${entry.repeat(1000)}`, memory), YamlBoundError);
  });
});
