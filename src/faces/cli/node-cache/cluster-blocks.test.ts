import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { printCorefile } from '../../../server/corefile/print.ts';
import { tuneClusterBlocks } from '../../../server/nodelocal/cluster-blocks.ts';
import { parseCorefileText } from '../parse-corefile.ts';

const tuned = (text: string, file: string | null = null): string => {
  const { corefile, problems } = parseCorefileText({ file: 'x', text, dnsPort: 53, env: {} });
  assert.deepEqual(problems, []);
  return printCorefile(tuneClusterBlocks(corefile, { address: '10.96.0.11', file }));
};

describe('blocks that query the cluster DNS', () => {
  test('negative replies follow the serial, whether or not the cache has braces', () => {
    assert.equal(
      tuned(
        'a {\n cache {\n denial 9984 5\n }\n forward . 10.96.0.11 {\n force_tcp\n }\n}\nb {\n cache 30\n forward . 10.96.0.11\n}',
      ),
      'a {\n    cache {\n        denial 9984 5\n        follow_serial\n    }\n    forward . 10.96.0.11 {\n        force_tcp\n    }\n}\n\nb {\n    cache 30 {\n        follow_serial\n    }\n    forward . 10.96.0.11\n}\n',
    );
  });

  test('adds nothing twice, and leaves other blocks unchanged', () => {
    for (const text of [
      'a {\n    cache {\n        follow_serial 2s\n    }\n    forward . 10.96.0.11\n}\n',
      'a {\n    cache 30\n    forward . 10.96.0.12\n}\n',
      'a {\n    cache 30\n    whoami\n}\n',
    ])
      assert.equal(tuned(text), text);
  });

  test('the endpoints file replaces only the address', () => {
    assert.equal(
      tuned('a {\n forward . 10.96.0.11 10.0.0.2\n}', '/etc/Corefile.upstreams'),
      'a {\n    forward . /etc/Corefile.upstreams 10.0.0.2\n}\n',
    );
  });
});
