/** Counts the tests of a run, with one total. */
import { relative } from 'node:path';
import type { TestEvent } from 'node:test/reporters';

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

/** The counts of a `test:summary` event. */
type RunnerCounts = Readonly<Record<'tests' | 'passed' | 'skipped' | 'todo', number>>;

interface Skipped {
  readonly name: string;
  readonly file: string;
}

/** Files that are named for one reason; beyond it, only their number. */
const FILES_NAMED = 3;

/**
 * Counts the reports of `node:test`, one for each test. Suites and files do not count, nor does a test that
 * failed only because of a test within it. A suite that is skipped as a whole counts once, because its tests
 * were never declared.
 */
export class TestCount {
  readonly #all: Counts = { passed: 0, failed: 0, skipped: 0 };
  /** Reason → the tests skipped for it. */
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

  /** One line for each reason: the skipped tests, and their places. */
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

/** The runner's counts for one file, and for the tests that it had declared elsewhere: `12 passed, 1 failed`. */
export function printCounts({ tests, passed, skipped, todo }: RunnerCounts): string {
  const failed = tests - passed - skipped - todo;
  return [
    `${passed} passed`,
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(skipped + todo > 0 ? [`${skipped + todo} skipped`] : []),
  ].join(', ');
}

/** True if the only failure of a test or suite is a test within it, which is counted itself. */
function isOnlyWithin(error: unknown): boolean {
  return (error as { failureType?: string }).failureType === 'subtestsFailed';
}
