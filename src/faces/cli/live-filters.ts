/** Filters of live views. */
import {
  filterWords,
  ofOwners,
  ofProcesses,
  type FilterWord,
  type GivenFilter,
} from '../../tools/capture/filter.ts';

/** The filters that can match something. Live views do not look up processes. */
export const liveFilterWords: readonly FilterWord[] = filterWords.filter(
  (word) => !ofProcesses.has(word),
);

/**
 * Returns why one of these filters cannot match anything, as text, or null if all of them can.
 * @param hasOwners true if the pods behind addresses are known
 */
export function whyUseless(filters: readonly GivenFilter[], hasOwners: boolean): string | null {
  for (const { word } of filters) {
    if (ofProcesses.has(word)) return `${word}: only ndots capture --process looks up processes`;
    if (!hasOwners && ofOwners.has(word))
      return `${word}: start with --cluster or --manifests, which map addresses to pods`;
  }
  return null;
}
