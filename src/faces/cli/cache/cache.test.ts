import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { freePorts } from '../../../../test/kit/free-ports.ts';
import { serveProcess, type ServeProcess } from '../../../../test/kit/serve-process.ts';
import { runCommand, type Ran } from '../../../../test/kit/trace-command.ts';
import { parseName } from '../../../server/wire/name.ts';
import { makeQuery } from '../../../server/transport/query.ts';
import { cache } from './cache.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-cache-'));
after(() => rmSync(directory, { recursive: true, force: true }));
const token = join(directory, 'token');
writeFileSync(token, 'a-secret-of-some-length');
const wrongToken = join(directory, 'wrong');
writeFileSync(wrongToken, 'no-secret-of-this-server');

const run = (...words: readonly string[]): Promise<Ran> => runCommand(cache, words);

/** Sends A queries from a separate socket, then waits for all the replies. */
async function ask(port: number, names: readonly string[]): Promise<void> {
  const socket = createSocket('udp4');
  let next = 0;
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('replies are missing')), 20_000);
    let missing = names.length;
    const send = (): void => {
      const name = names[next++];
      if (name === undefined) return;
      const { bytes, start, end } = makeQuery(parseName(name), 1);
      socket.send(bytes.slice(start, end), port, '127.0.0.1');
    };
    socket.on('message', () => {
      if (--missing === 0) {
        clearTimeout(timer);
        resolve();
      } else send();
    });
    for (let i = 0; i < 50; i++) send();
  });
  socket.close();
}

