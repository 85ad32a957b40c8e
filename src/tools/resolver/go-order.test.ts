import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Settings } from './client.ts';
import { readGoConf } from './go-conf.ts';
import { chooseGoResolver } from './go-order.ts';
import { goReleases } from './go-releases.ts';

interface Facts {
  readonly name?: string;
  readonly conf?: string;
  readonly nss?: string | null;
  readonly env?: Record<string, string>;
  readonly version?: string;
}

/** Returns the choice made by a program built with cgo. */
function choice({
  name = 'www.example.com',
  conf = '',
  nss = 'files dns',
  env = {},
  version = '1.24',
}: Facts) {
  const settings: Settings = {
    resolvConf: conf,
    nsswitch: nss === null ? null : `hosts: ${nss}\n`,
    hosts: null,
    hostAliases: null,
    env: { CGO_ENABLED: '1', ...env },
    host: { hostname: 'mypod', addresses: [], loopback: [4, 6] },
  };
  const traits = goReleases.traitsOf(version);
  return chooseGoResolver(name, settings, readGoConf(settings, traits), traits);
}

describe('a Go program with cgo chooses its resolver', () => {
  const rows: [string, Facts, string, string][] = [
    // case, facts, Go 1.19, Go 1.24
    ['nothing unusual', {}, 'files,dns', 'files,dns'],
    ['dns before files', { nss: 'dns files' }, 'dns,files', 'dns,files'],
    ['files alone', { nss: 'files' }, 'files', 'files'],
    ['no hosts line', { nss: null }, 'files,dns', 'files,dns'],
    ['LOCALDOMAIN, even empty', { env: { LOCALDOMAIN: '' } }, 'cgo', 'cgo'],
    ['RES_OPTIONS', { env: { RES_OPTIONS: 'ndots:1' } }, 'cgo', 'cgo'],
    ['an empty RES_OPTIONS', { env: { RES_OPTIONS: '' } }, 'files,dns', 'files,dns'],
    ['options trust-ad', { conf: 'options trust-ad\n' }, 'cgo', 'files,dns'],
    ['options edns0', { conf: 'options edns0\n' }, 'cgo', 'files,dns'],
    ['an unknown option', { conf: 'options no-aaaa\n' }, 'cgo', 'cgo'],
    ['a .local name', { name: 'printer.local' }, 'cgo', 'files,dns'],
    [
      'mdns and a .local name',
      { name: 'printer.local', nss: 'files mdns4_minimal dns' },
      'cgo',
      'cgo',
    ],
    ['mdns and another name', { nss: 'files mdns4_minimal dns' }, 'files,dns', 'files,dns'],
    [
      'myhostname and a name below localhost',
      { name: 'a.localhost', nss: 'files dns myhostname' },
      'cgo',
      'cgo',
    ],
    ['myhostname and the own name', { name: 'mypod', nss: 'files dns myhostname' }, 'cgo', 'cgo'],
    ['myhostname and another name', { nss: 'files dns myhostname' }, 'files,dns', 'files,dns'],
    ['a service that Go does not know', { nss: 'files resolve dns' }, 'cgo', 'cgo'],
    ['unusual criteria', { nss: 'files [NOTFOUND=return] dns' }, 'files,dns', 'files,dns'],
    ['criteria that change the outcome', { nss: 'files [SUCCESS=continue] dns' }, 'cgo', 'cgo'],
    ['% in the name', { name: 'fe80::1%eth0' }, 'cgo', 'cgo'],
    ['netdns=go', { env: { GODEBUG: 'netdns=go', LOCALDOMAIN: 'x' } }, 'files,dns', 'files,dns'],
    ['netdns=cgo', { env: { GODEBUG: 'netdns=cgo' } }, 'cgo', 'cgo'],
  ];
  for (const [what, facts, old, current] of rows) {
    test(`${what}: ${old} in 1.19, ${current} in 1.24`, () => {
      assert.equal(choice({ ...facts, version: '1.19' }).order, old);
      assert.equal(choice(facts).order, current);
    });
  }

  test('without cgo there is no choice, and netdns=cgo is refused with a message', () => {
    const { order, debug } = choice({ env: { CGO_ENABLED: '0', GODEBUG: 'netdns=cgo+1' } });
    assert.equal(order, 'files,dns');
    assert.match(debug.join('\n'), /ignoring GODEBUG=netdns=cgo/);
  });

  test('netdns=1 prints the choice, netdns=2 also the order', () => {
    assert.equal(choice({ env: { GODEBUG: 'netdns=1' } }).debug.length, 1);
    assert.equal(choice({}).debug.length, 0);
    assert.match(
      choice({ env: { GODEBUG: 'http2debug=1,netdns=2' } }).debug.join('\n'),
      /hostLookupOrder\(www\.example\.com\) = files,dns/,
    );
  });

  test('netdns=2 shows a trailing dot from 1.21 on, before that only if something else decided', () => {
    const shown = (version: string, env: Record<string, string>): string =>
      /hostLookupOrder\(.*?\)/.exec(
        choice({ name: 'example.com.', version, env }).debug.join('\n'),
      )?.[0] ?? '';
    const dot = 'hostLookupOrder(example.com.)';
    assert.equal(shown('1.20', { GODEBUG: 'netdns=2' }), 'hostLookupOrder(example.com)');
    assert.equal(shown('1.20', { GODEBUG: 'netdns=cgo+2' }), dot);
    assert.equal(shown('1.20', { GODEBUG: 'netdns=2', LOCALDOMAIN: '' }), dot);
    assert.equal(shown('1.21', { GODEBUG: 'netdns=2' }), dot);
  });
});
