import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { costsAtMost } from '../../../test/kit/growth.ts';

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

describe('properties', () => {
  test('have their defaults if absent', () => {
    const { success, prefetch, servfailMs, disable, keepTtl } = only(cache, 'cache');
    assert.deepEqual(
      { success, prefetch, servfailMs, disable, keepTtl },
      {
        success: { capacity: 10_000, ttlSeconds: 3600, minTtlSeconds: 5 },
        prefetch: null,
        servfailMs: 5000,
        disable: [],
        keepTtl: false,
      },
    );
  });

  test('fields consume words in order, with durations in milliseconds', () => {
    const body = 'cache {\nsuccess 10 20\nprefetch 3 1m30s 20%\nservfail 1s\nkeepttl\n}';
    const { success, prefetch, servfailMs, keepTtl } = only(cache, body);
    assert.deepEqual(success, { capacity: 10, ttlSeconds: 20, minTtlSeconds: 5 });
    assert.deepEqual(prefetch, { amount: 3, durationMs: 90_000, percentage: 20 });
    assert.deepEqual([servfailMs, keepTtl], [1000, true]);
    assert.deepEqual(only(cache, 'cache {\nprefetch 3 20%\n}').prefetch, {
      amount: 3,
      durationMs: 60_000,
      percentage: 20,
    });
  });

  test('a repeatable line is collected; of others, the last one counts', () => {
    const body = 'cache {\ndisable success a.org\ndisable denial\nservfail 1s\nservfail 2s\n}';
    const { disable, servfailMs } = only(cache, body);
    assert.deepEqual(disable, [
      { type: 'success', zones: ['a.org.'] },
      { type: 'denial', zones: ['.', 'example.org.'] },
    ]);
    assert.equal(servfailMs, 2000);
    assert.deepEqual(only(kubernetes, 'kubernetes {\nnamespaces a b\nnamespaces c\n}').namespaces, [
      'a',
      'b',
      'c',
    ]);
  });

  test('fallthrough: absent, everything, or zones', () => {
    assert.equal(only(kubernetes, 'kubernetes').fallthrough, null);
    assert.deepEqual(only(kubernetes, 'kubernetes {\nfallthrough\n}').fallthrough, ['.']);
    assert.deepEqual(
      only(kubernetes, 'kubernetes {\nfallthrough in-addr.arpa IP6.arpa\n}').fallthrough,
      ['in-addr.arpa.', 'ip6.arpa.'],
    );
  });

  test('an unknown one is rejected, and the message suggests the likely one', () => {
    const { problems } = bind(kubernetes, 'kubernetes {\npodz insecure\nfallthru\nttl 30\n}');
    assert.deepEqual(
      problems.map(({ message, hint, code }) => [message, hint, code]),
      [
        [
          "plugin/kubernetes: Corefile:3 - Error during parsing: unknown property 'podz'",
          "Did you mean 'pods'?",
          'property-unknown',
        ],
        [
          "plugin/kubernetes: Corefile:4 - Error during parsing: unknown property 'fallthru'",
          null,
          'property-unknown',
        ],
      ],
    );
    assert.match(problems[0]!.remedy!, /^Known here: namespaces, pods, ttl, fallthrough\.$/);
  });

  test('JavaScript’s own property names are unknown too', () => {
    assert.equal(
      messages(kubernetes, 'kubernetes {\nconstructor\n__proto__ x\ntoString\n}').length,
      3,
    );
  });

  test('an old one is ignored with a warning that shows the current syntax', () => {
    const { options, problems, warnings } = bind(
      kubernetes,
      'kubernetes {\nupstream 8.8.8.8\nresyncperiod 5m\n}',
    );
    assert.equal(options.length, 1);
    assert.deepEqual(problems, []);
    assert.deepEqual(
      warnings.map(({ message, place }) => [message, place?.line]),
      [
        ["plugin/kubernetes: 'upstream' is ignored: CNAMEs are always followed", 3],
        ["plugin/kubernetes: 'resyncperiod' is ignored: there is no resync", 4],
      ],
    );
  });

  test('a hint that repeats the message is omitted; a prefix of a word is recognized', () => {
    const { problems } = bind(cache, 'cache {\nkeept\n}');
    assert.equal(problems[0]?.hint, "Did you mean 'keepttl'?");
    const short = bind(cache, 'cache {\nservfai\nserv\nd\n}').problems.map(({ hint }) => hint);
    assert.deepEqual(short, ["Did you mean 'servfail'?", "Did you mean 'servfail'?", null]);
    assert.deepEqual(
      bind(kubernetes, 'kubernetes {\nttl 4000\n}').problems.map(({ hint }) => hint),
      [null],
    );
  });

  test('every invalid line is reported', () => {
    assert.deepEqual(
      messages(
        kubernetes,
        'kubernetes {\npods maybe\nttl 4000\nttl x\nttl\nfallthrough {\n}\n}',
      ).map((text) => text.replace('plugin/kubernetes: Corefile:', '')),
      [
        '3 - Error during parsing: wrong value for pods: maybe',
        '4 - Error during parsing: ttl must be in range [0, 3600]: 4000',
        '5 - Error during parsing: ttl must be in range [0, 3600]: x',
        "6 - Error during parsing: Wrong argument count or unexpected line ending after 'ttl'",
        "7 - Error during parsing: unknown property '{'",
      ],
    );
  });

  test('hosts: an unknown first word is a host line, but only above fallthrough', () => {
    const { inline, ttlSeconds } = only(
      hosts,
      'hosts {\n10.0.0.1 a b\nttl 60\n::1 c\nfallthrough\n}',
    );
    assert.deepEqual(inline, [
      ['10.0.0.1', 'a', 'b'],
      ['::1', 'c'],
    ]);
    assert.equal(ttlSeconds, 60);
    assert.deepEqual(messages(hosts, 'hosts {\nfallthrough\n10.0.0.1 a\n}'), [
      "plugin/hosts: Corefile:4 - Error during parsing: unknown property '10.0.0.1'",
    ]);
  });

  test('lines whose order matters although they begin differently', () => {
    const { options } = bind(
      acl,
      'acl a.org {\nallow net 10.0.0.0/8\nblock type A net *\n}\nacl {\ndrop\n}',
    );
    assert.equal(options.length, 1);
    assert.deepEqual(
      options[0]!.map(({ zones: of, rules }) => [of, rules.map(({ action }) => action)]),
      [
        [['a.org.'], ['allow', 'block']],
        [['.', 'example.org.'], ['drop']],
      ],
    );
  });

  test('ten times as many lines take ten times as long, not a hundred times', async () => {
    const read = (count: number): (() => void) => {
      const lines = Array.from({ length: count }, (_, i) => `10.0.${i >> 8}.${i & 255} n${i}`);
      const body = `hosts {\n${lines.join('\n')}\n}`;
      return () => {
        const { inline } = only(hosts, body);
        assert.equal(inline.length, count);
        assert.equal(inline[count - 1]!.join(' '), lines[count - 1]);
      };
    };
    await costsAtMost(30, read(30_000), read(3000));
  });

  test('one parsed by the plugin itself can reject a word at its position', () => {
    const { problems } = bind(forward, 'forward . 1 {\n  tls a b c d\n}');
    assert.deepEqual(
      problems.map(({ message, place }) => [message, place?.column]),
      [['plugin/forward: Corefile:3 - Error during parsing: too many files', 13]],
    );
  });

  test('two that exclude each other', () => {
    assert.deepEqual(messages(forward, 'forward . 1 {\nprefer_udp\nforce_tcp\n}'), [
      'plugin/forward: Corefile:4 - Error during parsing: force_tcp and prefer_udp cannot both be set',
    ]);
  });
});
