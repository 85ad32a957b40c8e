/** Reads and validates story files before anything is built, and also prints a template. */
import { fileURLToPath } from 'node:url';
import { Problems, type Problem } from '../../../server/base/problem.ts';
import { FILE_MAX, readFileText } from '../../../server/base/read-file.ts';
import { API_URL } from '../../../tools/lab/cluster-plan.ts';
import { readStoryFile, type StoryCorefile } from '../../../tools/lab/story-file/story-file.ts';
import type { Story } from '../../../tools/lab/story.ts';
import { EXIT, type Io } from '../command.ts';
import { parseCorefileText } from '../parse-corefile.ts';

/** The story printed by `lab init`. */
const example = fileURLToPath(new URL('../../../../examples/lab/story.yaml', import.meta.url));

export function printExampleStory(io: Io): number {
  io.out(readFileText(example, FILE_MAX.small));
  return EXIT.ok;
}

/**
 * Reads a story file.
 * @param servedByNdots true to check its Corefiles as well, which CoreDNS may read differently
 * @throws Problems with all errors
 */
export function storyOfFile(file: string, servedByNdots: boolean): Story {
  const { story, corefiles } = readStoryFile(file);
  const problems = servedByNdots ? corefiles.flatMap(corefileProblems) : [];
  if (problems.length > 0) throw new Problems(problems);
  return story;
}

function corefileProblems({ text, place, isOwnFile }: StoryCorefile): readonly Problem[] {
  // A node cache template, which becomes a Corefile later.
  if (text.includes('__PILLAR__')) return [];
  const { problems } = parseCorefileText({
    file: place.file,
    text: text.replaceAll('@API@', API_URL),
    dnsPort: 53,
    env: {},
  });
  return problems.map((problem) => {
    if (isOwnFile || problem.place === null) return problem;
    const line = place.line + problem.place.line;
    return problem.with({ place: { file: place.file, line, column: 0 } });
  });
}
