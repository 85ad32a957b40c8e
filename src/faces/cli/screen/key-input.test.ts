/** Tests key decoding with the bytes that terminals send. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { VirtualClock } from '../../../server/base/virtual-clock.ts';
import { KeyInput, type KeyPress } from './key-input.ts';

describe('keys', () => {
  for (const [bytes, expected] of [
    ['a', 'a'],
    ['é', 'é'],
    ['\r', 'enter'],
    ['\t', 'tab'],
    ['\u007f', 'backspace'],
    ['\u0003', 'ctrl+c'],
    ['\u001b[A', 'up'],
    ['\u001bOB', 'down'],
    ['\u001b[1;5C', 'ctrl+right'],
    ['\u001b[1;2D', 'shift+left'],
    ['\u001b[Z', 'shift+tab'],
    ['\u001b[5~', 'pageup'],
    ['\u001b[6~', 'pagedown'],
    ['\u001b[H', 'home'],
    ['\u001b[4~', 'end'],
    ['\u001bOP', 'f1'],
    ['\u001b[11~', 'f1'],
    ['\u001bx', 'alt+x'],
    ['\u001b\u001b[A', 'escape up'],
    ['\u001b[200~rm -rf /\u001b[201~x', 'paste(rm -rf /) x'],
    ['\u001b]11;rgb:0000/0000/0000\u0007q', 'q'],
    ['\u001bP1+r5463\u001b\\q', 'q'],
    ['\u001b[?62;4cq', 'q'],
    ['\u001b[99~q', 'q'],
  ] as const)
    test(`${JSON.stringify(bytes)} is ${expected}`, async () => {
      assert.equal(await keysOf([bytes]), expected);
      assert.equal(await keysOf([...Buffer.from(bytes)].map((byte) => Buffer.of(byte))), expected);
    });

  test('an escape character alone is the key Esc, after a moment', async () => {
    const { input, keys, clock } = keyboard();
    input.push(Buffer.from('\u001b'));
    assert.deepEqual(keys, []);
    await clock.advance(50);
    assert.deepEqual(keys, ['escape']);
  });

  test('an endless sequence is abandoned, and no key after it is lost', async () => {
    const { input, keys, clock } = keyboard();
    input.push(Buffer.from('\u001b[1'));
    await clock.advance(50);
    input.push(Buffer.from('q'));
    assert.deepEqual(keys, ['escape', '[', '1', 'q']);
  });

  test('an endless paste is truncated', () => {
    const { input, keys } = keyboard();
    input.push(Buffer.from('\u001b[200~'));
    for (let i = 0; i < 100; i++) input.push(Buffer.from('x'.repeat(1000)));
    input.push(Buffer.from('\u001b[201~q'));
    assert.equal(keys.length, 2);
    assert.equal(keys[0]!.length, 'paste()'.length + 4096);
    assert.equal(keys[1], 'q');
  });
});

async function keysOf(chunks: readonly (string | Uint8Array)[]): Promise<string> {
  const { input, keys, clock } = keyboard();
  for (const chunk of chunks) input.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
  await clock.advance(50);
  return keys.join(' ');
}

function keyboard(): { input: KeyInput; keys: string[]; clock: VirtualClock } {
  const clock = new VirtualClock();
  const keys: string[] = [];
  return { input: new KeyInput((key) => keys.push(print(key)), clock), keys, clock };
}

function print({ name, ctrl, alt, shift, text }: KeyPress): string {
  const held = [ctrl ? 'ctrl+' : '', alt ? 'alt+' : '', shift ? 'shift+' : ''].join('');
  return `${held}${name}${name === 'paste' ? `(${text})` : ''}`;
}
