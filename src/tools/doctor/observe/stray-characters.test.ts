import assert from 'node:assert/strict';
import { test } from 'node:test';
import { strayCharacters } from './stray-characters.ts';

test('stray characters are named with their place, host names have none', () => {
  for (const [name, what, where, meant] of [
    ['db.shop\\010.', 'a line feed (byte 0x0a)', ' at its end', 'db.shop.'],
    ['\\"db.shop\\".', 'a double quote (")', ' at both ends', 'db.shop.'],
    ['\\032db.shop.', 'a space (byte 0x20)', ' at its start', 'db.shop.'],
    ['db\\013.shop.', 'a carriage return (byte 0x0d)', '', null],
    ['db\\226\\128\\139.shop.', 'a character outside ASCII (byte 0xe2)', '', null],
    ['${db_host}.', 'the character $', ' at both ends', null],
  ] as const) {
    const found = strayCharacters(name);
    assert.deepEqual([found?.what, found?.where, found?.meant], [what, where, meant], name);
  }
  for (const name of ['db.shop.', '_http._tcp.web.', '*.example.', 'xn--bcher-kva.example.'])
    assert.equal(strayCharacters(name), null);
});
