/** `--fix`: fixes files, or shows the fixes as a diff. */
import { whyFailed } from '../../../server/base/why-failed.ts';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { Problem } from '../../../server/base/problem.ts';
import { applyEdits } from '../../../tools/lint/edits.ts';
import type { LintFinding } from '../../../tools/lint/finding.ts';
import type { GivenFile } from '../../../tools/lint/gather.ts';
import { unifiedDiff, type TextChange } from './unified-diff.ts';

/** Makes the edits that findings suggest, and returns the changed files. */
export function fixedTexts(
  findings: readonly LintFinding[],
  files: readonly GivenFile[],
): readonly TextChange[] {
  return files.flatMap(({ file, text }) => {
    const edits = findings.flatMap((finding) => finding.edits).filter((edit) => edit.file === file);
    const after = applyEdits(text, edits);
    return after === text ? [] : [{ file, before: text, after }];
  });
}

/** Formats the changes as a unified diff. */
export function showChanges(changes: readonly TextChange[], colour: boolean): string {
  if (changes.length === 0) return 'No finding has an automatic fix.\n\n';
  return `${changes.map((change) => unifiedDiff(change, colour)).join('')}\n`;
}

/**
 * Writes each file under a temporary name before renaming it.
 * @throws Problem (`unwritable-file`)
 */
export function writeChanges(changes: readonly TextChange[]): void {
  for (const { file, after } of changes) {
    const real = realpathSync(file);
    const beside = `${real}.${randomBytes(6).toString('hex')}.tmp`;
    try {
      writeFileSync(beside, after, { flag: 'wx' });
      const { mode, uid, gid } = statSync(real);
      if (process.getuid?.() === 0) chownSync(beside, uid, gid);
      chmodSync(beside, mode & 0o7777);
      renameSync(beside, real);
    } catch (error) {
      rmSync(beside, { force: true });
      throw new Problem({
        code: 'unwritable-file',
        text: `${file}: cannot be written: ${whyFailed(error)}`,
        remedy: '--diff shows the change without writing it.',
        cause: error,
      });
    }
  }
}
