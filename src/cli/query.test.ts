import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { serveAnswers, type LocalAnswers } from '../../test/kit/local-answers.ts';
import { runCommand } from '../../test/kit/trace-command.ts';
import { parseQueryOptions, reverseName } from './query-options.ts';
import { query } from './query.ts';

describe('the words of ndots query', () => {
  const read = (line: string) => parseQueryOptions(line.split(' '));

  test("dig's and doggo's spelling mean the same", () => {
    const dig = read('@9.9.9.9 example.com MX +tcp +short');
    const doggo = read('MX example.com @tcp://9.9.9.9 --short');
    assert.deepEqual(dig, doggo);
    assert.equal(dig.type, 15);
    assert.equal(dig.transport, 'tcp');
  });

  test('servers may hold a port, a scheme, a path', () => {
    const server = (text: string): string => {
      const options = read(`${text} example.com`);
      return `${options.transport} ${options.server ?? ''} ${options.port} ${options.path}`;
    };
    assert.equal(server('@127.0.0.1:5353'), 'udp 127.0.0.1 5353 /dns-query');
    assert.equal(server('@2001:db8::1'), 'udp 2001:db8::1 53 /dns-query');
    assert.equal(server('@[2001:db8::1]:5353'), 'udp 2001:db8::1 5353 /dns-query');
    assert.equal(server('@tls://dns.example'), 'tls dns.example 853 /dns-query');
    assert.equal(server('@https://dns.example/x'), 'https dns.example 443 /x');
  });

  test('types by number, classes, and the name of an address', () => {
    assert.equal(read('example.com TYPE65280').type, 65280);
    assert.equal(read('version.bind TXT CH').class, 3);
    assert.equal(reverseName('10.0.0.5'), '5.0.0.10.in-addr.arpa.');
    assert.match(
      reverseName('2001:db8::1'),
      /^1\.0\.0\.0\..*\.8\.b\.d\.0\.1\.0\.0\.2\.ip6\.arpa\.$/,
    );
    assert.equal(read('-x 10.0.0.5').type, 12);
  });

  for (const line of [
    '+nonsense',
    'a.example b.example',
    '-p 99999 a',
    '-t NOPE a',
    '--shrot a',
    '-x dns',
  ]) {
    test(`"${line}" is a usage error`, async () => {
      const { code, err, out } = await runCommand(query, line.split(' '));
      assert.equal(code, 3);
      assert.match(err, /^ndots query: /);
      assert.equal(out, '');
    });
  }
});

describe('ndots query against a server', () => {
  let server: LocalAnswers;
  before(async () => {
    server = await serveAnswers({
      rules: [
        { name: 'www.example.com', answer: '203.0.113.80 2001:db8::80' },
        { name: 'big.example.com', type: 'A', answer: 'n=200' },
        { name: 'bad.example.com', answer: 'SERVFAIL' },
        { name: 'silent.example.com', answer: 'DROP' },
      ],
    });
  });
  after(() => server.close());
  const ask = (...words: string[]) => runCommand(query, [`@127.0.0.1:${server.port}`, ...words]);

  test('prints the answer as dig does', async () => {
    const { code, out } = await ask('www.example.com');
    assert.equal(code, 0);
    assert.match(out, /status: NOERROR/);
    assert.match(out, /www\.example\.com\.\s+30\s+IN\s+A\s+203\.0\.113\.80/);
  });

  test('+short prints the data alone', async () => {
    assert.equal((await ask('www.example.com', 'AAAA', '+short')).out, '2001:db8::80\n');
  });

  test('-o json is a document', async () => {
    const document = JSON.parse((await ask('www.example.com', '-o', 'json')).out) as object;
    assert.ok(JSON.stringify(document).includes('203.0.113.80'));
  });

  test('a truncated answer is asked for again over TCP, except with +ignore', async () => {
    const { out } = await ask('big.example.com', '+short');
    assert.equal(out.trim().split('\n').length, 200);
    assert.deepEqual(server.asked.slice(-2), ['udp big.example.com. A', 'tcp big.example.com. A']);
    assert.equal((await ask('big.example.com', '+short', '+ignore')).out, '');
  });

  test('the exit code tells answers from errors from silence', async () => {
    assert.equal((await ask('nope.example.com')).code, 1);
    assert.equal((await ask('bad.example.com')).code, 1);
    const silent = await ask('silent.example.com', '+timeout=1', '+tries=1');
    assert.equal(silent.code, 2);
    assert.match(silent.err, /^ndots query: /);
  });
});
