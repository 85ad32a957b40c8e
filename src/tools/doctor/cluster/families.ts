/** Compares replies for both address families, where only one has an answer. */
import { listed } from '../texts.ts';
import type { Answers, FamilyReplies } from './asking.ts';
import { podAt, type ClusterFacts } from './facts.ts';

/** The text of a finding about replies to A and AAAA that do not go together. */
export interface OddFamilies {
  readonly seen: readonly string[];
  readonly affected: readonly string[];
  readonly prove: string;
  readonly disproved: string;
}

/** @returns the replies that fit; `none`: no pair does; `unasked`: no server could be queried. */
export function oddFamilies(
  { families }: Answers,
  facts: ClusterFacts,
  fits: (families: FamilyReplies) => boolean,
): OddFamilies | 'none' | 'unasked' {
  const answered = families.filter(({ a }) => a.asked.reply !== null);
  if (answered.length === 0) return 'unasked';
  const found = answered.filter(fits);
  const [first] = found;
  if (first === undefined) return 'none';
  const { server, name } = first.a;
  return {
    seen: [
      `At ${podAt(facts, server)}, ${name} gets ${first.a.outcome} for A but ${first.aaaa.outcome} for AAAA. This occurs for ${found.length} of ${answered.length} combinations of name and server.`,
    ],
    affected: [...new Set(found.map(({ a }) => podAt(facts, a.server)))],
    prove: `run ndots query ${name} A @${server}, then the same with AAAA`,
    disproved: `other names at ${listed([server])} are answered for both types (then this name’s zone is at fault)`,
  };
}
