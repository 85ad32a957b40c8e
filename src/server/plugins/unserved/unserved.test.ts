import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Problem } from '../../base/problem.ts';
import { parseCorefile } from '../../corefile/parse.ts';
import { bindConfiguration } from '../../engine/contract/configuration.ts';
import { directiveNames, loadPlugins, order } from '../order.ts';

/** Returns the problems found in a server block with these lines. */
async function problemsOf(...lines: readonly string[]): Promise<readonly Problem[]> {
  const { corefile, problems } = parseCorefile({
    file: 'Corefile',
    text: ['. {', ...lines.map((line) => `    ${line}`), '}', ''].join('\n'),
    dnsPort: 53,
    env: {},
    directives: directiveNames,
    readFile: () => '',
    glob: () => [],
  });
  assert.deepEqual(problems, []);
  const names = new Set(corefile.blocks[0]!.directives.map(({ name }) => name));
  return bindConfiguration(corefile, await loadPlugins(names)).problems;
}

/** A valid use of each, from CoreDNS's documentation. */
const uses: Readonly<Record<string, readonly string[]>> = {
  route53: [
    'route53 example.org.:Z1Z2Z3Z4DZ5Z6Z7 example.gov.:Z654321543245 {',
    '  credentials default /etc/credentials',
    '  refresh 120',
    '  fallthrough',
    '}',
  ],
  azure: [
    'azure resource_group_foo:foo.com resource_group_bar:bar.com {',
    '  tenant 123abc-123abc-123abc-123abc',
    '  client 123abc-123abc-123abc-234xyz',
    '  subscription 123abc-123abc-123abc-563abc',
    '  secret mysecret',
    '  access private',
    '}',
  ],
  clouddns: ['clouddns example.org.:gcp-example-project:example-zone {', '  fallthrough', '}'],
  nomad: ['nomad service.nomad {', '  address http://127.0.0.1:4646', '  ttl 10', '}'],
  quic: ['quic {', '  max_streams 16', '  worker_pool_size 65536', '}'],
  https3: ['https3 {', '  max_streams 0', '  max_connections 200', '}'],
};

describe('directives that are not served', () => {
  for (const [name, lines] of Object.entries(uses)) {
    test(`${name} is rejected at its location, with the reason and an alternative`, async () => {
      const problems = await problemsOf('whoami', ...lines);
      assert.equal(problems.length, 1);
      const [{ message, place, remedy, code }] = problems as [Problem];
      assert.equal(code, 'directive-not-served');
      assert.match(
        message,
        new RegExp(
          `^plugin/${name}: Corefile:3 - Error during parsing: ${name} is not served here: .*\\.$`,
        ),
      );
      assert.deepEqual(place, { file: 'Corefile', line: 3, column: 5 });
      assert.match(remedy!, /(forward|hosts|tls:)/);
    });

    test(`${name} is not listed among the plugins`, () => {
      assert.ok(!order.some((entry) => entry.name === name));
    });
  }

  const mistakes: readonly (readonly [string, RegExp])[] = [
    ['route53 example.org', /invalid zone "example\.org"/],
    ['route53 :Z1', /invalid zone ":Z1"/],
    ['route53 {\n refresh foo\n}', /Unable to parse duration: time: invalid duration "foo"/],
    ['route53 {\n aws_access_key ID\n}', /invalid access key: '\[ID\]'/],
    ['route53 {\n wat\n}', /unknown property 'wat'/],
    ['azure rg', /invalid resource group\/zone: "rg"/],
    ['azure {\n access secret\n}', /invalid access value: can be public\/private, found: secret/],
    ['clouddns a:b', /invalid zone "a:b"/],
    ['nomad {\n ttl 3601\n}', /ttl must be in range \[0, 3600\]: 3601/],
    ['nomad a b', /Wrong argument count/],
    ['quic {\n max_streams 0\n}', /max_streams must be a positive integer: 0/],
    ['quic {\n max_streams x\n}', /invalid max_streams value 'x': strconv\.Atoi/],
    ['quic on', /Wrong argument count/],
    ['https3 {\n max_connections -1\n}', /max_connections must be a non-negative integer: -1/],
  ];
  for (const [lines, message] of mistakes) {
    test(`an error in it uses CoreDNS's wording: ${lines.replaceAll('\n', ' ')}`, async () => {
      const problems = await problemsOf(...lines.split('\n'));
      assert.equal(problems.length, 1);
      assert.match(problems[0]!.message, message);
    });
  }
});
