/** Stories as text: packets one below the other, what was expected, what was seen, and a verdict. */
import { visible } from '../base/visible.ts';
import type { PacketRow } from '../lab/capture.ts';
import { isAsTold, type Act, type Fact, type Outcome } from '../lab/story.ts';
import { ms, pageFor, type Page } from './page.ts';

/** More packets than this are told by their number. */
const PACKETS_MAX = 40;

/** All of the outcomes, one after the other. */
export function labText(
  outcomes: readonly Outcome[],
  { colour, columns }: { readonly colour: boolean; readonly columns: number },
): string {
  const page = pageFor({ colour, columns, wide: false });
  return outcomes.map((outcome) => outcomeText(outcome, page)).join('\n');
}

function outcomeText(outcome: Outcome, page: Page): string {
  const { story, how, server, acts, tookMs } = outcome;
  const { paint } = page;
  const how2 =
    how === 'real' ? `played in namespaces, ${server} answers` : 'a model, in virtual time';
  const lines = [
    `${paint.strong(visible(story.name))}  ${visible(story.title)}`,
    paint.dim(`${visible(story.source)}; ${how2}`),
    '',
    ...story.preconditions.map(
      (text, index) => `  ${index === 0 ? 'given' : '     '}  ${visible(text)}`,
    ),
    `   when  ${visible(story.trigger)}`,
  ];
  for (const act of acts) lines.push('', ...actLines(act, page));
  const facts = acts.flatMap((act) => act.facts);
  const held = facts.filter(({ holds }) => holds).length;
  const verdict = isAsTold(outcome)
    ? paint.good(`✓ as told: ${held} of ${facts.length} facts hold`)
    : paint.bad(`✗ not as told: ${facts.length - held} of ${facts.length} facts do not hold`);
  lines.push('', `${verdict}  ${paint.dim(ms(tookMs))}`, '');
  return lines.join('\n');
}

function actLines(act: Act, page: Page): readonly string[] {
  const { paint } = page;
  const kind = act.kind === 'flaw' ? paint.bad('with the flaw') : paint.good('with the cure');
  const lines = [`${kind}: ${visible(act.title)}`, paint.dim(`  $ ${visible(act.command)}`)];
  const shown = act.packets.slice(0, PACKETS_MAX);
  for (const row of shown) lines.push(packetLine(row, page));
  if (act.packets.length > shown.length) {
    lines.push(paint.dim(`  … and ${act.packets.length - shown.length} packets more`));
  }
  return [...lines, ...act.facts.map((fact) => factLine(fact, page))];
}

function packetLine(
  { atMs, from, to, text, isOut }: PacketRow,
  { paint, columns, narrow }: Page,
): string {
  const at = ms(atMs).padStart(10);
  const ends = narrow ? '' : `${isOut ? from : to} ${isOut ? '→' : '←'} `.padStart(24);
  const plain = `${at}  ${ends}${isOut ? '' : '  '}${text}`;
  const cut = plain.length > columns ? `${plain.slice(0, columns - 1)}…` : plain;
  return isOut ? cut : paint.dim(cut);
}

function factLine({ what, expected, holds, ...fact }: Fact, { paint }: Page): string {
  const found = visible(fact.found);
  const wanted = expected === fact.found ? '' : paint.dim(` (${visible(expected)})`);
  return `  ${holds ? paint.good('✓') : paint.bad('✗')} ${visible(what)}: ${holds ? found : paint.bad(found)}${wanted}`;
}
