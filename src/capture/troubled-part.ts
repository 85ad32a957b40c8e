/**
 * The part of a capture in which queries are lost. Rules weigh all that was seen, so a good time before hides what is plain afterwards: where
 * they see no more than loss, that part is looked at by itself.
 */
import { mergedDiagnosis, type Diagnosis } from './diagnosis.ts';
import type { Observations } from './evidence/observations.ts';
import { clock } from './findings/finding.ts';

/** A stretch of time, milliseconds since 1970. */
export interface Part {
  readonly fromMs: number;
  readonly toMs: number;
}

/** What is said where queries are lost and nothing tells why. */
const vague: ReadonlySet<string> = new Set(['ND3013', 'ND3090']);
/** Fewer losses show no pattern. */
const LOSSES_MIN = 10;
/** So many of the losses, at both ends, may be others. */
const OTHERS = 0.05;
/** A time without losses before, and after: queries of the last seconds may still be answered. */
const BEFORE_MS = 3000;
const AFTER_MS = 10_000;

/** The part that is worth a look of its own; null: there is none, or all is said. */
export function troubledPart({ findings }: Diagnosis, observed: Observations): Part | null {
  const [first] = findings;
  if (first === undefined || !vague.has(first.code)) return null;
  const times = observed.losses.map(({ sentMs }) => sentMs).toSorted((a, b) => a - b);
  if (times.length < LOSSES_MIN) return null;
  const others = Math.floor(OTHERS * times.length);
  const [fromMs, toMs] = [times[others]!, times.at(-1 - others)!];
  const isPart = fromMs - observed.firstMs >= BEFORE_MS || observed.lastMs - toMs >= AFTER_MS;
  return isPart ? { fromMs, toMs } : null;
}

/** What the whole and its part come to: what the part shows plainly takes the place of loss without a pattern. */
export function withPart(whole: Diagnosis, ofPart: Diagnosis, { fromMs, toMs }: Part): Diagnosis {
  const [first] = ofPart.findings;
  if (first === undefined || vague.has(first.code) || first.severity !== 'critical') return whole;
  const when = `From ${clock(fromMs)} to ${clock(toMs)}, looked at by itself:`;
  const found = new Set(ofPart.findings.map(({ code }) => code));
  return mergedDiagnosis(
    {
      ...ofPart,
      findings: ofPart.findings
        .filter(({ code }) => !vague.has(code))
        .map((finding) => ({ ...finding, seen: [when, ...finding.seen] })),
    },
    {
      ...whole,
      findings: whole.findings.filter(({ code }) => !vague.has(code) && !found.has(code)),
    },
  );
}
