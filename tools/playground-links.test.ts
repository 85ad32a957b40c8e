import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { describe, test } from 'node:test';
import { parseHash } from '../src/faces/web/hash-state.ts';
import { exampleLinks, type ExampleLink } from './playground-links.ts';

const read = (path: string): string | null =>
  existsSync(path) && statSync(path).isFile() ? readFileSync(path, 'utf8') : null;

/** All links on a page. */
function linksOf(page: string): readonly ExampleLink[] {
  const blocks = readFileSync(page, 'utf8').matchAll(/^```(.*)\n([^]*?)^```/gm);
  return [...blocks].flatMap(([, info = '', text = '']) =>
    exampleLinks({ info, text }, '/playground/', read),
  );
}

function inputOf({ href }: ExampleLink): { page: string; input: Record<string, string> } {
  const { page, parameters } = parseHash(new URL(href, 'https://example.com').hash);
  return { page, input: Object.fromEntries(parameters) };
}

describe('examples in the documentation', () => {
  test('a Corefile is linted', () => {
    const text = '.:53 {\n    forward . {$UPSTREAM}\n}\n';
    const [link] = exampleLinks({ info: 'corefile target=coredns@1.14.1', text }, '', read);
    assert.deepEqual(inputOf(link!), { page: 'corefile', input: { corefile: text } });
  });

  test('a trace has its name, type, resolv.conf, answers and clients', () => {
    const text = `npx ndots trace www.example.org AAAA --client evdns \\
  --resolv-conf examples/pod/resolv.conf --answers examples/pod/internet.yaml # all of it\n`;
    const [link] = exampleLinks({ info: 'sh', text }, '/docs/playground/', read);
    assert.ok(link!.href.startsWith('/docs/playground/#lookup?'));
    assert.deepEqual(inputOf(link!).input, {
      name: 'www.example.org',
      resolv: read('examples/pod/resolv.conf'),
      answers: read('examples/pod/internet.yaml'),
      clients: 'all',
      type: 'AAAA',
    });
  });

  test('an example that needs a missing file, a pod or a shell has no link', () => {
    for (const text of [
      'ndots trace redis.cache --from deploy/web',
      'ndots trace api --resolv-conf no-such.conf',
      'ndots diff <(kubectl get cm coredns -o yaml) Corefile.new',
      'ndots lint no-such-file',
      'kubectl ndots trace redis.cache',
      'echo ndots trace redis.cache',
    ])
      assert.deepEqual(exampleLinks({ info: 'sh', text }, '', read), [], text);
  });

  for (const [page, tool] of [
    ['docs/trace.md', 'lookup'],
    ['docs/lint.md', 'corefile'],
    ['docs/diff.md', 'diff'],
    ['docs/answers-file.md', 'lookup'],
    ['docs/tour.md', 'diff'],
    ['docs/rules/CF03.md', 'corefile'],
  ] as const)
    test(`${page} leads to the playground`, () => {
      assert.ok(linksOf(page).some((link) => inputOf(link).page === tool));
    });
});
