import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import {
  acl,
  bind,
  cache,
  forward,
  hosts,
  kubernetes,
  messages,
  only,
} from '../../../test/corefiles/syntaxes.ts';
import { optional } from './positions.ts';
import { chained, flag, lax, list, setting } from './properties.ts';
import { directive, printSyntax, type Syntax } from './syntax.ts';
import { hostPort, integer, word } from './word-values.ts';

describe('repetition', () => {
  test('once: a second use is CoreDNS’s error', () => {
    const { options, problems } = bind(cache, 'cache 30\nother\ncache 40');
    assert.equal(options.length, 1);
    assert.deepEqual(
      problems.map(({ message, place }) => [message, place?.line]),
      [['plugin/cache: this plugin can only be used once per Server Block', 4]],
    );
  });

  test('each: one instance per use, in file order', () => {
    const { options } = bind(forward, 'forward a.org 1\nforward . 2');
    assert.deepEqual(
      options.map(({ from, at }) => [from, at.line]),
      [
        ['a.org.', 2],
        ['.', 3],
      ],
    );
  });

  test('gather: one instance gets all uses', () => {
    assert.equal(bind(acl, 'acl\nacl').options.length, 1);
    assert.equal(bind(acl, 'acl\nacl').options[0]!.length, 2);
    assert.equal(bind(acl, 'other').options.length, 0);
  });

  test('last: the last one counts', () => {
    const health = directive({
      name: 'health',
      summary: '',
      repeat: 'last',
      args: {
        address: optional(hostPort('ADDRESS', { port: 8080 }), {
          default: { host: '', port: 8080 },
        }),
      },
    });
    assert.deepEqual(only(health, 'health :1\nhealth [::1]:2').address, { host: '::1', port: 2 });
    assert.deepEqual(only(health, 'health 127.0.0.1').address, { host: '127.0.0.1', port: 8080 });
  });

  test('merge: the last one’s arguments and the properties of all', () => {
    const health = directive({
      name: 'health',
      summary: 'over HTTP',
      repeat: 'merge',
      args: { port: optional(integer('PORT', { min: 0 }), { default: 8080 }) },
      properties: {
        seconds: setting('lameduck', integer('SECONDS', { min: 0 }), { default: 0 }),
        nets: list('allow', word('NET')),
      },
    });
    const { port, seconds, nets } = only(
      health,
      'health 1 {\nlameduck 5\nallow a\n}\nhealth 2 {\nallow b\n}',
    );
    assert.deepEqual([port, seconds, nets], [2, 5, ['a', 'b']]);
  });

  test('first: the others are not parsed, with a warning', () => {
    const bufsize = directive({
      name: 'bufsize',
      summary: 'limits replies',
      repeat: 'first',
      args: { size: optional(integer('SIZE', { min: 512 })) },
    });
    const { options, problems, warnings } = bind(bufsize, 'bufsize 600\nbufsize 700\nbufsize x y');
    assert.deepEqual([options.map(({ size }) => size), problems], [[600], []]);
    assert.deepEqual(
      warnings.map(({ code, place }) => [code, place?.line]),
      [
        ['directive-repeated', 3],
        ['directive-repeated', 4],
      ],
    );
  });

  test('words, braces and lines that CoreDNS ignores are ignored, with a warning', () => {
    const shape = { summary: '', repeat: 'last', args: { size: optional(word('SIZE')) } } as const;
    const words = directive({ ...shape, name: 'cancel', unread: ['words'] });
    const braces = directive({ ...shape, name: 'cancel', unread: ['braces'] });
    const lines = directive({ ...shape, name: 'cancel', unread: ['lines'] });
    const none = directive({ ...shape, name: 'cancel' });
    const says = (syntax: Syntax, text: string): string => {
      const { problems, warnings } = bind(syntax, text);
      return problems.length > 0 ? 'refused' : warnings.map(({ message }) => message).join();
    };
    assert.equal(says(words, 'cancel 1 2 3'), "plugin/cancel: the words from '2' on are ignored");
    for (const syntax of [braces, lines])
      assert.equal(
        says(syntax, 'cancel 1 {\n}'),
        "plugin/cancel: the braces of 'cancel' are not read",
      );
    assert.equal(
      says(lines, 'cancel 1 {\nx\n}'),
      "plugin/cancel: the braces of 'cancel' are not read",
    );
    for (const syntax of [words, braces, none])
      assert.equal(says(syntax, 'cancel 1 {\nx\n}'), 'refused');
    for (const syntax of [braces, lines, none]) assert.equal(says(syntax, 'cancel 1 2'), 'refused');
    const ttl = setting('ttl', integer('TTL', { min: 0 }));
    const strict = directive({ name: 'cancel', summary: '', repeat: 'last', properties: { ttl } });
    const loose = directive({ ...strict, properties: { ttl: lax(ttl) } });
    assert.equal(says(strict, 'cancel {\nttl 1 2\n}'), 'refused');
    assert.equal(
      says(loose, 'cancel {\nttl 1 2\n}'),
      "plugin/cancel: the words from '2' on are ignored",
    );
    assert.equal(says(loose, 'cancel {\nttl\n}'), 'refused');
  });

  test('a property may follow another on the same line where CoreDNS accepts that', () => {
    const strict = directive({
      name: 'forward',
      summary: '',
      repeat: 'last',
      properties: {
        fails: setting('max_fails', integer('N', { min: 0 })),
        name: chained(setting('tls_servername', word('NAME'))),
        udp: chained(flag('prefer_udp')),
      },
    });
    const { options, problems, warnings } = bind(
      strict,
      'forward {\nprefer_udp tls_servername a max_fails 3\n}',
    );
    assert.deepEqual(problems, []);
    assert.deepEqual(
      options.map(({ fails, name, udp }) => [fails, name, udp]),
      [[3, 'a', true]],
    );
    assert.deepEqual(
      warnings.map(({ message, place }) => [message, place?.column]),
      [
        ["plugin/forward: 'tls_servername' is read as if it were on a separate line", 12],
        ["plugin/forward: 'max_fails' is read as if it were on a separate line", 29],
      ],
    );
    const refused = (text: string): string =>
      bind(strict, `forward {\n${text}\n}`)
        .problems.map(({ message }) => message)
        .join();
    assert.match(refused('prefer_udp x'), /unknown property 'x'/);
    assert.match(refused('max_fails 3 prefer_udp'), /Wrong argument count/);
    assert.match(refused('tls_servername a {\nb\n}'), /unknown property '\{'/);
  });

  test('an older name is bound with a warning', () => {
    const { options, warnings } = bind(forward, 'proxy . 1 {\nprotocol x\n}', ['proxy']);
    assert.equal(options.length, 1);
    assert.deepEqual(
      warnings.map(({ code }) => code),
      ['directive-renamed', 'property-retired'],
    );
  });
});

