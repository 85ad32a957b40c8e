/** The lint engine: lints a Corefile like `ndots lint`, and works out its plugin chains. */
import { lint } from '../../../tools/lint/lint.ts';
import type { LintFinding } from '../../../tools/lint/finding.ts';
import { lintedPlugins } from '../../cli/lint/linted-plugins.ts';
import { lintRules } from '../../cli/lint/lint-rules.ts';
import { lintDocument, type LintDocument } from '../../cli/lint/lint-document.ts';
import type { Directive } from '../../../server/corefile/corefile-tree.ts';
import { loadPlugins, order } from '../../../server/plugins/order.ts';
import type { LintedCorefile } from '../../../tools/lint/subject.ts';

export interface LintInput {
  readonly corefile: string;
}

/** A plugin in a chain, in query order. */
export interface ChainLink {
  readonly plugin: string;
  readonly args: readonly string[];
  readonly line: number;
  /** `beside` means that the plugin listens, reloads or configures something but never handles queries. */
  readonly role: 'link' | 'beside';
  /** Worst severity among the findings on its lines, or null if there are none. */
  readonly severity: LintFinding['severity'] | null;
}

export interface ShownBlock {
  readonly zones: readonly string[];
  readonly line: number;
  readonly chain: readonly ChainLink[];
}

/** The findings, along with each server block's chain. */
export interface LintResult {
  readonly document: LintDocument;
  readonly blocks: readonly ShownBlock[];
}

/** File name of the pasted text in findings. */
export const PASTED = 'Corefile';

/** Lints the text. Errors in the text become findings. */
export async function runLint({ corefile }: LintInput): Promise<LintResult> {
  const report = await lint({
    given: { files: [{ file: PASTED, text: corefile, named: true }], passed: [] },
    plugins: lintedPlugins,
    rules: lintRules.filter((rule) => !('ask' in rule)),
    known: lintRules,
    target: null,
  });
  const { corefiles } = report.subject;
  const used = corefiles.flatMap(({ tree }) =>
    tree.blocks.flatMap(({ directives }) => directives.map(({ name }) => name)),
  );
  const plugins = await loadPlugins(new Set(used));
  const links = new Set(
    plugins
      .filter(({ setup }) => setup !== undefined)
      .flatMap(({ name }) => [name, ...(order.find((each) => each.name === name)?.formerly ?? [])]),
  );
  const blocks = corefiles.flatMap((each) => blocksOf(each, report.findings, links));
  return { document: lintDocument(report), blocks };
}

const rank = { error: 0, warning: 1, note: 2 } as const;

function blocksOf(
  { tree }: LintedCorefile,
  findings: readonly LintFinding[],
  links: ReadonlySet<string>,
): ShownBlock[] {
  const places = new Map(
    order.flatMap(({ name, formerly }, at) => [name, ...formerly].map((one) => [one, at] as const)),
  );
  return tree.blocks.map(({ keys, directives, place }) => ({
    zones: keys.map(({ text }) => text),
    line: place.line,
    chain: directives
      .map((directive) => ({
        plugin: directive.name,
        args: directive.args.map(({ text }) => text),
        line: directive.at.place.line,
        role: links.has(directive.name) ? ('link' as const) : ('beside' as const),
        severity: worstOf(directive.at.place.line, lastLine(directive), findings),
      }))
      .toSorted((a, b) => (places.get(a.plugin) ?? -1) - (places.get(b.plugin) ?? -1)),
  }));
}

function lastLine({ at, args, block }: Pick<Directive, 'at' | 'args' | 'block'>): number {
  const lines = (block ?? []).map((each) =>
    lastLine({ at: each.name, args: each.args, block: each.block }),
  );
  return Math.max(at.place.line, ...args.map(({ place }) => place.line), ...lines);
}

function worstOf(
  from: number,
  to: number,
  findings: readonly LintFinding[],
): LintFinding['severity'] | null {
  const own = findings.filter(({ spot }) => spot.line >= from && spot.line <= to);
  return own.map(({ severity }) => severity).toSorted((a, b) => rank[a] - rank[b])[0] ?? null;
}
