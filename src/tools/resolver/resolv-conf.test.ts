import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readCaresConf } from './c-ares-conf.ts';
import { caresReleases } from './c-ares-releases.ts';
import type { Settings } from './client.ts';
import { readEvdnsConf } from './evdns-conf.ts';
import { readGlibcConf } from './glibc-conf.ts';
import { glibcReleases } from './glibc-releases.ts';
import { readGoConf } from './go-conf.ts';
import { goReleases } from './go-releases.ts';
import { readMuslConf } from './musl-conf.ts';
import type { ResolvConf } from './resolv-conf.ts';

type Readers = Record<'glibc' | 'musl' | 'go' | 'cares18' | 'cares34' | 'evdns', ResolvConf>;

function settings(resolvConf: string | null, env: Record<string, string> = {}, hostname = 'mypod') {
  const host = { hostname, addresses: ['10.244.0.10'], loopback: [4, 6] as const };
  return {
    resolvConf,
    nsswitch: null,
    hosts: null,
    hostAliases: null,
    env,
    host,
  } satisfies Settings;
}

function readAll(
  text: string | null,
  env: Record<string, string> = {},
  hostname?: string,
): Readers {
  const given = settings(text, env, hostname);
  return {
    glibc: readGlibcConf(given, glibcReleases.traitsOf('2.41')),
    musl: readMuslConf(given),
    go: readGoConf(given, goReleases.traitsOf('1.24')),
    cares18: readCaresConf(given, caresReleases.traitsOf('1.18.1')),
    cares34: readCaresConf(given, caresReleases.traitsOf('1.34.5')),
    evdns: readEvdnsConf(given),
  };
}

function each<Value>(readers: Readers, take: (conf: ResolvConf) => Value): Record<string, Value> {
  return Object.fromEntries(Object.entries(readers).map(([name, conf]) => [name, take(conf)]));
}

describe('the same resolv.conf in each library', () => {
  test('a plain file is read equally by all', () => {
    const text = 'search a.example b.example\nnameserver 10.96.0.10\noptions ndots:5\n';
    assert.deepEqual(
      each(readAll(text), (conf) => conf.search.map((name) => name.replace(/\.$/, '')).join(' ')),
      each(readAll(text), () => 'a.example b.example'),
    );
    assert.deepEqual(
      each(readAll(text), ({ ndots, servers }) => `${ndots} ${servers.join(' ')}`),
      each(readAll(text), () => '5 10.96.0.10'),
    );
  });

  test('a fourth name server counts for c-ares and evdns only', () => {
    const text = [1, 2, 3, 4].map((last) => `nameserver 10.0.0.${last}\n`).join('');
    assert.deepEqual(
      each(readAll(text), (conf) => conf.servers.length),
      { glibc: 3, musl: 3, go: 3, cares18: 4, cares34: 4, evdns: 4 },
    );
  });

  test('without a name server each falls back in its own way', () => {
    assert.deepEqual(
      each(readAll(null), (conf) => conf.servers.join(' ')),
      {
        glibc: '127.0.0.1',
        musl: '127.0.0.1',
        go: '127.0.0.1 ::1',
        cares18: '127.0.0.1',
        cares34: '127.0.0.1',
        evdns: '',
      },
    );
  });

  test('ndots:100 is capped at 15 except in c-ares and evdns', () => {
    assert.deepEqual(
      each(readAll('options ndots:100\n'), (conf) => conf.ndots),
      { glibc: 15, musl: 15, go: 15, cares18: 100, cares34: 100, evdns: 100 },
    );
  });

  test('timeout and attempts have different limits and defaults', () => {
    const text = 'options timeout:90 attempts:20\n';
    assert.deepEqual(
      each(readAll(text), (conf) => [conf.timeoutMs / 1000, conf.attempts]),
      {
        glibc: [30, 5],
        musl: [60, 10],
        go: [90, 20],
        cares18: [5, 4],
        cares34: [90, 20],
        evdns: [90, 20],
      },
    );
    assert.deepEqual(
      each(readAll(''), (conf) => [conf.timeoutMs / 1000, conf.attempts]),
      {
        glibc: [5, 2],
        musl: [5, 2],
        go: [5, 2],
        cares18: [5, 4],
        cares34: [2, 3],
        evdns: [5, 3],
      },
    );
  });

  test('musl ignores a search line of 300 characters', () => {
    const names = Array.from({ length: 10 }, (_, i) => `a-rather-long-search-domain-${i}.example`);
    const conf = readAll(`search ${names.join(' ')}\nnameserver 10.96.0.10\n`);
    assert.deepEqual(
      each(conf, ({ search }) => search.length),
      { glibc: 10, musl: 0, go: 10, cares18: 10, cares34: 10, evdns: 10 },
    );
    assert.match(conf.musl.remarks[0]?.text ?? '', /drops the whole line/);
  });

  test('the last line of the file may be one character longer in musl if it has no newline', () => {
    const line = `search ${'a'.repeat(248)}`;
    assert.equal(readMuslConf(settings(line)).search.length, 1);
    assert.equal(readMuslConf(settings(`${line}\n`)).search.length, 0);
  });

  test('an indented keyword counts for Go, c-ares and evdns, not for the libcs', () => {
    assert.deepEqual(
      each(readAll('  nameserver 10.9.9.9\n'), (conf) => conf.servers.includes('10.9.9.9')),
      { glibc: false, musl: false, go: true, cares18: true, cares34: true, evdns: true },
    );
  });

  test('the last of two search lines counts', () => {
    const text = 'search a.example\nsearch b.example\n';
    assert.deepEqual(
      each(readAll(text), (conf) => conf.search.join(' ').replace(/\.$/, '')),
      each(readAll(text), () => 'b.example'),
    );
  });

  test('the domain of the host name is searched if the file has none, except in musl', () => {
    assert.deepEqual(
      each(readAll('nameserver 10.96.0.10\n', {}, 'pod.context.example'), (conf) =>
        conf.search.join(' ').replace(/\.$/, ''),
      ),
      {
        glibc: 'context.example',
        musl: '',
        go: 'context.example',
        cares18: 'context.example',
        cares34: 'context.example',
        evdns: 'context.example',
      },
    );
  });

  test('LOCALDOMAIN replaces the search list in glibc and c-ares, which takes one domain since 1.34', () => {
    const env = { LOCALDOMAIN: 'x.example y.example' };
    assert.deepEqual(
      each(readAll('search a.example\n', env), (conf) =>
        conf.search.map((name) => name.replace(/\.$/, '')).join(' '),
      ),
      {
        glibc: 'x.example y.example',
        musl: 'a.example',
        go: 'a.example',
        cares18: 'x.example y.example',
        cares34: 'x.example',
        evdns: 'a.example',
      },
    );
  });

  test('RES_OPTIONS is read by glibc and c-ares', () => {
    assert.deepEqual(
      each(readAll('options ndots:5\n', { RES_OPTIONS: 'ndots:1' }), (conf) => conf.ndots),
      { glibc: 1, musl: 5, go: 5, cares18: 1, cares34: 1, evdns: 5 },
    );
  });
});

