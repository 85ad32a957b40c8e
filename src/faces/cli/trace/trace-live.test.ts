import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { serveAnswers, type LocalAnswers } from '../../../../test/kit/local-answers.ts';
import { runTrace } from '../../../../test/kit/trace-command.ts';
import type { TraceDocument } from '../../../tools/resolver/trace-document.ts';
import { printMessage } from '../../../server/wire/print.ts';
import { readMessage } from '../../../server/wire/message.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-live-'));
after(() => rmSync(directory, { recursive: true, force: true }));

function file(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

const conf = file('resolv.conf', 'search a.test b.test\nnameserver 127.0.0.1\noptions timeout:1\n');
const hosts = file('hosts', '127.0.0.1 localhost\n');
const saved = join(directory, 'saved.json');

describe('a live trace', () => {
  let server: LocalAnswers;
  before(async () => {
    server = await serveAnswers({
      rules: [
        { name: 'web.b.test', answer: '203.0.113.80' },
        { name: 'lost.a.test', type: 'AAAA', answer: ['DROP', 'NODATA'] },
        { name: 'lost.a.test', answer: 'ttl=77 203.0.113.81' },
        { name: 'silent.a.test', answer: 'DROP' },
      ],
    });
  });
  after(() => server.close());

  const words = (name: string, ...more: string[]): string[] => [
    name,
    `@127.0.0.1:${server.port}`,
    ...['--resolv-conf', conf, '--hosts', hosts],
    ...more,
  ];
  /** Runs one lookup with several output formats. */
  const look = async (
    name: string,
    ...more: string[]
  ): Promise<{ document: TraceDocument; as: (format: string) => Promise<string> }> => {
    const { out, err } = await runTrace(words(name, '--save', saved, '-o', 'json', ...more));
    assert.notEqual(out, '', err);
    const document = JSON.parse(out) as TraceDocument;
    const as = async (format: string): Promise<string> =>
      (await runTrace(['--replay', saved, '-o', format])).out;
    return { document, as };
  };

  test('of Go shows the port that was actually queried in its error, as Go shows 53', async () => {
    const { document } = await look('silent.a.test.', '--client', 'go');
    const where = `127.0.0.1:${server.port}`;
    assert.match(JSON.stringify(document), new RegExp(`read udp ${where}: i/o timeout`));
  });

  test('has a single clock that starts with the first query', async () => {
    for (const client of ['glibc', 'musl', 'go', 'c-ares']) {
      const { document } = await look('web', '--client', client);
      const { queries, result, totals } = document;
      assert.equal(queries[0]?.atMs, 0, client);
      for (const { atMs, tookMs } of queries)
        assert.ok(atMs + (tookMs ?? 0) <= result.elapsedMs + 0.2, `${client}: ${atMs}`);
      assert.equal(result.elapsedMs, totals.elapsedMs);
      assert.match(document.startedAt ?? '', /^\d{4}-\d\d-\d\dT/);
    }
  });

  test('each of several lookups starts with its own first query', async () => {
    const { document } = await look('web', '--repeat', '2');
    const second = document.queries.find(({ lookup }) => lookup === 2);
    assert.ok((second?.atMs ?? 0) > 0);
    assert.equal(document.results.length, 2);
    const [one, two] = document.results.map(({ elapsedMs }) => elapsedMs);
    const last = document.queries.at(-1);
    // Together, they add up to the time from the first query to the last answer, without the gaps.
    const end = (last?.atMs ?? 0) + (last?.tookMs ?? 0);
    assert.ok((one ?? 0) <= (second?.atMs ?? 0) + 0.2);
    assert.ok((two ?? 0) >= end - (second?.atMs ?? 0) - 0.2);
  });

  test('a pair is one row, regardless of how long its sockets took', async () => {
    for (const client of ['glibc', 'musl', 'go']) {
      const { as } = await look('web', '--client', client);
      const text = await as('text');
      assert.match(
        text,
        /^ {2}1 +0 ms {2}web\.a\.test\. +(A|AAAA) NXDOMAIN {2}(A|AAAA) NXDOMAIN/m,
        client,
      );
      assert.match(
        text,
        /^ {2}2 .*web\.b\.test\. .*(A 203\.0\.113\.80 {2}AAAA NODATA|AAAA NODATA {2}A 203)/m,
        client,
      );
      assert.doesNotMatch(text, /^ {2}3 /m);
    }
  });

  test('the row of a lost packet shows how long the client waited', async () => {
    const { document, as } = await look('lost');
    const lost = document.queries.find(({ answer }) => answer === 'DROP');
    assert.ok((lost?.waitedMs ?? 0) >= 950 && (lost?.waitedMs ?? 0) < 9000, `${lost?.waitedMs}`);
    assert.equal(document.queries.find(({ type }) => type === 'A')?.waitedMs, null);
    assert.match(
      await as('text'),
      /A 203\.0\.113\.81 [\d.]+ ms {2}AAAA no answer in (99\d ms|[1-9]\.\d\d s)/,
    );
    assert.match(
      await as('dig'),
      /communications error to 127\.0\.0\.1#\d+: timed out\n;; waited for: (99\d ms|[1-9]\.\d\d s)/,
    );
    assert.match(await as('html'), /AAAA no answer in (99\d ms|[1-9]\.\d\d s)/);
  });

  test('if no server replies, it suggests what to try', async () => {
    const { out } = await runTrace(words('silent.a.test.', '--timeout', '1500ms'));
    assert.match(out, /A, AAAA no answer in (1\.\d\d s|9\d\d ms)/);
    assert.match(out, /^HINT +No reply arrived from 127\.0\.0\.1\./m);
  });

  test('no query is sent to a server without a route', async () => {
    // The documentation prefix. With a default route, packets to it are sent but never answered.
    const { out } = await runTrace([
      'web',
      '@2001:db8::1',
      '--resolv-conf',
      conf,
      '--hosts',
      hosts,
      '--timeout',
      '1s',
    ]);
    if (out.includes('there is no route from this machine to 2001:db8::1'))
      assert.match(out, /no query was sent/);
    else assert.match(out, /no answer in/);
  });

  test('all formats show the ports that were actually used', async () => {
    const { document, as } = await look('web');
    const [{ sourcePort, wireId, serverPort } = {}] = document.queries;
    assert.equal(serverPort, server.port);
    assert.ok((sourcePort ?? 0) > 1023);
    const port = String(server.port);
    assert.ok((await as('text')).includes(`nameserver 127.0.0.1:${port}`));
    assert.ok((await as('wide')).includes(`@127.0.0.1:${port} port ${sourcePort} id ${wireId}`));
    assert.ok((await as('html')).includes(`@127.0.0.1:${port}`));
    assert.ok((await as('dig')).includes(`;; SERVER: 127.0.0.1#${port}(127.0.0.1) (UDP)`));
  });

  test('-o dig prints the replies as received: flags, TTL, authority, size', async () => {
    const { document, as } = await look('web');
    const text = await as('dig');
    for (const { reply } of document.queries) {
      assert.ok(reply !== null);
      const bytes = Buffer.from(reply.wire, 'base64');
      assert.ok(text.includes(printMessage(readMessage(bytes))));
      assert.ok(text.includes(`;; MSG SIZE  rcvd: ${bytes.length}\n`));
    }
    assert.match(text, /;; flags: qr aa rd ra; QUERY: 1, ANSWER: 0, AUTHORITY: 1/);
    assert.match(text, /web\.b\.test\.\t+30\tIN\tA\t203\.0\.113\.80/);
  });

  test('a plan has replies, too', async () => {
    const answers = file(
      'net.yaml',
      "rules: [{ name: web.b.test, answer: 'ttl=77 203.0.113.80' }]",
    );
    const { out } = await runTrace([
      'web',
      '--resolv-conf',
      conf,
      '--hosts',
      hosts,
      '--answers',
      answers,
      '-o',
      'dig',
    ]);
    assert.match(out, /^;; flags: qr aa rd ra; QUERY: 1, ANSWER: 1, AUTHORITY: 0/m);
    assert.match(out, /^web\.b\.test\.\t+77\tIN\tA\t203\.0\.113\.80$/m);
    assert.match(out, /^;; SERVER: 127\.0\.0\.1#53\(127\.0\.0\.1\) \(UDP\)$/m);
  });
});
