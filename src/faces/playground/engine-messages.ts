/** Messages between the page and its engine workers. */
import type { DiffInput, DiffResult } from './engines/diff-engine.ts';
import type { DoctorInput, DoctorResult } from './engines/doctor-engine.ts';
import type { LintInput, LintResult } from './engines/lint-engine.ts';
import type { TraceInput, TraceResult } from './engines/trace-engine.ts';

/** Input and result types for each engine. All values are plain data. */
export interface Engines {
  readonly trace: { readonly input: TraceInput; readonly result: TraceResult };
  readonly lint: { readonly input: LintInput; readonly result: LintResult };
  readonly diff: { readonly input: DiffInput; readonly result: DiffResult };
  readonly doctor: { readonly input: DoctorInput; readonly result: DoctorResult };
}

export type EngineName = keyof Engines;

/** An error in the input, for people. */
export interface ShownProblem {
  readonly code: string;
  readonly text: string;
  /** `Corefile:3:5`; null: none. */
  readonly place: string | null;
  readonly hint: string | null;
  readonly remedy: string | null;
}

/** Sent by the page to run an engine. */
export interface EngineRequest<N extends EngineName = EngineName> {
  readonly id: number;
  readonly engine: N;
  readonly input: Engines[N]['input'];
}

export type EngineReply<N extends EngineName = EngineName> =
  | { readonly id: number; readonly kind: 'result'; readonly result: Engines[N]['result'] }
  | { readonly id: number; readonly kind: 'problems'; readonly problems: readonly ShownProblem[] }
  | { readonly id: number; readonly kind: 'progress'; readonly text: string };
