import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { glibcReleases } from './glibc-releases.ts';
import { entriesFor, hostAlias, readHosts } from './hosts.ts';
import { myHostname } from './myhostname.ts';
import { readHostsLine } from './nsswitch.ts';

describe('the hosts file', () => {
  const entries = readHosts(
    '127.0.0.1 localhost # home\n10.0.0.5\tapi.example API\n\nnot-an-address x\n::1 localhost\n',
  );

  test('lines with an address and names count', () => {
    assert.deepEqual(
      entries.map(({ line, family }) => [line, family]),
      [
        [1, 4],
        [2, 4],
        [5, 6],
      ],
    );
  });

  test('case is ignored, a trailing dot is significant', () => {
    assert.equal(entriesFor(entries, 'api').length, 1);
    assert.equal(entriesFor(entries, 'LocalHost').length, 2);
    assert.equal(entriesFor(entries, 'api.').length, 0);
    assert.equal(entriesFor(entries, 'home').length, 0);
  });

  test('an alias file covers names without a dot', () => {
    assert.equal(hostAlias('db db.prod.example.\n', 'DB'), 'db.prod.example.');
    assert.equal(hostAlias('db.x db.prod.example.\n', 'db.x'), null);
    assert.equal(hostAlias(null, 'db'), null);
  });
});

describe('the hosts line of nsswitch.conf', () => {
  const traits = glibcReleases.traitsOf('2.41');
  const names = (text: string | null): string =>
    readHostsLine(text, traits)
      .services.map((service) => service.name)
      .join(' ');

  test('without a line it is files dns', () => {
    assert.equal(names(null), 'files dns');
    assert.equal(names('passwd: files\n'), 'files dns');
  });

  test('the last line counts', () => {
    assert.equal(names('hosts: files\n# hosts: dns\nhosts: dns myhostname\n'), 'dns myhostname');
  });

  test('a comment after the services is read as services', () => {
    assert.equal(names('hosts: files dns # comment\n'), 'files dns # comment');
  });

  test('the colon may be separate, or missing', () => {
    assert.equal(names(' hosts : dns files\n'), 'dns files');
    assert.equal(names('hosts dns files\n'), 'dns files');
  });

  test('[criteria] change the effect of an outcome', () => {
    const { services } = readHostsLine(
      'hosts: files mdns4_minimal [NOTFOUND=return] dns\n',
      traits,
    );
    assert.deepEqual(
      services.map(({ actions }) => actions.notfound),
      ['continue', 'return', 'continue'],
    );
    const negated = readHostsLine('hosts: dns [!SUCCESS=return] files\n', traits).services[0];
    assert.equal(negated?.actions.unavail, 'return');
    assert.equal(negated?.actions.success, 'return');
  });

  test('an unreadable line leaves no service', () => {
    for (const text of ['hosts: dns [NOTFOUND=return\n', 'hosts: files [FOO=bar] dns\n']) {
      assert.match(readHostsLine(text, traits).problem ?? '', /line 1/);
      assert.equal(names(text), '');
    }
  });
});

describe('nss-myhostname', () => {
  const host = { hostname: 'mypod', addresses: ['10.244.0.10'], loopback: [4, 6] as const };

  test("covers localhost, names below it, and the machine's name", () => {
    assert.deepEqual(myHostname('kube-health.localhost', host, [4, 6]), ['127.0.0.1', '::1']);
    assert.deepEqual(myHostname('localhost', host, [6]), ['::1']);
    assert.deepEqual(myHostname('MyPod', host, [4, 6]), ['10.244.0.10']);
    assert.equal(myHostname('example.com', host, [4, 6]), null);
  });

  test('a machine without addresses still resolves itself', () => {
    assert.deepEqual(myHostname('mypod', { ...host, addresses: [] }, [4]), ['127.0.0.2']);
  });
});
