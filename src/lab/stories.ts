/** The stories that the lab knows, in the order in which it lists them. */
import type { Story } from './story.ts';
import { twelveQueries } from './stories/twelve-queries.ts';

/** All stories. */
export const stories: readonly Story[] = [twelveQueries];

/** A story by its name; null: there is none. */
export function findStory(name: string): Story | null {
  return stories.find((story) => story.name === name) ?? null;
}
