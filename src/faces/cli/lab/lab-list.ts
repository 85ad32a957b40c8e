/** `ndots lab list`: lists the stories and what this machine still needs in order to run them. */
import { lacksOfMachine, lacksOfStory } from '../../../tools/lab/machine.ts';
import { stories } from '../../../tools/lab/stories.ts';
import type { Story } from '../../../tools/lab/story.ts';
import { EXIT, type Io } from '../command.ts';
import { beside, wrap } from '../page.ts';

/** A story and how it can run here. */
interface Listed {
  readonly name: string;
  readonly title: string;
  /** `played` for a lab, `model` for virtual time, or `no` if it cannot run at all. */
  readonly here: 'played' | 'model' | 'no';
  /** Expected duration, seconds. */
  readonly seconds: number;
  readonly lacks: readonly string[];
}

export function listStories(output: 'text' | 'json', io: Io): number {
  const path = io.env['PATH'] ?? '';
  const lacks = lacksOfMachine(path);
  const listed = stories.map((story) =>
    listedStory(story, lacks.length > 0 ? lacks : lacksOfStory(story.needs, path)),
  );
  io.out(output === 'json' ? `${JSON.stringify(listed, null, 2)}\n` : asText(listed, lacks, io));
  return EXIT.ok;
}

function listedStory({ name, title, play, model, seconds }: Story, lacks: Listed['lacks']): Listed {
  const isPlayed = lacks.length === 0 && play !== null;
  return {
    name,
    title,
    here: isPlayed ? 'played' : model === null ? 'no' : 'model',
    seconds,
    lacks,
  };
}

function asText(listed: readonly Listed[], machine: readonly string[], io: Io): string {
  const width = Math.max(...listed.map(({ name }) => name.length));
  const lines: string[] = [];
  for (const { name, title, here, seconds, lacks } of listed) {
    const how = here === 'played' ? `${seconds} s` : here === 'model' ? 'model' : 'not here';
    lines.push(...beside(`${name.padEnd(width)}  ${how.padStart(8)}  `, title, width + 12, io));
    if (machine.length === 0 && lacks.length > 0)
      lines.push(...beside('', `needs ${lacks.join(', ')}`, width + 12, io));
  }
  if (machine.length > 0)
    lines.push(
      '',
      ...wrap(
        `No story can be played here, so models run: a lab needs ${machine.join(', ')}.`,
        '',
        io,
      ),
    );
  return `${lines.join('\n')}\n`;
}
