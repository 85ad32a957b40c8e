/** Parses the scripted answers for a trace, given with `--answers`. */
import { Problem } from '../../../server/base/problem.ts';
import { parseAnswers, type Script } from '../../../tools/resolver/answers-file.ts';

/**
 * Parses answers in YAML or JSON (docs/answers-file.md).
 * @param file its name, for messages
 * @throws Problem
 */
export async function parseScript(text: string, file: string): Promise<Script> {
  // JSON is valid YAML, but a JSON parser is much faster.
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const { parse, YAMLParseError } = await import('yaml');
    try {
      value = parse(text);
    } catch (error) {
      if (!(error instanceof YAMLParseError)) throw error;
      const at = error.linePos?.[0];
      throw new Problem({
        code: 'bad-answers-file',
        text: `${file} is not valid YAML: ${withoutPlace(error.message)}`,
        place: at === undefined ? undefined : { file, line: at.line, column: at.col },
        remedy: 'docs/answers-file.md describes the format.',
      });
    }
  }
  return parseAnswers(value, file);
}

/** Removes the position at the end of the library's message, along with the lines of the file that follow it. */
function withoutPlace(message: string): string {
  return (message.split('\n')[0] ?? '').replace(/ at line \d+, column \d+:?$/, '');
}
