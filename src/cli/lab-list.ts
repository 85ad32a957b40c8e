/** `ndots lab list`: the stories, and what this machine lacks for them. */
import { lacksOfMachine, lacksOfStory } from '../lab/machine.ts';
import { stories } from '../lab/stories.ts';
import { EXIT, type Io } from './command.ts';

/** Prints the list. */
export function listStories(io: Io): number {
  const path = io.env['PATH'] ?? '';
  const lacks = lacksOfMachine(path);
  const width = Math.max(...stories.map(({ name }) => name.length));
  for (const story of stories) {
    const own = lacks.length > 0 ? [] : lacksOfStory(story.needs, path);
    const how =
      lacks.length === 0 && own.length === 0 && story.play !== null
        ? `${story.seconds} s`
        : story.model === null
          ? 'not here'
          : 'model';
    io.out(`${story.name.padEnd(width)}  ${how.padStart(8)}  ${story.title}\n`);
    if (own.length > 0) io.out(`${' '.repeat(width + 12)}needs ${own.join(', ')}\n`);
  }
  if (lacks.length > 0)
    io.out(`\nNothing can be played here, models run: a lab needs ${lacks.join(', ')}.\n`);
  return EXIT.ok;
}
