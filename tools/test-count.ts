/** Counts a run's tests and prints a single total. */
import { relative } from 'node:path';
import type { TestEvent } from 'node:test/reporters';

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/** Counts in a `test:summary` event. */
type RunnerCounts = Readonly<Record<'tests' | 'passed' | 'skipped' | 'todo', number>>;

interface Skipped {
  readonly name: string;
  readonly file: string;
}

/** The maximum number of files listed per reason. Beyond that, only the count is printed. */
const FILES_NAMED = 3;

/**
 * Counts `node:test` reports, one per test. Suites, files, and tests that only failed because of a nested test are not
 * counted. A suite that is skipped as a whole counts as one, because its tests were never declared.
 */
export class TestCount {
  readonly #all: Counts = { passed: 0, failed: 0, skipped: 0 };
  /** Skipped tests by reason. */
  readonly #reasons = new Map<string, Skipped[]>();

  get passed(): number {
    return this.#all.passed;
  }

  get failed(): number {
    return this.#all.failed;
  }

  take({ type, data }: TestEvent): void {
    if (type !== 'test:pass' && type !== 'test:fail') return;
    const { name, file = '', skip, todo, details } = data;
    const because = skip ?? todo;
    if (because !== undefined && because !== false) {
      this.#all.skipped++;
      const reason = typeof because === 'string' && because !== '' ? because : 'no reason given';
      const group = this.#reasons.get(reason) ?? [];
      this.#reasons.set(reason, [...group, { name, file }]);
    } else if (type === 'test:fail') {
      if (!isOnlyWithin(data.details.error)) this.#all.failed++;
    } else if (details.type !== 'suite' && name !== file) {
      this.#all.passed++;
    }
  }

  /** Prints one line per reason, with the skipped tests and their files. */
  skippedLines(): readonly string[] {
    return [...this.#reasons].map(([reason, skipped]) => {
      const files = [...new Set(skipped.map(({ file }) => relative('.', file)))];
      const where =
        files.length > FILES_NAMED
          ? `${files.slice(0, FILES_NAMED).join(', ')} and ${files.length - FILES_NAMED} files more`
          : files.join(', ');
      const [first] = skipped;
      const what = skipped.length === 1 ? `"${first!.name}" in` : `${skipped.length} of`;
      return `skipped: ${what} ${where}: ${reason}`;
    });
  }

  total(): string {
    const { passed, failed, skipped } = this.#all;
    return `${passed} passed, ${failed} failed, ${skipped} skipped`;
  }
}

/** The runner's counts for a file, including tests that are declared elsewhere: `12 passed, 1 failed`. */
export function printCounts({ tests, passed, skipped, todo }: RunnerCounts): string {
  const failed = tests - passed - skipped - todo;
  return [
    `${passed} passed`,
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(skipped + todo > 0 ? [`${skipped + todo} skipped`] : []),
  ].join(', ');
}

/** True if a test or suite only failed because of a nested test, which is counted separately. */
function isOnlyWithin(error: unknown): boolean {
  return (error as { failureType?: string }).failureType === 'subtestsFailed';
}
