import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import type { Problem } from '../../base/problem.ts';
import { readGoodManifests, readManifestsOnce } from './read-once.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-once-'));
after(() => rmSync(directory, { recursive: true }));
const file = (name: string, text: string): string => {
  writeFileSync(join(directory, name), text);
  return join(directory, name);
};
async function told(path: string): Promise<readonly string[]> {
  const found: string[] = [];
  await readManifestsOnce(path, (problem) => found.push(problem.print()));
  return found;
}

const service =
  'apiVersion: v1\nkind: Service\nmetadata: { name: web }\nspec: { ports: [{ port: 80 }] }\n';

describe('manifests that are read once', () => {
  test('are those in a file, whatever its name', async () => {
    const found = await readManifestsOnce(file('objects.txt', service), assert.fail);
    assert.deepEqual(
      found.map(({ kind, name }) => `${kind} ${name}`),
      ['Service web'],
    );
  });

  test('are reported missing in an empty directory, one with other files, and one with other objects', async () => {
    const empty = join(directory, 'empty');
    mkdirSync(empty);
    assert.match(
      (await told(empty)).join(),
      /^there are no objects in .*empty\n {2}it contains no file/,
    );
    const other = file('other.yaml', 'apiVersion: v1\nkind: Secret\nmetadata: { name: a }\n');
    assert.match(
      (await told(other)).join(),
      /^there are no objects in .*other\.yaml\n {2}ndots reads/,
    );
  });

  test('are an error if none is valid, because a cluster without objects would answer', async () => {
    for (const [name, text] of [
      ['binary.yaml', '\0'.repeat(100)],
      ['broken.yaml', 'a: [\n'],
    ])
      await assert.rejects(told(file(name!, text!)), (problem: Problem) => {
        assert.match(problem.print(), /not YAML/);
        assert.doesNotMatch(problem.print(), /is ignored/);
        return true;
      });
  });

  test('cannot come from a pipe, which cannot be read again', async () => {
    await assert.rejects(told('/dev/null'), /\/dev\/null is neither a file nor a directory/);
  });

  test('for a lab must be valid: the line, the error, and the expected value are reported', async () => {
    const wrong = file('wrong.txt', 'hello\n');
    await assert.rejects(readGoodManifests(wrong), (problem: Problem) => {
      assert.match(problem.print(), /^expected a Kubernetes object, but this is /);
      assert.match(problem.print(), /wrong\.txt:1:1/);
      assert.match(problem.print(), /Kubernetes objects are expected here, in YAML or JSON/);
      assert.doesNotMatch(problem.print(), /is ignored/);
      return true;
    });
  });
});
