/**
 * The parts of a capture with unexplained losses or failures. Findings weigh the whole capture, so
 * successes at other times or at other clients may hide a cause: such a part is examined
 * separately.
 */
import { diagnose, mergedDiagnosis, type Diagnosis } from './diagnosis.ts';
import { densestStretch } from './observe/densest-stretch.ts';
import type { Moment, Observations } from './observe/observations.ts';
import { type Finding, type FindingKind } from './findings/finding.ts';
import { capitalised, fromTo, listed } from './texts.ts';
import { sentSpan } from '../capture/pair/seen-exchange.ts';
import { MIN_QUERIES, NEARLY_ALL } from './thresholds/evidence.ts';
import {
  AFTER_PART_MS,
  BEFORE_PART_MS,
  FEW_CLIENTS_SHARE,
  MIN_PART_CASES,
  MIN_PART_LOSSES,
  MIN_PART_MS,
  PART_EXPLAINS,
  PART_NEEDLESS,
  PART_LASTS_MS,
  PART_SURE,
} from './thresholds/lateness.ts';

/** A stretch of time, milliseconds since 1970, of all clients or of some. */
export interface Part {
  readonly fromMs: number;
  readonly toMs: number;
  /** Null: all. */
  readonly clients: ReadonlySet<string> | null;
}

export const everything: Part = { fromMs: -Infinity, toMs: Infinity, clients: null };

interface Symptom {
  /** Those that went wrong, and of which nothing tells why. */
  bad(whole: Diagnosis): readonly Moment[];
  /** Codes of findings without a cause: a finding with a cause replaces them. */
  readonly vague: ReadonlySet<string>;
  /** True if the finding is worth reporting for a part. */
  isTold(finding: Finding): boolean;
  /** True if replies were late but not lost. */
  readonly isLate?: boolean;
}

/** Findings about a server at all times, which a part does not show, because a server may retry outside it. */
const never: ReadonlySet<string> = new Set(['ND3005', 'ND3006', 'ND3018', 'ND4007']);
/** Findings about a server, which some of its clients cannot show. */
const ofServers: ReadonlySet<string> = new Set([
  ...['ND3007', 'ND7001', 'ND4003', 'ND5001', 'ND2002', 'ND2012'],
]);
const ofFailures: ReadonlySet<string> = new Set([
  ...['ND2003', 'ND3019', 'ND4004', 'ND4007', 'ND4038', 'ND4055', 'ND5001', 'ND8002'],
  ...['ND4031', 'ND4032', 'ND4035', 'ND4036', 'ND4037', 'ND4056', 'ND4057', 'ND4058', 'ND4059'],
]);
const ofLateness: ReadonlySet<string> = new Set([
  ...['ND4003', 'ND7001', 'ND4004', 'ND4002', 'ND4038'],
]);

/** Errors, without their cause. */
const errors: ReadonlySet<string> = new Set(['ND4002', 'ND4010']);
/** Refusals. If their rule is known, the finding has a high confidence, and a part would show less. */
const REFUSED = 'ND4010';
/** Very many different names, which may exceed a limit for a time. */
const LOAD = 'ND2018';
/** Loss without a pattern. */
const RANDOM = 'ND3013';
/** A server that stopped answers late when it continues. */
const STOPPED = 'ND3007';
/**
 * Causes that delay replies: a server that stopped, a slow path (which delays every reply), and
 * something that servers wait for.
 */
const explainLateness: ReadonlySet<string> = new Set([STOPPED, 'ND3026', 'ND3045', 'ND4055']);
/** A limit on packets: the rest of a burst is lost, so that the server seems to stop. */
const LIMITED = 'ND4001';
/** An upstream that loses queries, as a limit does. */
const LOSSY = 'ND3061';

const symptoms: readonly Symptom[] = [
  {
    bad: ({ unexplained }) => unexplained ?? [],
    vague: new Set(['ND3013', 'ND3090']),
    isTold: ({ severity }) => severity === 'critical',
  },
  {
    bad: ({ findings, failed }) =>
      findings.some(
        ({ code, confidence }) =>
          ofFailures.has(code) || (code === REFUSED && confidence >= PART_NEEDLESS),
      )
        ? []
        : (failed ?? []),
    vague: errors,
    isTold: ({ severity }) => severity === 'critical',
  },
  {
    bad: ({ findings, late }) =>
      findings.some(({ code }) => ofLateness.has(code) || explainLateness.has(code))
        ? []
        : (late ?? []),
    vague: new Set(),
    isTold: ({ code }) => ofLateness.has(code),
    isLate: true,
  },
];