describe('single peculiarities', () => {
  test('glibc reads a comment sign after a search domain as a domain', () => {
    const conf = readGlibcConf(
      settings('search a.example # note\n'),
      glibcReleases.traitsOf('2.36'),
    );
    assert.deepEqual(conf.search, ['a.example', '#', 'note']);
    assert.match(conf.remarks[0]?.text ?? '', /not a comment/);
  });

  test('glibc accepts an option if a word only begins with it, and unsets with "-" from 2.41', () => {
    assert.equal(
      readGlibcConf(settings('options rotatesomething\n'), glibcReleases.traitsOf('2.36')).rotate,
      true,
    );
    assert.equal(
      readGlibcConf(settings('options rotate -rotate\n'), glibcReleases.traitsOf('2.41')).rotate,
      false,
    );
    assert.equal(
      readGlibcConf(settings('options rotate -rotate\n'), glibcReleases.traitsOf('2.36')).rotate,
      true,
    );
  });

  test('the libcs accept short IPv4 notations for servers', () => {
    assert.deepEqual(
      readGlibcConf(settings('nameserver 127.1\n'), glibcReleases.traitsOf('2.36')).servers,
      ['127.0.0.1'],
    );
    assert.deepEqual(readMuslConf(settings('nameserver 0x7f000001\n')).servers, ['127.0.0.1']);
  });

  test('Go remembers the first unknown option', () => {
    assert.equal(
      readGoConf(settings('options foo bar\n'), goReleases.traitsOf('1.24')).unknown,
      'foo',
    );
    assert.equal(
      readGoConf(settings('sortlist 10.0.0.0\n'), goReleases.traitsOf('1.24')).unknown,
      'sortlist',
    );
    assert.equal(
      readGoConf(settings('options edns0\n'), goReleases.traitsOf('1.24')).unknown,
      null,
    );
    assert.equal(
      readGoConf(settings('options edns0\n'), goReleases.traitsOf('1.19')).unknown,
      'edns0',
    );
  });

  test('c-ares takes lookups from nsswitch.conf', () => {
    const given = { ...settings(''), nsswitch: 'hosts: dns files\n' };
    assert.equal(readCaresConf(given, caresReleases.traitsOf('1.34.5')).lookups, 'bf');
    assert.equal(readCaresConf(given, caresReleases.traitsOf('1.18.1')).lookups, 'bf');
  });

  test('no reader fails on bytes that are not text', () => {
    for (const text of [
      '\0\0\0',
      'search\n',
      'options\nnameserver\n',
      ':::\n',
      '\uFFFD\n',
      '\n\n;',
    ]) {
      assert.doesNotThrow(() => readAll(text), text);
    }
  });
});