describe('checking the whole directive', () => {
  test('check receives the options, and its problems count', () => {
    assert.deepEqual(messages(forward, 'forward . 1 {\nmax_age 5s\n}'), [
      'plugin/forward: Corefile:2 - Error during parsing: max_age must not be less than expire',
    ]);
    assert.deepEqual(messages(forward, 'forward . 1 {\nmax_age 10s\n}'), []);
    assert.deepEqual(messages(acl, 'acl\nacl\nacl').length, 1);
  });

  test('check is not called for incomplete options', () => {
    assert.equal(messages(forward, 'forward . 1 {\nmax_age 5s\nexpire x\n}').length, 1);
  });

  test('warn adds warnings', () => {
    const { problems, warnings } = bind(forward, `forward . ${'8.8.8.8 '.repeat(16)}`);
    assert.deepEqual([problems.length, warnings.length], [0, 1]);
  });
});

test('the page shows the syntax and its meaning', () => {
  assert.equal(
    printSyntax(cache),
    [
      '```',
      'cache [TTL] [ZONES…] {',
      '    success CAPACITY [TTL] [MINTTL]',
      '    prefetch AMOUNT [DURATION] [PERCENTAGE%]',
      '    servfail DURATION',
      '    disable success|denial [ZONES…]',
      '    keepttl',
      '}',
      '```',
      '',
      '- `[TTL]`: the longest time that an entry is cached.',
      "- `[ZONES…]`: the zones whose answers are cached; default the server block's zones.",
      '- `success CAPACITY [TTL] [MINTTL]`: default 10000 3600 5.',
      '- `servfail DURATION`: default 5s.',
      '- `keepttl`: hand out the original TTL always.',
      '',
    ].join('\n'),
  );
  assert.match(printSyntax(hosts), /\n {4}ADDRESS NAME…\n/);
  assert.match(printSyntax(acl), /\n {4}allow\|block\|filter\|drop \[type QTYPE…\]/);
  assert.match(printSyntax(kubernetes), /- `upstream` is ignored: CNAMEs/);
});