/** True if the part includes a client at a time. */
export function holds(part: Part, timeMs: number, client: string): boolean {
  return holdsTime(part, timeMs) && (part.clients === null || part.clients.has(client));
}

export function holdsTime({ fromMs, toMs }: Part, timeMs: number): boolean {
  return timeMs >= fromMs && timeMs <= toMs;
}

/**
 * Diagnoses the whole, and the parts that deserve it. @param again reads parts of the same capture;
 * null: it cannot be read again
 */
export async function diagnoseWithParts(
  observed: Observations,
  again: ((parts: readonly Part[]) => Promise<readonly Observations[]>) | null,
  wanted?: (kind: FindingKind) => boolean,
): Promise<Diagnosis> {
  const whole = diagnose(observed, wanted);
  const parts = symptoms.flatMap((symptom) =>
    partsOf(symptom.bad(whole), observed).map((part) => ({ symptom, part })),
  );
  if (again === null || parts.length === 0) return whole;
  const looks = await again(parts.map(({ part }) => part));
  let all = whole;
  const settled = new Set<Symptom>();
  const loads: { readonly ofPart: Diagnosis; readonly part: Part; readonly load: Finding }[] = [];
  for (const [at, { symptom, part }] of parts.entries()) {
    if (settled.has(symptom) || looks[at]!.total.asked < MIN_QUERIES) continue;
    takeSizes(looks[at]!, observed);
    looks[at]!.connections.know(observed.connections);
    const ofPart = diagnose(looks[at]!, wanted);
    const load = ofPart.findings.find(({ code }) => code === LOAD);
    if (load !== undefined) loads.push({ ofPart, part, load });
    const found = withPart(all, ofPart, part, symptom, looks[at]!);
    if (found === null) continue;
    all = found;
    settled.add(symptom);
  }
  // The load that a part shows may be the trigger, although it is not a fault.
  const [first] = loads;
  if (first === undefined || all.findings.some(({ code }) => code === LOAD)) return all;
  return told(all, [first.load], first.ofPart, first.part, new Set());
}

/** The size of a name's answers is known from other times, too. */
function takeSizes(part: Observations, { names }: Observations): void {
  for (const view of part.names.list)
    view.knowLength(names.get(view.name, view.type)?.longest ?? 0);
}

/**
 * The stretch of time in which these are dense, and the few clients that they belong to. Empty:
 * they are everywhere.
 */
function partsOf(bad: readonly Moment[], observed: Observations): readonly Part[] {
  if (bad.length < MIN_PART_CASES) return [];
  const stretch = stretchOf(bad, observed);
  const span = spanOf(bad, observed);
  const within = stretch === null ? bad : bad.filter(({ sentMs }) => holdsTime(stretch, sentMs));
  const clients = fewOf(within, observed);
  const { fromMs, toMs } = stretch ?? everything;
  return [
    ...(stretch === null ? [] : [stretch]),
    ...(span === null || isNearly(span, stretch) ? [] : [span]),
    ...(clients === null ? [] : [{ fromMs, toMs, clients }]),
  ];
}

/** Replaces findings without a cause by the cause that the part shows. Null: it shows none. */
function withPart(
  whole: Diagnosis,
  ofPart: Diagnosis,
  part: Part,
  { isTold, vague, isLate = false }: Symptom,
  { losses }: Observations,
): Diagnosis | null {
  const known = new Set(whole.findings.map(({ code }) => code));
  // The whole shows the reason for these losses.
  if (known.has(LIMITED) && ofPart.findings.some(({ code }) => code === LOSSY)) return null;
  const findings = ofPart.findings.filter(
    (finding) =>
      isTold(finding) &&
      (finding.confidence >= PART_SURE || vague.has(finding.code)) &&
      !never.has(finding.code) &&
      !(finding.code === STOPPED && known.has(LIMITED)) &&
      !(known.has(finding.code) && vague.has(finding.code)) &&
      !(part.clients !== null && ofServers.has(finding.code)),
  );
  const [first] = findings;
  if (first === undefined) return null;
  // That there is no pattern is worth saying only where nothing was said.
  if (vague.has(first.code))
    return losses.length >= MIN_PART_LOSSES &&
      part.toMs - part.fromMs >= PART_LASTS_MS &&
      part.clients === null
      ? told(whole, findings.slice(0, 1), ofPart, part, vague)
      : null;
  const open = (ofPart.unexplained ?? []).length;
  if (open > (1 - PART_EXPLAINS) * losses.length) return null;
  // Losses that the part explains are not losses without a pattern of the whole.
  const isLossExplained = losses.length - open >= PART_EXPLAINS * (whole.unexplained ?? []).length;
  // Errors that the part reports as well are not explained by its other findings.
  const kept = new Set(ofPart.findings.flatMap(({ code }) => (errors.has(code) ? code : [])));
  const replaced = new Set(
    [...vague, ...(isLossExplained ? [RANDOM] : [])].filter((code) => !kept.has(code)),
  );
  // Programs that waited for a moment continued.
  const isMoment = isLate && part.toMs - part.fromMs < PART_LASTS_MS;
  const weighed = isMoment ? findings.map(ofMoment) : findings;
  return told(whole, weighed, ofPart, part, replaced);
}

