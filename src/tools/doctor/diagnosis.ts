/** Turns observations into findings, the gravest first, and into causes that are ruled out. */
import type { Moment, Observations } from './observe/observations.ts';
import type { SeenExchange } from '../capture/pair/seen-exchange.ts';
import {
  findingOf,
  type Finding,
  type FindingKind,
  type FoundCause,
  type Verdict,
} from './findings/finding.ts';
import { Claims } from './observe/claims.ts';
import type { ClusterFacts } from './cluster/facts.ts';
import { findingKinds } from './findings/table.ts';
import { FORWARDER_WAITS_MS } from './thresholds/evidence.ts';
import { CUT_SHARE, MANY_MORE_HITS } from './thresholds/lateness.ts';

export interface NotFound {
  readonly code: string;
  /** For people: `the conntrack race`. */
  readonly name: string;
  readonly reason: string;
}

export interface Diagnosis {
  readonly findings: readonly Finding[];
  /** Looked for with enough to see it by. */
  readonly excluded: readonly NotFound[];
  /** Causes that the capture cannot show. */
  readonly unknown: readonly NotFound[];
  /** Lost queries of which nothing tells why they were lost. */
  readonly unexplained?: readonly SeenExchange[];
  /** Late replies, and failures, that are not of a time in which a server was silent. */
  readonly late?: readonly Moment[];
  readonly failed?: readonly Moment[];
}

const grades: Readonly<Record<Finding['severity'], number>> = { critical: 2, warning: 1, info: 0 };

/** Judges a capture or a log. @param wanted which kinds are reported; all without it */
export function diagnose(
  observed: Observations,
  wanted: (kind: FindingKind) => boolean = () => true,
): Diagnosis {
  const claims = new Claims(observed);
  // A kind that is not wanted still explains what it explains.
  const verdicts = findingKinds.flatMap((kind) =>
    kind.inCapture === undefined ? [] : [[kind, kind.inCapture(observed, claims)] as const],
  );
  const diagnosis = {
    ...diagnosisOf(verdicts.filter(([kind]) => wanted(kind))),
    unexplained: claims.open,
    late: observed.slow.filter((each) => !claims.isOfSilence(each)),
    failed: observed.failed.filter((each) => !claims.isOfSilence(each, FORWARDER_WAITS_MS)),
  };
  if (observed.total.asked === 0 && observed.logged.lines > 0) return ofErrorsAlone(diagnosis);
  const { messages, of } = observed.cut;
  // No message was read: these are the lines of logs.
  if (of === 0) return withoutWay(diagnosis);
  if (messages <= CUT_SHARE * of) return diagnosis;
  // Unread messages may hold anything.
  const reason = `the capture has only the beginning of ${messages} of ${of} messages (tcpdump -s 0 captures them whole)`;
  const lost = diagnosis.excluded.map((each) => ({ ...each, reason }));
  return { ...diagnosis, excluded: [], unknown: [...lost, ...diagnosis.unknown] };
}

/** Judges a running cluster. @param wanted which kinds are reported; all without it */
export function diagnoseCluster(
  facts: ClusterFacts,
  wanted: (kind: FindingKind) => boolean = () => true,
): Diagnosis {
  return diagnosisOf(
    findingKinds.flatMap((kind) =>
      kind.inCluster === undefined || !wanted(kind) ? [] : [[kind, kind.inCluster(facts)] as const],
    ),
    { affected: [] },
  );
}

/** A log of errors excludes nothing that it does not name. */
function ofErrorsAlone<T extends Diagnosis>(diagnosis: T): T {
  const reason =
    'the log has no queries: take a capture, or a log with queries (plugin log in the Corefile)';
  return { ...diagnosis, excluded: [], unknown: [{ code: '', name: 'anything else', reason }] };
}

/**
 * Losses on the way to a server or back (ND3…), a packet limit, EDNS on the way, an overloaded
 * server.
 */
const ON_THE_WAY = /^ND(?:3\d{3}|4001|4009|7001)$/;

/** A log has what its server answered: what it cannot show is not excluded by it. */
function withoutWay<T extends Diagnosis>(diagnosis: T): T {
  const reason = 'a log shows only answered queries: take a capture';
  const isSeen = ({ code }: NotFound): boolean => !ON_THE_WAY.test(code);
  const unseen = diagnosis.excluded.filter((each) => !isSeen(each));
  return {
    ...diagnosis,
    excluded: diagnosis.excluded.filter(isSeen),
    unknown: [...unseen.map((each) => ({ ...each, reason })), ...diagnosis.unknown],
  };
}

