import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { storyFile, traceJson } from '../kit/trace-command.ts';

const pod = [
  'kube-health.localhost',
  '--resolv-conf',
  storyFile('box.conf'),
  '--plan',
  '--hostname',
  'kh-7fbbd69ffc-8tr6d',
];
const debian = [...pod, '--nsswitch', storyFile('debian.nsswitch')];
const centos = [...pod, '--nsswitch', storyFile('centos.nsswitch')];
const debug = { GODEBUG: 'netdns=2' };
const walk = [
  'kube-health.localhost.default.svc.cluster.local.',
  'kube-health.localhost.svc.cluster.local.',
  'kube-health.localhost.cluster.local.',
  'kube-health.localhost.',
];

describe('Down the Kubernetes DNS rabbit hole: kube-health.localhost', () => {
  test('in the original image Go uses the search list and fails', async () => {
    const { result, queries } = await traceJson([...debian, '--client', 'go@1.19'], debug);
    assert.match(result.error ?? '', /^no such host/);
    assert.deepEqual([...new Set(queries.map((query) => query.name))], walk);
  });

  test('CentOS with CGO_ENABLED=0: Go stays with its own resolver and fails the same way', async () => {
    const { result, debug: lines } = await traceJson([...centos, '--client', 'go@1.19'], debug);
    assert.equal(result.ok, false);
    assert.deepEqual(lines, [
      'go package net: confVal.netCgo = false  netGo = true',
      "go package net: built with netgo build tag; using Go's DNS resolver",
      'go package net: hostLookupOrder(kube-health.localhost) = files,dns',
    ]);
  });

  test('CentOS with a default build: myhostname makes Go take libc, and the name is 127.0.0.1', async () => {
    const run = await traceJson([...centos, '--client', 'go@1.19', '--cgo'], debug);
    assert.deepEqual(run.debug, [
      'go package net: confVal.netCgo = false  netGo = false',
      'go package net: dynamic selection of DNS resolver',
      'go package net: hostLookupOrder(kube-health.localhost) = cgo',
    ]);
    assert.deepEqual([...run.result.addresses].sort(), ['127.0.0.1', '::1']);
    // myhostname is listed after dns, so the entire search is performed first.
    assert.deepEqual([...new Set(run.queries.map((query) => query.name))], walk);
    assert.ok(run.steps.some((step) => step.text.includes('myhostname')));
  });

  test('CGO_ENABLED=1 in the environment of the build changes nothing more', async () => {
    const plain = await traceJson([...centos, '--client', 'go@1.19', '--cgo'], debug);
    const stated = await traceJson(
      [...centos, '--client', 'go@1.19', '--env', 'CGO_ENABLED=1'],
      debug,
    );
    assert.deepEqual(stated.debug, plain.debug);
    assert.deepEqual(stated.result, plain.result);
  });

  test('ping and curl on CentOS succeed after the walk, through myhostname', async () => {
    const { result } = await traceJson([...centos, '--client', 'glibc@2.36']);
    assert.deepEqual([...result.addresses].sort(), ['127.0.0.1', '::1']);
  });

  test('with myhostname before dns no query is sent', async () => {
    const file = storyFile('myhostname-first.nsswitch');
    const { totals, result } = await traceJson([
      ...pod,
      '--nsswitch',
      file,
      '--client',
      'glibc@2.36',
    ]);
    assert.equal(totals.queries, 0);
    assert.ok(result.ok);
  });
});
