/** Files that a person names on a command line. */
import { readFileSync } from 'node:fs';
import { Problem } from '../base/problem.ts';
import { FILE_MAX, readFileText } from '../base/read-file.ts';
import { errorCode } from '../base/error-code.ts';
import { whyFailed } from '../base/why-failed.ts';

/**
 * The text of a file that a person named; it must be readable. Bytes that are no UTF-8 become U+FFFD.
 * @param path `-` is standard input
 * @param what what the file should be, for messages: `list of names`
 * @param most bytes that it may have
 * @throws Problem (`unreadable-file`, `file-too-large`)
 */
export function readText(path: string, what: string, most: number = FILE_MAX.manifest): string {
  try {
    return path === '-' ? readFileSync(0, 'utf8') : readFileText(path, most);
  } catch (error) {
    if (errorCode(error) === 'EFBIG') {
      throw new Problem({
        code: 'file-too-large',
        text: `${path}: more than ${most >> 20} MiB is no ${what}`,
      });
    }
    throw new Problem({
      code: 'unreadable-file',
      text: `${path}: cannot read the ${what}: ${whyFailed(error)}`,
      cause: error,
    });
  }
}
