/**
 * Tests that `npm run release -- --dry-run` builds a release's artefacts and lists them with checksums, but publishes
 * nothing.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';

const out = mkdtempSync(join(tmpdir(), 'ndots-release-'));
after(() => rmSync(out, { recursive: true }));

function release(...words: readonly string[]): {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
} {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['tools/release-artefacts.ts', ...words],
    { encoding: 'utf8' },
  );
  return { code: status, out: stdout, err: stderr };
}

describe('a dry run of a release', () => {
  test('lists package, chart and bill of materials with their checksums', () => {
    const {
      code,
      out: text,
      err,
    } = release('--dry-run', '--out', out, '--only', 'package,chart,sbom');
    assert.equal(code, 0, err);
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    const files = [`ndots-${version}.tgz`, `ndots-chart-${version}.tgz`, 'sbom.spdx.json'];
    assert.deepEqual(readdirSync(out).toSorted(), [...files, 'SHA256SUMS'].toSorted());
    for (const file of files) {
      const sum = createHash('sha256')
        .update(readFileSync(join(out, file)))
        .digest('hex');
      assert.match(text, new RegExp(`^${file} +[\\d.]+ MB {2}${sum}$`, 'm'));
      assert.match(
        readFileSync(join(out, 'SHA256SUMS'), 'utf8'),
        new RegExp(`^${sum} {2}${file}$`, 'm'),
      );
    }
    assert.match(text, /^Nothing was published/m);
    const chart = spawnSync('tar', ['tzf', join(out, files[1]!)], { encoding: 'utf8' }).stdout;
    assert.match(chart, /^ndots\/Chart\.yaml$/m);
  });

  test('does not write into a directory that has files', () => {
    const { code, err } = release('--dry-run', '--out', out);
    assert.equal(code, 3);
    assert.match(err, /is not empty/);
  });
});

test('a release without --dry-run is rejected, and so is an unknown artefact', () => {
  assert.equal(release().code, 3);
  assert.match(release().err, /only --dry-run works here: a tag publishes/);
  assert.match(release('--dry-run', '--only', 'cake').err, /no kind of artefact 'cake'/);
});
