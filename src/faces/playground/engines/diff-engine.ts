/** The diff engine: serves two Corefiles in this worker and compares their replies. */
import { Problems } from '../../../server/base/problem.ts';
import { typeNumber } from '../../../server/wire/iana.ts';
import { loadPlugins } from '../../../server/plugins/order.ts';
import { compareCorefiles } from '../../../tools/diff/both-sides.ts';
import type { DifferenceKind } from '../../../tools/diff/compare.ts';
import {
  moments,
  outcomeLines,
  questionText,
  comparisonDocument,
} from '../../cli/diff/diff-text.ts';
import { parseStartedCorefile } from '../../cli/parse-corefile.ts';
import type { Progress } from './progress.ts';
import { EXAMPLE_CLUSTER } from '../example-cluster.ts';

export interface DiffInput {
  readonly before: string;
  readonly after: string;
  readonly names?: readonly { readonly name: string; readonly type: string }[];
}

/** A line in an outcome. Nested lines are records. */
export interface OutcomeLine {
  readonly text: string;
  readonly inner: boolean;
}

/** Questions that changed in the same way. */
export interface ShownChange {
  readonly kind: DifferenceKind;
  /** The simplest query, with a time if it is a repetition. */
  readonly question: string;
  readonly moment: string;
  readonly count: number;
  readonly others: readonly string[];
  readonly before: readonly OutcomeLine[];
  readonly after: readonly OutcomeLine[];
}

/** The differences, for the page and as a document. */
export interface DiffResult {
  readonly questions: number;
  readonly same: number;
  readonly left: readonly string[];
  readonly changes: readonly ShownChange[];
  /** The document that `ndots diff -o json` prints. */
  readonly document: object;
  /** Notes about empty Corefiles. */
  readonly notes: readonly string[];
}

/** File names of the pasted texts in messages. */
const NAMES = { before: 'Corefile', after: 'Corefile.new' };

/** Maximum number of questions between progress messages. */
const PROGRESS_STEP = 25;

/** @throws Problems if either cannot be served */
export async function runDiff(
  { before, after, names = [] }: DiffInput,
  progress: Progress,
): Promise<DiffResult> {
  const notes: string[] = [];
  const side = (file: string, text: string) => ({ file, directory: '/', text });
  const found = await compareCorefiles(
    side(NAMES.before, before),
    side(NAMES.after, after),
    {
      manifests: EXAMPLE_CLUSTER,
      names: names.flatMap(({ name, type }) => {
        const number = typeNumber(type);
        return number === null ? [] : [{ name, types: [number] }];
      }),
      env: {},
      plugins: loadPlugins,
      parse: parseStartedCorefile,
      told: (warning) => notes.push(warning.print()),
    },
    (at, of) => {
      if (at % PROGRESS_STEP === 0) progress(`question ${at} of ${of}`);
    },
  );
  if (found instanceof Problems) throw found;
  const { questions, same, left, classes } = found;
  return {
    ...{ questions, same, left, notes },
    document: comparisonDocument(found, NAMES),
    changes: classes.map(({ kind, witness, count, names }) => ({
      kind,
      question: questionText(witness.question),
      moment: moments[witness.moment],
      count,
      others: names.filter((name) => name !== witness.question.name),
      before: outcomeLines(witness.before, witness.after),
      after: outcomeLines(witness.after, witness.before),
    })),
  };
}
