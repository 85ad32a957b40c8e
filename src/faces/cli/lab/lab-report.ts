/** `ndots lab report`: prints story results as text, JSON or HTML, also for other commands. */
import { whyFailed } from '../../../server/base/why-failed.ts';
import { readFileText, FILE_MAX } from '../../../server/base/read-file.ts';
import { Problem } from '../../../server/base/problem.ts';
import { isAsTold, type StoryOutcome } from '../../../tools/lab/story.ts';
import { EXIT, wantsColour, type Io } from '../command.ts';
import { labHtml } from './lab-html.ts';
import type { RunOptions } from './lab-options.ts';
import { labText } from './lab-text.ts';

export function printOutcomes(
  outcomes: readonly StoryOutcome[],
  options: RunOptions,
  io: Io,
): void {
  const formats: Readonly<Record<RunOptions['output'], () => string>> = {
    text: () => labText(outcomes, { colour: wantsColour(options, io), columns: io.columns }),
    json: () => `${JSON.stringify(outcomes, null, 2)}\n`,
    html: () => labHtml(outcomes),
  };
  io.out(formats[options.output]());
}

/** Prints the results saved by `lab run --save`. */
export function reportFile(file: string, options: RunOptions, io: Io): number {
  const outcomes = readOutcomes(file);
  printOutcomes(outcomes, options, io);
  return outcomes.every(isAsTold) ? EXIT.ok : EXIT.no;
}

function readOutcomes(file: string): readonly StoryOutcome[] {
  let text: string;
  try {
    text = readFileText(file, FILE_MAX.manifest);
  } catch (error) {
    throw new Problem({
      code: 'unreadable-file',
      text: `${file}: cannot read the saved result: ${whyFailed(error)}`,
      remedy: 'ndots lab run --save FILE writes it',
    });
  }
  try {
    const outcomes = JSON.parse(text) as readonly StoryOutcome[];
    if (outcomes.every(({ story, acts }) => typeof story.name === 'string' && acts.length > 0))
      return outcomes;
  } catch {}
  throw new Problem({
    code: 'bad-outcome',
    text: `${file}: ndots lab did not save this file`,
    remedy: 'ndots lab run --save FILE writes it',
  });
}
