/** `ndots lab run`: runs named stories or a story file. */
import { resolve } from 'node:path';
import { nearest } from '../../../server/base/problem.ts';
import { findStory, stories } from '../../../tools/lab/stories.ts';
import type { Story } from '../../../tools/lab/story.ts';
import type { Io } from '../command.ts';
import type { LabOptions } from './lab-options.ts';
import { isInside, performInside, performStories } from './lab-perform.ts';
import { storyOfFile } from './lab-story.ts';
import { usage } from '../option-values.ts';

/** Runs the selected stories one after another, each in a separate lab. */
export async function runStories(options: LabOptions, io: Io): Promise<number> {
  const chosen = choose(options);
  if (isInside(io)) return performInside(chosen[0]!, options.run, io);
  const performances = chosen.map((story) => ({ story, words: wordsFor(story, options) }));
  return performStories(performances, options.run, io);
}

function wordsFor({ name }: Story, { run, file }: LabOptions): readonly string[] {
  return [
    ...['lab', 'run', '--mode', run.mode],
    ...(file === null ? [name] : ['-f', resolve(file)]),
    ...(run.coredns === null ? [] : ['--server', `coredns=${resolve(run.coredns)}`]),
    ...(run.pcap === null ? [] : ['--pcap', resolve(run.pcap)]),
    ...(run.keep ? ['--keep'] : []),
  ];
}

/** The selected stories, either named on the command line or read from the file. */
function choose({ file, words, run }: LabOptions): readonly Story[] {
  return file === null ? chooseStories(words) : [storyOfFile(file, run.coredns === null)];
}

function chooseStories(names: readonly string[]): readonly Story[] {
  if (names.includes('all')) return stories;
  return names.map((name) => {
    const found = findStory(name);
    if (found !== null) return found;
    const known = stories.map((story) => story.name);
    const meant = known.find((each) => each.startsWith(name)) ?? nearest(name, known);
    throw usage(
      `there is no story ${name}`,
      meant === null ? 'ndots lab list shows them.' : `Did you mean ${meant}?`,
    );
  });
}
