import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Problem } from '../../base/problem.ts';
import { readNameservers } from '../../engine/contract/nameservers.ts';
import { printUpstream, readTo } from './address.ts';
import { findUpstreams, type PlacesParts } from './find-upstreams.ts';

const brief = (text: string): string => {
  const to = readTo(text);
  switch (to.kind) {
    case 'address':
      return `${to.upstream.scheme} ${printUpstream(to.upstream)} ${to.upstream.serverName}`.trimEnd();
    case 'place':
      return `${to.scheme} ${to.text}:${to.port}?`;
    default:
      return to.text;
  }
};

describe('TO', () => {
  test('addresses of both families, with and without port and scheme', () => {
    assert.equal(brief('10.0.0.1'), 'dns 10.0.0.1:53');
    assert.equal(brief('10.0.0.1:1053'), 'dns 10.0.0.1:1053');
    assert.equal(brief('2001:db8::1'), 'dns [2001:db8::1]:53');
    assert.equal(brief('[2001:db8::1]'), 'dns [2001:db8::1]:53');
    assert.equal(brief('[2001:db8::1]:1053'), 'dns [2001:db8::1]:1053');
    assert.equal(brief('fe80::1%eth0'), 'dns [fe80::1%eth0]:53');
    assert.equal(brief('dns://10.0.0.1'), 'dns 10.0.0.1:53');
    assert.equal(brief('tls://10.0.0.1'), 'tls 10.0.0.1:853');
    assert.equal(
      brief('tls://[2001:db8::1]:8853%dns.example'),
      'tls [2001:db8::1]:8853 dns.example',
    );
    assert.equal(brief('tls://10.0.0.1:8853%dns.example'), 'tls 10.0.0.1:8853 dns.example');
    assert.equal(brief('https://10.0.0.1'), 'https 10.0.0.1:443');
  });

  test("the port follows the server name, as in CoreDNS's examples, or the address", () => {
    assert.equal(brief('tls://10.0.0.1%dns.example:8853'), 'tls 10.0.0.1:8853 dns.example');
    assert.equal(brief('tls://10.0.0.1%dns.example'), 'tls 10.0.0.1:853 dns.example');
    const six = 'tls [2001:db8::1]:8853 dns.example';
    assert.equal(brief('tls://[2001:db8::1%dns.example]:8853'), six);
    assert.equal(brief('tls://2001:db8::1%dns.example:8853'), six);
    assert.equal(brief('tls://[2001:db8::1%dns.example]'), 'tls [2001:db8::1]:853 dns.example');
    assert.equal(brief('https://10.0.0.1%dns.example:8443'), 'https 10.0.0.1:8443 dns.example');
    assert.equal(brief('tls://ns.example%dns.example:8853'), 'tls ns.example:8853?');
  });

  test('everything else is a file or a host name', () => {
    assert.equal(brief('/etc/resolv.conf'), 'dns /etc/resolv.conf:53?');
    assert.equal(brief('dns.example'), 'dns dns.example:53?');
    assert.equal(brief('dns.example:5353'), 'dns dns.example:5353?');
    assert.equal(brief('https://dns.example'), 'https dns.example:443?');
  });

  test('clearly invalid words', () => {
    assert.match(brief('quic://10.0.0.1'), /unsupported transport/);
    assert.match(brief('https://dns.example/dns-query'), /path is not allowed/);
    assert.match(brief('10.0.0.1:0'), /invalid port/);
    assert.match(brief('10.0.0.1:65536'), /invalid port/);
    assert.match(brief('dns://'), /not an IP address or file/);
    assert.match(brief('tls://10.0.0.1%dns.example:0'), /invalid port/);
    assert.match(brief('tls://10.0.0.1%'), /invalid server name/);
  });

  test('an invalid port is reported with the valid range', () => {
    const to = readTo('10.0.0.1:99999');
    assert.equal(to.kind === 'wrong' ? to.hint : '', 'Ports go from 1 to 65535.');
  });
});

test('reads the nameserver lines in resolv.conf without comments and duplicates', () => {
  const text =
    '# nameserver 10.9.9.9\nnameserver 10.0.0.1\r\n nameserver\t2001:db8::1 # two\nnameserver nothing\nnameserver 10.0.0.1\noptions ndots:5\n';
  assert.deepEqual(readNameservers(text), ['10.0.0.1', '2001:db8::1']);
});

describe('files and host names', () => {
  const at = { file: 'Corefile', line: 2, column: 5 };
  const parts: PlacesParts = {
    readFile: (path) => (path === '/base/list' ? 'nameserver 10.0.0.7\n' : null),
    resolve: (name, servers) => {
      if (name === 'dns.example')
        return Promise.resolve(servers.length > 0 ? ['10.0.0.8'] : ['10.0.0.9', '2001:db8::9']);
      return Promise.reject(new Error('ENOTFOUND'));
    },
    path: (file) => `/base/${file}`,
  };
  const find = async (
    texts: readonly string[],
    resolvers: readonly string[] = [],
  ): Promise<string> => {
    const found = await findUpstreams(texts.map(readTo), resolvers, at, parts);
    return found.upstreams
      .map((upstream) =>
        `${upstream.scheme} ${printUpstream(upstream)} ${upstream.serverName}`.trimEnd(),
      )
      .join(', ');
  };

  test('are resolved to addresses, in the order written', async () => {
    assert.equal(
      await find(['10.0.0.1', 'list', 'tls://dns.example']),
      'dns 10.0.0.1:53, dns 10.0.0.7:53, tls 10.0.0.9:853 dns.example, tls [2001:db8::9]:853 dns.example',
    );
    assert.equal(await find(['dns.example'], ['10.0.0.53']), 'dns 10.0.0.8:53');
  });

  test('pass their own server name to all addresses of a host or file', async () => {
    assert.equal(
      await find(['tls://dns.example%all.example:8853'], ['10.0.0.53']),
      'tls 10.0.0.8:8853 all.example',
    );
    assert.equal(await find(['tls://list%all.example']), 'tls 10.0.0.7:853 all.example');
  });

  test('contribute each address and port only once', async () => {
    assert.equal(
      await find(['list', '10.0.0.7', '10.0.0.7:5353', 'tls://10.0.0.7:53']),
      'dns 10.0.0.7:53, dns 10.0.0.7:5353',
    );
  });

  test('report a host name without an address as a problem with place and fix', async () => {
    const error = await find(['no.example']).catch((found: unknown) => found);
    assert.ok(error instanceof Problem);
    assert.match(error.message, /not an IP address or file: "no.example"/);
    assert.match(error.hint!, /looking it up failed: ENOTFOUND/);
    assert.equal(error.place, at);
  });
});
