import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { filterArguments, parseFilterLine, printFilterLine } from './filter-line.ts';

describe('a line of filters', () => {
  for (const [line, printed] of [
    ['', ''],
    ['namespace=shop', 'namespace=shop'],
    ['namespace:shop rcode:nxdomain', 'namespace=shop rcode=nxdomain'],
    ['--namespace shop --not rcode=NXDOMAIN', 'namespace=shop not rcode=NXDOMAIN'],
    ['not rcode=NXDOMAIN and type=A', 'not rcode=NXDOMAIN type=A'],
    [
      '!type=AAAA -from-ip=10.0.0.1 ! verdict=lost',
      'not type=AAAA not from-ip=10.0.0.1 not verdict=lost',
    ],
    ['--from-ip=fd00::/8', 'from-ip=fd00::/8'],
    ['redis', 'name=*redis*'],
    ['types pods', 'name=*types* name=*pods*'],
    ['not api.*', 'not name=api.*'],
    ['--not --name api.', 'not name=api.'],
  ] as const)
    test(`"${line}" is "${printed}"`, () =>
      assert.equal(printFilterLine(parseFilterLine(line)), printed));

  for (const [line, message] of [
    ['namespaces=shop', /no filter namespaces; did you mean namespace\?/],
    ['type=nonsense', /^type takes a type such as A/],
    ['from-ip=10.0.0', /^from-ip takes an address/],
    ['workload=cart', /^workload takes a kind and a name/],
    ['rcode=NXDOIMAIN', /not "NXDOIMAIN"; did you mean NXDOMAIN\?/],
    ['rcode=servfial', /did you mean SERVFAIL\?/],
    ['type=AAAAA', /did you mean AAAA\?/],
    ['type=htps', /did you mean HTTPS\?/],
    ['verdict=loost', /^verdict takes .*; did you mean lost\?/],
    ['protocol=upd', /did you mean udp\?/],
    ['not rcode=zzzzzzzz', /not "zzzzzzzz"$/],
    ['not', /not needs a value/],
    ['--pod', /--pod needs a value/],
  ] as const)
    test(`"${line}" is reported`, () => assert.throws(() => parseFilterLine(line), { message }));

  test('the words of a command line mean the same', () => {
    const filters = parseFilterLine('namespace=shop not rcode=NXDOMAIN redis');
    const words = ['--namespace', 'shop', '--not', 'rcode=NXDOMAIN', '--name', '*redis*'];
    assert.deepEqual(filterArguments(filters), words);
    assert.deepEqual(parseFilterLine(words.join(' ')), filters);
  });
});
