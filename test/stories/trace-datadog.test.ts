import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { storyFile, traceJson } from '../kit/trace-command.ts';

const gke = [
  '--resolv-conf',
  storyFile('gke.conf'),
  '--answers',
  storyFile('datadog.yaml'),
  '--plan',
];
const names = [
  'www.google.com.default.svc.cluster.local.',
  'www.google.com.svc.cluster.local.',
  'www.google.com.cluster.local.',
  'www.google.com.c.sandbox.internal.',
  'www.google.com.google.internal.',
  'www.google.com.',
];

describe('Kubernetes DNS horror stories: 12 queries for one name', () => {
  test('getent ahosts www.google.com on GKE sends these 12 queries, in this order', async () => {
    const { queries, result } = await traceJson([
      'www.google.com',
      '--client',
      'getent-ahosts',
      ...gke,
    ]);
    assert.deepEqual(
      queries.map((query) => [query.name, query.type]),
      names.flatMap((name) => [
        [name, 'A'],
        [name, 'AAAA'],
      ]),
    );
    assert.deepEqual([...result.addresses].sort(), ['173.194.76.103', '2a00:1450:400c:c0b::67']);
  });

  test('A and AAAA of one name share a source port, each name has a new one', async () => {
    const { queries } = await traceJson(['www.google.com', '--client', 'glibc@2.36', ...gke]);
    assert.deepEqual(
      queries.map((query) => query.port),
      [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6],
    );
  });

  test('one lost packet of the 12 costs 5 s', async () => {
    const lossy = gke.with(3, storyFile('datadog-loss.yaml'));
    const { result } = await traceJson(['www.google.com', '--client', 'glibc@2.36', ...lossy]);
    assert.ok(result.ok);
    assert.ok(result.elapsedMs > 5000 && result.elapsedMs < 5500, `${result.elapsedMs} ms`);
  });

  test('without IPv6 on the host, getent sends A only: half the queries', async () => {
    const { queries } = await traceJson([
      'www.google.com',
      '--client',
      'getent-ahosts',
      '--host-addresses',
      '10.140.216.13',
      ...gke,
    ]);
    assert.deepEqual(
      queries.map((query) => [query.name, query.type]),
      names.map((name) => [name, 'A']),
    );
  });

  test('a service of the same namespace: Ubuntu without hints sends A, Alpine sends A and AAAA', async () => {
    const echo = ['echo', '--host-addresses', '10.140.216.13', ...gke];
    // In glibc, getaddrinfo with NULL hints implies AI_ADDRCONFIG, while in musl it does not.
    const ubuntu = await traceJson([...echo, '--client', 'glibc@2.36', '--addrconfig']);
    const alpine = await traceJson([...echo, '--client', 'musl@1.2.3']);
    assert.deepEqual(
      ubuntu.queries.map((query) => query.type),
      ['A'],
    );
    assert.deepEqual(
      alpine.queries.map((query) => query.type),
      ['A', 'AAAA'],
    );
    assert.deepEqual(
      new Set(alpine.queries.map((query) => query.name)),
      new Set(['echo.default.svc.cluster.local.']),
    );
  });

  test('Go uses another source port for A than for AAAA: 12 ports, IPv6 or not', async () => {
    const { totals, anyOrder } = await traceJson([
      'www.google.com',
      '--client',
      'go@1.19',
      '--host-addresses',
      '10.140.216.13',
      ...gke,
    ]);
    assert.equal(totals.queries, 12);
    assert.equal(totals.ports, 12);
    assert.equal(anyOrder, true);
  });

  test('GODEBUG=netdns=cgo: one source port for both, and still AAAA', async () => {
    const { queries, totals } = await traceJson([
      'www.google.com',
      '--client',
      'cgo',
      '--host-addresses',
      '10.140.216.13',
      ...gke,
    ]);
    assert.equal(totals.queries, 12);
    assert.equal(totals.ports, 6);
    assert.deepEqual(
      queries.slice(0, 2).map((query) => [query.type, query.port]),
      [
        ['A', 1],
        ['AAAA', 1],
      ],
    );
  });

  test('with tcp4 in the program Go sends A only', async () => {
    const { queries } = await traceJson([
      'www.google.com',
      '--client',
      'go@1.19',
      '--families',
      '4',
      ...gke,
    ]);
    assert.deepEqual(new Set(queries.map((query) => query.type)), new Set(['A']));
  });

  test('a trailing dot reduces the 12 to 2, and the trace reports that', async () => {
    const { cheaper } = await traceJson(['www.google.com', '--client', 'glibc@2.36', ...gke]);
    const best = cheaper.find((one) => one.name === 'www.google.com.');
    assert.equal(best?.queries, 2);
    assert.equal(best?.same, true);
  });
});
