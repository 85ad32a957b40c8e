import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { bind } from '../../../test/corefiles/syntaxes.ts';
import { required } from './positions.ts';
import { directive } from './syntax.ts';
import { duration, hostPort, integer, ip, net, onOff, token, Wrong } from './word-values.ts';

describe('words', () => {
  const said = (value: Parameters<typeof required>[0], text: string): unknown => {
    const syntax = directive({
      name: 'x',
      summary: '',
      repeat: 'once',
      args: { value: required(value) },
    });
    const { options, problems } = bind(syntax, `x ${text}`);
    return problems[0]?.message.replace(/^.*parsing: /, '') ?? options[0]!.value;
  };

  test("durations use Go's syntax, and a bare number is not one", () => {
    assert.equal(said(duration('D'), '1m30s'), 90_000);
    assert.equal(said(duration('D'), '0'), 0);
    assert.equal(said(duration('D'), '30'), 'time: missing unit in duration "30"');
    assert.equal(said(duration('D'), '3d'), 'time: unknown unit "d" in duration "3d"');
    assert.equal(said(duration('D'), 'soon'), 'time: invalid duration "soon"');
    assert.equal(said(duration('D', { minMs: 2000 }), '1s'), 'D must be at least 2s: 1s');
  });

  test('numbers are integers within a range', () => {
    assert.equal(said(integer('N'), '-12'), -12);
    assert.equal(said(integer('N'), '1.5'), 'strconv.Atoi: parsing "1.5": invalid syntax');
    assert.equal(
      said(integer('N'), '99999999999999999999'),
      'strconv.Atoi: parsing "99999999999999999999": value out of range',
    );
    assert.equal(said(integer('N', { min: 1, max: 5 }), '6'), 'N must be in range [1, 5]: 6');
  });

  test('choices, switches, addresses, prefixes, tokens', () => {
    assert.equal(said(onOff(), 'on'), true);
    assert.equal(said(onOff(), 'maybe'), "unknown value 'maybe', expected on, off");
    assert.equal(said(ip('IP'), '2001:db8::1'), '2001:db8::1');
    assert.equal(said(ip('IP'), 'localhost'), 'not an IP address: "localhost"');
    assert.deepEqual(said(net('NET'), '10.0.0.0/8'), {
      bytes: Uint8Array.of(10, 0, 0, 0),
      bits: 8,
    });
    assert.equal(said(net('NET'), '10.0.0.0/40'), 'invalid CIDR address: 10.0.0.0/40');
    assert.equal((said(token('T'), 'a') as { place: { column: number } }).place.column, 3);
  });

  test('addresses with a port', () => {
    assert.deepEqual(said(hostPort('A'), ':53'), { host: '', port: 53 });
    assert.deepEqual(said(hostPort('A'), '[::1]:53'), { host: '::1', port: 53 });
    assert.deepEqual(said(hostPort('A'), 'localhost:'), { host: 'localhost', port: 0 });
    assert.equal(said(hostPort('A'), 'localhost'), 'address localhost: missing port in address');
    assert.equal(said(hostPort('A'), '::1'), 'address ::1: too many colons in address');
    assert.equal(said(hostPort('A'), ':65536'), 'address :65536: invalid port');
  });

  test("a spelled-out unit: the hint shows Go's spelling", () => {
    const hint = (text: string): unknown => {
      const place = { file: 'Corefile', line: 1, column: 1 };
      const found = duration('D').read({ text, place, quoted: false });
      return found instanceof Wrong ? found.hint : found;
    };
    assert.equal(hint('1hour'), "Did you mean '1h'?");
    assert.equal(hint('30secs'), "Did you mean '30s'?");
    assert.equal(hint('5minutes'), "Did you mean '5m'?");
    assert.match(String(hint('soon')), /Durations are written/);
  });
});
