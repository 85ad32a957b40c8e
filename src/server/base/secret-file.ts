/** Secrets that clients present, read from files that may change at any time. */
import { builtins } from './builtins.ts';
import type { Log } from './log.ts';
import { Problem } from './problem.ts';
import { FILE_MAX, readFileText } from './read-file.ts';
import { whyFailed } from './why-failed.ts';

/** Shorter secrets are guessable. */
const SECRET_MIN = 16;

/**
 * Reads the file named by a `token_file` property. The last parameter is the advice if the secret is too short.
 * @throws Problem `token-file`
 */
export function readSecret(
  file: string,
  remedy: string = `openssl rand -base64 24 -out ${file}`,
): string {
  let text: string;
  try {
    text = readFileText(file, FILE_MAX.small).trim();
  } catch (error) {
    throw new Problem({
      code: 'token-file',
      text: `token_file cannot be read: ${whyFailed(error)}`,
      remedy: `ls -l ${file}`,
      cause: error,
    });
  }
  if (text.length >= SECRET_MIN) return text;
  throw new Problem({
    code: 'token-file',
    text: `the token in ${file} has ${text.length} characters, but at least ${SECRET_MIN} are required`,
    remedy,
  });
}

/** Returns null, and logs the reason, if the file is missing or is being written. */
export function readSecretOrLog(file: string, log: Pick<Log, 'error'>): string | null {
  try {
    return readSecret(file);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    log.error(error.message);
    return null;
  }
}

/** Compares in constant time. */
export function isSameSecret(given: string, wanted: string): boolean {
  const { createHash, timingSafeEqual } = builtins.crypto();
  const [a, b] = [given, wanted].map((text) => createHash('sha256').update(text).digest());
  return timingSafeEqual(a!, b!);
}