describe('ndots cache', () => {
  let servers: readonly ServeProcess[];
  let ports: readonly number[];
  let api: Server;
  let kubeconfig: string;
  /** Pod names and the ports in their admin directives. */
  const pods = new Map<string, number>();
  let forbidden = false;

  before(async () => {
    ports = await freePorts(2);
    servers = await Promise.all(
      ports.map((port) =>
        serveProcess(
          ` admin 127.0.0.1:${port} {\n token_file ${token}\n }\n cache\n template IN A {\n answer "{{ .Name }} 60 IN A 192.0.2.1"\n }`,
          { words: ['-workers', '2'] },
        ),
      ),
    );
    for (const { port } of servers)
      for (let i = 0; i < 8; i++) await ask(port, ['www.example.', 'a.www.example.']);
    ports.forEach((port, index) => pods.set(`coredns-${index}`, port));
    // Acts as the API server by listing pods and forwarding `proxy` requests.
    api = createServer((asked, answer) => {
      if (forbidden && asked.method === 'POST') {
        answer.writeHead(403, { 'content-type': 'application/json' });
        answer.end(
          JSON.stringify({
            kind: 'Status',
            code: 403,
            reason: 'Forbidden',
            message: 'pods/proxy is forbidden',
          }),
        );
        return;
      }
      const [, pod = ''] = /\/pods\/([\w-]+):9154\/proxy\//.exec(asked.url!) ?? [];
      if (pod === '') {
        answer.writeHead(200, { 'content-type': 'application/json' });
        const items = [...pods.keys()].map((name) => ({ metadata: { name } }));
        answer.end(JSON.stringify({ kind: 'PodList', items }));
        return;
      }
      const path = asked.url!.slice(asked.url!.indexOf('/proxy/') + '/proxy'.length);
      const headers = { 'ndots-admin': asked.headers['ndots-admin'] };
      request({ port: pods.get(pod), path, method: asked.method, headers }, (reply) => {
        answer.writeHead(reply.statusCode!, { 'content-type': reply.headers['content-type'] });
        reply.pipe(answer);
      })
        .on('error', (error) => answer.writeHead(502).end(error.message))
        .end();
    });
    await new Promise<void>((resolve) => {
      api.listen(0, '127.0.0.1', resolve);
    });
    kubeconfig = join(directory, 'kubeconfig');
    writeFileSync(
      kubeconfig,
      `apiVersion: v1
kind: Config
current-context: test
clusters: [{name: test, cluster: {server: "http://127.0.0.1:${(api.address() as AddressInfo).port}"}}]
contexts: [{name: test, context: {cluster: test}}]
`,
    );
  });
  after(async () => {
    api?.close();
    await Promise.all((servers ?? []).map((server) => server.stop()));
  });

  const all = (): readonly string[] => [
    ...ports.flatMap((port) => ['-s', `127.0.0.1:${port}`]),
    '--token-file',
    token,
  ];

  test('explain shows the entries of every worker on every server', async () => {
    const { code, out, err } = await run('explain', 'www.example', ...all());
    assert.equal(code, 0, err);
    assert.match(
      out,
      new RegExp(
        `^127\\.0\\.0\\.1:${ports[0]}  cache of \\.: \\d+ of \\d+ entries kept for www\\.example\\.$`,
        'm',
      ),
    );
    assert.match(out, /^ {2}NAME +TYPE +FOR +RESULT +LEFT +HITS +FROM +WORKER$/m);
    assert.match(out, /^ {2}www\.example\. +A +all +NOERROR +\d+ of 60 s +\d+ +template +[01]$/m);
    assert.doesNotMatch(out, /a\.www/);
    assert.match(
      (await run('explain', 'www.example', '--below', ...all())).out,
      / a\.www\.example\. /,
    );
  });

  test('on a narrow terminal each entry takes a few lines, none wider than the terminal', async () => {
    for (const columns of [40, 60, 80]) {
      const { out } = await runCommand(
        cache,
        ['explain', 'www.example', ...all()],
        {},
        { columns },
      );
      for (const line of out.split('\n')) assert.ok(line.length <= columns, `${columns}: ${line}`);
      assert.match(out, /www\.example\./);
      assert.match(out, /NOERROR/);
    }
  });

  test('flush removes the entries on all replicas, and reports how many', async () => {
    const { code, out } = await run('flush', 'a.www.example', ...all());
    assert.equal(code, 0);
    assert.equal(out.match(/entries forgotten for a\.www\.example\.$/gm)!.length, 2);
    const again = await run('explain', 'a.www.example', ...all());
    assert.equal(again.code, 1);
    assert.match(again.out, /: 0 of \d+ entries kept/);
    assert.equal((await run('explain', 'www.example', ...all())).code, 0);
  });

  test('the pods of a cluster are queried through its API server', async () => {
    const words = ['--kubeconfig', kubeconfig, '--token-file', token];
    const { code, out, err } = await run('explain', 'www.example', ...words, '-o', 'json');
    assert.equal(code, 0, err);
    const answers = JSON.parse(out) as { server: string; caches: { workers: number }[] }[];
    assert.deepEqual(
      answers.map(({ server, caches }) => [server, caches[0]!.workers]),
      [
        ['kube-system/coredns-0', 2],
        ['kube-system/coredns-1', 2],
      ],
    );
  });

  test('a pod that is forbidden or missing is reported, and the others are queried', async () => {
    const [dead] = await freePorts(1);
    pods.set('coredns-2', dead!);
    const words = ['explain', 'www.example', '--kubeconfig', kubeconfig, '--token-file'];
    const wrong = await run(...words, wrongToken);
    assert.equal(wrong.code, 2);
    assert.match(
      wrong.err,
      /kube-system\/coredns-0: it is forbidden: .*\n {2}Either you are not allowed to create pods\/proxy/,
    );
    pods.delete('coredns-2');
    forbidden = true;
    const denied = await run(...words, token);
    forbidden = false;
    assert.equal(denied.code, 2);
    assert.match(denied.err, /pods\/proxy is forbidden/);
  });

  test('reports a missing admin, a missing cache and a wrong token, with the next step', async () => {
    const [dead] = await freePorts(1);
    const gone = await run('explain', 'a.', '-s', `127.0.0.1:${dead}`, ...all());
    assert.equal(gone.code, 2);
    assert.match(
      gone.err,
      /cannot be reached: nothing listens there .*\n {2}Check that its Corefile contains the admin directive/,
    );
    assert.match(gone.out, /entries kept for a\./);
    const refused = await run('flush', 'a.', '-s', `127.0.0.1:${ports[0]}`);
    assert.equal(refused.code, 2);
    assert.match(refused.err, /denies access: this is not the token\n {2}Provide its token/);
    const { metricsUrl } = servers[0]!;
    const other = await run('flush', 'a.', '-s', new URL(metricsUrl).host);
    assert.match(
      other.err,
      /accepts no commands\n {2}Its Corefile needs the admin and cache directives/,
    );
  });

  test('reports a server that is not ndots, and escapes its text', async () => {
    const odd = '\u001b]0;mine\u0007';
    const report = { servers: [], zones: [odd], view: '', workers: 1 };
    const told = { worker: 0, found: 1, size: 1 };
    const wrong = [
      ...[null, [], {}, { results: null }, { results: [null] }, { results: [report] }],
      ...[null, [null], [told], [{ ...told, entries: [null] }]].map((one) => ({
        results: [{ ...report, told: one }],
      })),
    ].map((one): readonly [number, string] => [200, JSON.stringify(one)]);
    for (const [status, answer] of [
      ...wrong,
      ...[500, 403, 503].map((one) => [one, odd] as const),
    ]) {
      const server = createServer((_, reply) => reply.writeHead(status).end(answer));
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const { port } = server.address() as AddressInfo;
      const { code, out, err } = await run('explain', 'a.', '-s', `127.0.0.1:${port}`);
      server.close();
      assert.equal(code, 2, answer);
      assert.equal(out, '');
      assert.doesNotMatch(err, /(?!\n)\p{Cc}/u);
      if (status === 200) assert.match(err, /did not send a cache report/);
    }
  });

  test('explaining and flushing a large cache delays no query', async () => {
    const [server] = servers;
    await ask(
      server!.port,
      Array.from({ length: 8000 }, (_, i) => `n${i}.large.example.`),
    );
    const words = ['-s', `127.0.0.1:${ports[0]}`, '--token-file', token];
    let done = false;
    const commands = (async () => {
      for (let i = 0; i < 5; i++) assert.equal((await run('explain', '--all', ...words)).code, 0);
      const { out } = await run('flush', 'large.example', '--below', ...words);
      // Some shards evicted entries because names are not evenly distributed.
      assert.ok(Number(/: (\d+) of \d+ entries forgotten/.exec(out)![1]) > 7500, out);
      done = true;
    })();
    let asked = 0;
    for (; !done; asked++) await ask(server!.port, ['www.example.']);
    await commands;
    assert.ok(asked > 0);
    const { out } = await run('explain', 'large.example', '--below', ...words);
    assert.match(out, /: 0 of /);
  });

  test('an invalid command line is rejected', async () => {
    for (const [words, reason] of [
      [['explain'], /explain needs a name, or --all/],
      [['flush', 'a.', '--all'], /--all or names, not both/],
      [['flsh', 'a.'], /Did you mean flush/],
      [['explain', 'a..b'], /not a domain name/],
      [['explain', 'a.', '-s', 'x:y'], /takes HOST, HOST:PORT/],
      [['explain', 'a.', '-s', '::1'], /takes HOST, HOST:PORT/],
      [['explain', 'a.', '--cluster', '-s', 'a'], /--server cannot be combined/],
      [['explain', 'a.', '--cert', 'x'], /--cert and --key must be given together/],
    ] as const) {
      const { code, err } = await run(...words);
      assert.equal(code, 3, words.join(' '));
      assert.match(err, reason);
    }
  });
});
