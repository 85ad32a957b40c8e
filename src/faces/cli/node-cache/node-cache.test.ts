import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeLog } from '../../../server/base/log.ts';
import { chooseRules } from '../../../server/nodelocal/choose-rules.ts';
import { heartbeatBlocks } from '../../../server/nodelocal/heartbeat-block.ts';
import { parseNodeCacheOptions } from './node-cache-options.ts';
import { parseCorefileText } from '../parse-corefile.ts';

describe('the command line of node-cache', () => {
  test('the flags in the NodeLocal DNSCache manifest are accepted', () => {
    const options = parseNodeCacheOptions([
      ...['-localip', '169.254.20.10,10.96.0.10', '-conf', '/etc/Corefile'],
      ...['-upstreamsvc', 'kube-dns-upstream', '-pidfile', '/tmp/node-cache.pid'],
      ...['-setupiptables=false', '-syncinterval=60ns', '-health-port', '9254', '-skipteardown'],
      ...[
        '-metrics-listen-address',
        '0.0.0.0:9353',
        '-reloadwithsignal=true',
        '-interfacename',
        'x',
      ],
      ...['-basecorefile', 'b', '-corefile', 'c', '-kubednscm', 'd', '-setupinterface=true'],
    ]);
    assert.deepEqual(options.localIp, ['169.254.20.10', '10.96.0.10']);
    assert.equal(options.setupInterface, true);
    assert.equal(options.setupIptables, false);
    assert.equal(options.failOpen, true);
    assert.equal(options.syncInterval, 60_000);
    assert.equal(options.skipTeardown, true);
  });

  test('refuses invalid addresses, ports and interfaces', () => {
    for (const words of [
      [],
      ['-localip', '169.254.20'],
      ['-localip', '169.254.20.10,'],
      ['-localip', '1.2.3.4', '-health-port', '0'],
      ['-localip', '1.2.3.4', '-interfacename', 'a name'],
      ['-localip', '1.2.3.4', '-interfacename', 'x;reboot'],
      ['-localip', '1.2.3.4', '-syncinterval', 'soon'],
      ['-localip', '1.2.3.4', '-metrics-listen-address', '9353'],
      ['-localip', '1.2.3.4', 'serve'],
    ])
      assert.throws(() => parseNodeCacheOptions(words), { code: 'usage' }, words.join(' '));
  });

  test('without iptables and nft the message says what to do', () => {
    const parts = {
      addresses: ['10.96.0.10'],
      port: 53,
      healthPort: 8080,
      lease: true,
      name: 'x',
      path: '/nonexistent',
      log: makeLog(() => undefined),
    };
    for (const [program, text] of [
      ['auto', /neither iptables nor nft is installed/],
      ['iptables', /no iptables is installed/],
      ['nftables', /no nft is installed/],
    ] as const)
      assert.throws(
        () => chooseRules({ ...parts, program }),
        (error: Error) => {
          assert.match(error.message, text);
          return true;
        },
      );
  });
});

describe('the block of the heartbeat', () => {
  const added = (text: string): string => {
    const { corefile } = parseCorefileText({ file: 'x', text, dnsPort: 53, env: {} });
    return heartbeatBlocks(corefile, 53).replaceAll('node-cache-heartbeat.invalid.', 'Z');
  };

  test('it listens only where the others listen', () => {
    assert.equal(
      added(
        'a:53 {\n bind 10.0.0.1 10.0.0.2\n}\nb:53 {\n bind 10.0.0.2\n}\nc:54 {\n bind 10.0.0.3\n}',
      ),
      'Z:53 {\nbind 10.0.0.1 10.0.0.2\nwhoami\n}\n',
    );
    assert.equal(added('. {\n whoami\n}'), 'Z:53 {\n\nwhoami\n}\n');
  });
});
