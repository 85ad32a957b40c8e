import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseFilterLine } from '../../../tools/capture/filter-line.ts';
import { equivalentWords } from './equivalent-command.ts';
import { parseTopOptions } from './top-options.ts';

const filters = parseFilterLine('rcode=NXDOMAIN');

for (const words of [
  ['--server', '10.244.0.5:9155', '--server-token', 'token'],
  ['--replicas', '--replica-selector', 'k8s-app=node-local-dns', '--context', 'prod'],
  ['--replicas', '--replica-node', 'a', '--replica-node', 'b', '--replica-max', '200'],
  ['--replicas', '--replica-node-selector', 'zone=a'],
])
  test(`the same of ${words.join(' ')} is printed by top, whatever is shown`, () => {
    const options = parseTopOptions([...words]);
    for (const view of ['lookups', 'clients', 'findings'] as const) {
      const [verb, ...printed] = equivalentWords({ view, filters, item: null }, options);
      assert.equal(verb, 'top');
      const again = parseTopOptions(printed);
      const { servers, serverToken, replicas, contexts, filters: read } = again;
      assert.deepEqual(
        { servers, serverToken, replicas, contexts, filters: read, view: again.view },
        {
          servers: options.servers,
          serverToken: options.serverToken,
          replicas: options.replicas,
          contexts: options.contexts,
          filters,
          view,
        },
      );
    }
  });

test('a finding of servers is explained', () => {
  const options = parseTopOptions(['--server', '10.244.0.5']);
  const item = { id: '1', code: 'ND3001', lookups: null } as unknown as Parameters<
    typeof equivalentWords
  >[0]['item'];
  const words = equivalentWords({ view: 'findings', filters: [], item }, options);
  assert.deepEqual(words, ['doctor', '--explain', 'ND3001']);
});
