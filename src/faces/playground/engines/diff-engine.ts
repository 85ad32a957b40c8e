/** The diff engine: two Corefiles, both served in this worker, and the answers that differ. */
import { Problems } from '../../../server/base/problem.ts';
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

/** The two texts. */
export interface DiffInput {
  readonly before: string;
  readonly after: string;
}

/** A line of an outcome; inner ones are records. */
export interface OutcomeLine {
  readonly text: string;
  readonly inner: boolean;
}

/** Questions with the same change. */
export interface ShownChange {
  readonly kind: DifferenceKind;
  /** The simplest query, and its time if it is a repeat. */
  readonly question: string;
  readonly moment: string;
  readonly count: number;
  /** Further names. */
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
  /** As `ndots diff -o json` prints it. */
  readonly document: object;
  /** Remarks about empty Corefiles. */
  readonly notes: readonly string[];
}

/** The names of the pasted texts in messages. */
const NAMES = { before: 'Corefile', after: 'Corefile.new' };

/** The most questions between two messages about progress. */
const PROGRESS_STEP = 25;

/** Serves both and compares them. @throws Problems of either that cannot be served */
export async function runDiff(
  { before, after }: DiffInput,
  progress: Progress,
): Promise<DiffResult> {
  const notes: string[] = [];
  const side = (file: string, text: string) => ({ file, folder: '/', text });
  const found = await compareCorefiles(
    side(NAMES.before, before),
    side(NAMES.after, after),
    {
      manifests: EXAMPLE_CLUSTER,
      names: [],
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
