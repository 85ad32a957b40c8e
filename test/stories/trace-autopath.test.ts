import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { runTrace, storyFile, traceJson } from '../kit/trace-command.ts';

const pod = ['api.twilio.com', '--resolv-conf', storyFile('box.conf'), '--plan'];
const halfCname = [...pod, '--answers', storyFile('autopath.yaml')];
const halfEmpty = [...pod, '--answers', storyFile('autopath-nodata.yaml')];

describe('DNS issues with autopath: A is NXDOMAIN, AAAA is NOERROR', () => {
  for (const client of ['glibc@2.36', 'glibc@2.41']) {
    test(`${client} stops at the first search name, because the AAAA answer is a CNAME without address`, async () => {
      const { result, totals, queries } = await traceJson([...halfCname, '--client', client]);
      assert.equal(result.code, 'EAI_NONAME');
      assert.equal(totals.queries, 2);
      assert.match(queries[1]?.outcome ?? '', /glibc-cname/);
    });

    test(`${client} does not stop where the AAAA answer is plainly empty`, async () => {
      const { result, totals } = await traceJson([...halfEmpty, '--client', client]);
      assert.deepEqual(result.addresses, ['18.208.54.140']);
      assert.equal(totals.queries, 8);
    });
  }

  test('curl shows the error of the story', async () => {
    const { result } = await traceJson([...halfCname, '--client', 'curl']);
    assert.equal(result.error, 'Could not resolve host: api.twilio.com');
  });

  test('with IPv4 alone the bug is not seen', async () => {
    const { result } = await traceJson([...halfCname, '--client', 'glibc@2.36', '--families', '4']);
    assert.ok(result.ok);
  });

  test('Go, musl and c-ares walk on', async () => {
    for (const client of ['go@1.24', 'musl@1.2.5', 'c-ares@1.34']) {
      const { result } = await traceJson([...halfCname, '--client', client]);
      assert.deepEqual(result.addresses, ['18.208.54.140'], client);
    }
  });

  test('the text explains why the walk ended', async () => {
    const { out, code } = await runTrace([...halfCname, '--client', 'glibc@2.36']);
    assert.equal(code, 1);
    assert.match(out, /A CNAME without an address/);
  });
});