/** The finding as a warning, which comes after others that hit more. */
function ofMoment(finding: Finding): Finding {
  const { severity, hits = finding.exchanges.length } = finding;
  return { ...finding, severity: severity === 'critical' ? 'warning' : severity, hits };
}

function told(
  whole: Diagnosis,
  findings: readonly Finding[],
  ofPart: Diagnosis,
  part: Part,
  vague: ReadonlySet<string>,
): Diagnosis {
  const stretch = capitalised(fromTo(part.fromMs, part.toMs, 'fine'));
  const queries = part.clients === null ? '' : `queries of ${listed([...part.clients])}`;
  const where = Number.isFinite(part.fromMs)
    ? [stretch, queries].filter((text) => text !== '').join(', ')
    : capitalised(queries);
  const found = new Set(findings.map(({ code }) => code));
  return mergedDiagnosis(
    {
      ...ofPart,
      findings: findings.map(
        (finding) =>
          sameIn(whole, finding) ?? {
            ...finding,
            seen: [`${where}, examined separately:`, ...finding.seen],
          },
      ),
    },
    {
      ...whole,
      findings: whole.findings.filter(({ code }) => !vague.has(code) && !found.has(code)),
    },
  );
}

/** The whole shows it as surely, and shows more servers and clients; undefined: it does not. */
function sameIn(
  { findings }: Diagnosis,
  { code, severity, confidence }: Finding,
): Finding | undefined {
  return findings.find(
    (each) => each.code === code && each.severity === severity && each.confidence >= confidence,
  );
}

/** The time in which these are dense; null: they are so all the time. */
function stretchOf(bad: readonly Moment[], observed: Observations): Part | null {
  const stretch = densestStretch(
    bad.map(({ sentMs }) => sentMs),
    observed.servers.list.map(({ history }) => history),
  );
  return stretch === null ? null : partBetween(stretch, observed);
}

/**
 * From the first to the last of these: success before and after shows nothing about them; null:
 * that is nearly everything.
 */
function spanOf(bad: readonly Moment[], observed: Observations): Part | null {
  return partBetween(sentSpan(bad), observed);
}

function partBetween(
  { fromMs, toMs }: Pick<Part, 'fromMs' | 'toMs'>,
  { firstMs, lastMs }: Observations,
): Part | null {
  const isPart = fromMs - firstMs >= BEFORE_PART_MS || lastMs - toMs >= AFTER_PART_MS;
  const aroundMs = Math.max(0, (MIN_PART_MS - (toMs - fromMs)) / 2);
  return isPart ? { fromMs: fromMs - aroundMs, toMs: toMs + aroundMs, clients: null } : null;
}

function isNearly(one: Part, other: Part | null): boolean {
  return (
    other !== null &&
    Math.abs(one.fromMs - other.fromMs) + Math.abs(one.toMs - other.toMs) < BEFORE_PART_MS
  );
}

/**
 * The few clients that (nearly) all of these are of; null: they are of many, or of some of which it
 * is not known how much they ask.
 */
function fewOf(bad: readonly Moment[], { clients }: Observations): ReadonlySet<string> | null {
  const counts = new Map<string, number>();
  for (const { client } of bad) counts.set(client.address, (counts.get(client.address) ?? 0) + 1);
  const few = new Set<string>();
  let theirs = 0;
  let asked = 0;
  for (const [address, count] of [...counts].toSorted(([, one], [, other]) => other - one)) {
    if (theirs >= NEARLY_ALL * bad.length) break;
    const view = clients.get(address);
    if (view === undefined) return null;
    few.add(address);
    theirs += count;
    asked += view.outcomes.asked;
  }
  const all = clients.list.reduce((sum, { outcomes }) => sum + outcomes.asked, 0);
  return few.size < clients.size && asked <= FEW_CLIENTS_SHARE * all ? few : null;
}
