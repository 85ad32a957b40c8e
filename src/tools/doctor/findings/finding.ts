/** Findings, and the kinds of findings. */
import type { ClusterFacts } from '../cluster/facts.ts';
import type { Claims } from '../observe/claims.ts';
import type { Observations } from '../observe/observations.ts';
import type { SeenExchange } from '../../capture/pair/seen-exchange.ts';
import type { Severity } from '../severity.ts';
import { sentence } from '../texts.ts';

/** One thing that is wrong, in words that a person who does not know DNS well understands. */
export interface Finding {
  /** Never used again for something else, even if the rule goes. */
  readonly code: string;
  readonly title: string;
  /** Separates it from other findings of its code: an upstream. */
  readonly subject?: string;
  readonly severity: Severity;
  /** From 0 to 1: how sure it is that this is the cause. */
  readonly confidence: number;
  /** Facts with numbers, from the capture or cluster. Each ends with a full stop. */
  readonly seen: readonly string[];
  /** The cause. */
  readonly why: string;
  /** The best first. */
  readonly fix: readonly string[];
  /** A command that shows it. */
  readonly prove: string;
  /** An observation that would refute it; empty for counts. */
  readonly disproved: string;
  /** Exchanges that show it: who, and where to look. */
  readonly exchanges: readonly SeenExchange[];
  /** Queries or connections hit, if only certain ones or a moment are: findings that hit many more come first. */
  readonly hits?: number;
  /** Codes of limits that this load exceeds. If one of them is found, it comes first, because the limit is the cause. */
  readonly triggers?: readonly string[];
  /** Codes of findings that come first if they are as grave, because this one matters only together with them. */
  readonly after?: readonly string[];
  /** Queries by client address, where they are only counted. */
  readonly counted?: ReadonlyMap<string, number>;
  /** Pods, Services or nodes that are hit, where no exchange shows it. */
  readonly affected?: readonly string[];
  /** Parts of objects and names, in addition to packets. */
  readonly places?: readonly string[];
}

/** A text of a finding, or another value if the text does not apply. Those are left out. */
export type OptionalText = string | false | null | undefined;

/** The parts of a finding that its kind states. The kind's code and title are added, unless it has its own. */
export interface FoundCause extends Omit<Finding, 'code' | 'title' | 'seen' | 'fix' | 'exchanges'> {
  readonly code?: string;
  readonly title?: string | undefined;
  /** A full stop is added to those without one. */
  readonly seen: readonly OptionalText[];
  readonly fix: readonly OptionalText[];
  /** None if it is left out. */
  readonly exchanges?: readonly SeenExchange[];
}

/** A finding, or the reason that there is none: the cause is ruled out, or the input cannot tell. */
export type Verdict =
  | FoundCause
  | { readonly not: 'excluded' | 'unknown'; readonly reason: string };

/** One thing that doctor looks for: in captures and logs, in running clusters, or in both. */
export interface FindingKind {
  /** Several kinds have one code where one cause shows itself in several ways. */
  readonly code: string;
  readonly title: string;
  /** For the list of what it is not. */
  readonly name: string;
  /** @returns a list where there may be several findings; an empty one says nothing */
  inCapture?(observed: Observations, claims: Claims): Verdict | readonly FoundCause[];
  inCluster?(facts: ClusterFacts): Verdict;
}

/** The cause is ruled out, with enough evidence. */
export function excluded(reason: string): Verdict {
  return { not: 'excluded', reason };
}

/** The capture cannot tell. */
export function unknown(reason: string): Verdict {
  return { not: 'unknown', reason };
}

export function findingOf({ code, title }: FindingKind, found: FoundCause): Finding {
  return {
    code,
    exchanges: [],
    ...found,
    title: found.title ?? title,
    seen: textsOf(found.seen).map(sentence),
    fix: textsOf(found.fix),
  };
}

function textsOf(texts: readonly OptionalText[]): readonly string[] {
  return texts.filter((text) => typeof text === 'string');
}

/** Verdicts of several kinds where a part of the facts is missing. */
export const notAsked: Verdict = unknown(
  'this machine is not in the pod network, or no DNS pod was found to ask',
);
export const noPods: Verdict = unknown('pods could not be listed');
export const unread: Verdict = unknown('no DNS pod’s metrics could be read');
/** Metrics are known, and hardly move. */
export const quiet: Verdict = unknown('too few queries came while it was measured (--for 60s)');
/** No name below a search domain was queried. */
export const noSuffix: Verdict = unknown(
  'no server could be queried for names below search domains',
);
export const noUpstreams: Verdict = unknown('no upstream is known that could be asked from here');
