import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { bind, cache, forward, messages, only } from '../../../test/corefiles/syntaxes.ts';
import { last, zones } from './positions.ts';
import { directive } from './syntax.ts';
import { word } from './word-values.ts';

describe('arguments', () => {
  test('a leading number is the TTL, names are zones; none means the block’s zones', () => {
    assert.equal(only(cache, 'cache').ttlSeconds, null);
    assert.deepEqual(only(cache, 'cache').zones, ['.', 'example.org.']);
    assert.equal(only(cache, 'cache 30').ttlSeconds, 30);
    assert.deepEqual(only(cache, 'cache 30 A.org 10.0.0.0/15').zones, [
      'a.org.',
      '0.10.in-addr.arpa.',
      '1.10.in-addr.arpa.',
    ]);
    assert.deepEqual(only(cache, 'cache a.org').zones, ['a.org.']);
  });

  test('a leading number out of range is rejected, not read as a zone', () => {
    assert.deepEqual(messages(cache, 'cache 0'), [
      'plugin/cache: Corefile:2 - Error during parsing: cache TTL can not be zero or negative: 0',
    ]);
  });

  test('the last word can be the required one', () => {
    const autopath = directive({
      name: 'autopath',
      summary: '',
      repeat: 'once',
      args: { zones: zones(), from: last(word('RESOLV_CONF|@PLUGIN')) },
    });
    assert.deepEqual(only(autopath, 'autopath @kubernetes'), {
      zones: ['.', 'example.org.'],
      from: '@kubernetes',
    });
    assert.deepEqual(only(autopath, 'autopath a.org b.org /etc/resolv.conf'), {
      zones: ['a.org.', 'b.org.'],
      from: '/etc/resolv.conf',
    });
    assert.deepEqual(messages(autopath, 'autopath'), [
      "plugin/autopath: Corefile:2 - Error during parsing: Wrong argument count or unexpected line ending after 'autopath'",
    ]);
  });

  test('too few and too many words are counted as in CoreDNS', () => {
    const none = directive({ name: 'loop', summary: '', repeat: 'once' });
    const wrong = 'Error during parsing: Wrong argument count or unexpected line ending after';
    assert.deepEqual(messages(none, 'loop x'), [`plugin/loop: Corefile:2 - ${wrong} 'x'`]);
    assert.deepEqual(messages(forward, 'forward'), [
      `plugin/forward: Corefile:2 - ${wrong} 'forward'`,
    ]);
    assert.deepEqual(messages(forward, 'forward .'), [`plugin/forward: Corefile:2 - ${wrong} '.'`]);
    assert.deepEqual(messages(forward, 'forward {\n}'), [
      "plugin/forward: Corefile:2 - Error during parsing: Unexpected token '{', expecting argument",
    ]);
    assert.deepEqual(messages(none, 'loop {\n}'), [
      "plugin/loop: Corefile:2 - Error during parsing: Unexpected token '{', expecting argument",
    ]);
  });

  test('FROM as a CIDR between two boundaries: only the first zone, with a warning', () => {
    const { options, warnings } = bind(forward, 'forward 10.0.0.0/15 8.8.8.8');
    assert.equal(options[0]!.from, '0.10.in-addr.arpa.');
    assert.equal(warnings.length, 1);
    assert.match(warnings[0]!.message, /^plugin\/forward: .*'10\.0\.0\.0\/15' expands to multiple/);
  });

  test('an invalid zone is ignored with a warning', () => {
    const { options, warnings } = bind(cache, 'cache 30 a..b c.org');
    assert.deepEqual(options[0]!.zones, ['c.org.']);
    assert.deepEqual(
      warnings.map(({ message }) => message),
      ["plugin/cache: 'a..b' is not a zone and is ignored"],
    );
  });

  test('a zone that begins with a digit and has no dot is probably a number or a time: it is accepted, with a warning', () => {
    for (const [line, word] of [
      ['cache 1hour', '1hour'],
      ['cache 1h', '1h'],
      ['cache 30 60 c.org', '60'],
    ] as const) {
      const { options, warnings } = bind(cache, line);
      assert.equal(options[0]!.zones[0], `${word}.`);
      assert.deepEqual(
        warnings.map(({ message }) => message),
        [`plugin/cache: '${word}' is read as the zone ${word}., not as a number or a time`],
      );
    }
    for (const line of [
      'cache 30',
      'cache 10.in-addr.arpa',
      'cache 10/8',
      'cache 2001:db8::/32',
      'cache 1.',
      'cache a1',
    ])
      assert.deepEqual(bind(cache, line).warnings, [], line);
  });
});