/** Sums up verdicts, in their order. @param common parts that findings have unless they say otherwise */
function diagnosisOf(
  verdicts: readonly (readonly [FindingKind, Verdict | readonly FoundCause[]])[],
  common: Partial<FoundCause> = {},
): Diagnosis {
  const findings: Finding[] = [];
  const excluded: NotFound[] = [];
  const unknown: NotFound[] = [];
  for (const [kind, verdict] of verdicts) {
    const { code, name } = kind;
    if ('not' in verdict)
      (verdict.not === 'excluded' ? excluded : unknown).push({
        code,
        name,
        reason: verdict.reason,
      });
    else
      for (const found of [verdict].flat()) findings.push(findingOf(kind, { ...common, ...found }));
  }
  // Two kinds may show one cause in two ways.
  const codes = new Set(findings.map(({ code }) => code));
  const lacks = ({ code }: NotFound): boolean => !codes.has(code);
  // If one kind cannot tell, the other does not rule the cause out; it is listed once.
  const open = onceByCode(unknown.filter(lacks));
  const unseen = new Set(open.map(({ code }) => code));
  return {
    findings: ranked(findings),
    excluded: onceByCode(excluded.filter((each) => lacks(each) && !unseen.has(each.code))),
    unknown: open,
  };
}

function onceByCode(list: readonly NotFound[]): readonly NotFound[] {
  return [...new Map(list.toReversed().map((each) => [each.code, each])).values()].toReversed();
}

/**
 * Merges two diagnoses of the same: a finding of both is one finding, and a finding of one is not
 * ruled out by the other.
 */
export function mergedDiagnosis(one: Diagnosis, other: Diagnosis): Diagnosis {
  const found = new Map(one.findings.map((finding) => [keyOf(finding), finding]));
  for (const finding of other.findings) {
    const known = found.get(keyOf(finding));
    found.set(keyOf(finding), known === undefined ? finding : both(known, finding));
  }
  const codes = new Set([...found.values()].map(({ code }) => code));
  const excluded = [...one.excluded, ...other.excluded].filter(({ code }) => !codes.has(code));
  const settled = new Set([...codes, ...excluded.map(({ code }) => code)]);
  const unknown = [...one.unknown, ...other.unknown].filter(({ code }) => !settled.has(code));
  return {
    findings: ranked([...found.values()]),
    excluded: onceByCode(excluded),
    unknown: onceByCode(unknown),
  };
}

/** Findings of one cause are the same if they are about the same. */
function keyOf({ code, subject = '' }: Finding): string {
  return `${code} ${subject}`;
}

/** Seen in two ways it is surer than in either. */
function both(one: Finding, other: Finding): Finding {
  const [first, second] =
    grades[other.severity] > grades[one.severity] ? [other, one] : [one, other];
  return {
    ...first,
    confidence: Math.min(0.99, 1 - (1 - one.confidence) * (1 - other.confidence)),
    seen: [...first.seen, ...second.seen],
    exchanges: [...first.exchanges, ...second.exchanges],
    affected: [...new Set([...(first.affected ?? []), ...(second.affected ?? [])])],
    places: [...new Set([...(first.places ?? []), ...(second.places ?? [])])],
  };
}

/** The gravest first. Of equal weight the one that is surer, then the one that explains more. */
function ranked(all: readonly Finding[]): readonly Finding[] {
  const codes = new Set(all.map(({ code }) => code));
  const isTrigger = ({ triggers = [] }: Finding): boolean =>
    triggers.some((code) => codes.has(code));
  const findings = all.map((each) =>
    isTrigger(each) && each.severity === 'critical'
      ? { ...each, severity: 'warning' as const }
      : each,
  );
  const sorted = findings.toSorted(
    (one, other) => grades[other.severity] - grades[one.severity] || weight(other) - weight(one),
  );
  for (const finding of sorted.filter(({ hits }) => hits !== undefined)) {
    const hitsMore = ({ severity, hits, exchanges }: Finding): boolean =>
      severity === finding.severity && (hits ?? exchanges.length) >= MANY_MORE_HITS * finding.hits!;
    const at = sorted.indexOf(finding);
    const last = sorted.findLastIndex(hitsMore);
    if (last > at) {
      sorted.splice(at, 1);
      sorted.splice(last, 0, finding);
    }
  }
  for (const finding of sorted.filter(({ triggers, after }) => (triggers ?? after) !== undefined)) {
    const codesBefore = new Set([...(finding.triggers ?? []), ...(finding.after ?? [])]);
    const at = sorted.indexOf(finding);
    const last = sorted.findLastIndex(
      ({ code, severity }) => codesBefore.has(code) && grades[severity] >= grades[finding.severity],
    );
    if (last < at) continue;
    sorted.splice(at, 1);
    sorted.splice(last, 0, finding);
  }
  return sorted;
}

/**
 * The confidence of a finding; of equal ones, those about more exchanges first. Findings that are
 * only counted come last.
 */
function weight({ confidence, exchanges, affected }: Finding): number {
  if (exchanges.length === 0 && affected === undefined) return confidence - 0.5;
  return confidence + Math.min(0.15, Math.log10(1 + exchanges.length) * 0.05);
}
