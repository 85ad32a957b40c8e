/** The configuration that readers of the stream get: the texts of its files, with any secrets removed. */
import { CONFIGURATION_MAX, type ConfigurationFile } from '../../wire/dnstap.ts';

/**
 * Lines with a secret, also if they are commented out: `secret NAME KEY` of tsig, `credentials USER PASSWORD` of etcd,
 * `key NAME SECRET` of secondary, but not `key file` of dnssec. Secrets in files and environment variables are not in
 * the text.
 */
const secretLine = /((?:^|\{)\s*(?:#\s*)?(?:secret|credentials|key(?!\s+file\b))\s+\S+\s+)\S[^]*$/;
const HIDDEN = '(hidden)';

/** Returns the files without secrets; empty if they are too large. */
export function shownConfiguration(
  texts: ReadonlyMap<string, string>,
): readonly ConfigurationFile[] {
  let characters = 0;
  for (const text of texts.values()) characters += text.length;
  if (characters > CONFIGURATION_MAX) return [];
  return [...texts].map(([file, text]) => ({
    file,
    text: text
      .split('\n')
      .map((line) => line.replace(secretLine, `$1${HIDDEN}`))
      .join('\n'),
  }));
}
