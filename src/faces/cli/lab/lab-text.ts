/** Prints stories as text, with packets in order, expected and observed facts, and a verdict. */
import { appendTo } from '../../../server/base/append-to.ts';
import { printElapsed } from '../../../server/base/elapsed.ts';
import { visible } from '../../../server/base/visible.ts';
import type { PacketRow } from '../../../tools/lab/capture.ts';
import { isAsTold, type Act, type Fact, type StoryOutcome } from '../../../tools/lab/story.ts';
import { clip, type Page, pageFor, wrap } from '../page.ts';

/** Longer packet lists are replaced by their length. */
const PACKETS_MAX = 40;

/** Limits on the number of values compared and on the length of a bar. */
const COMPARED_MAX = 3;
const BAR = 24;
/** On narrower terminals, titles are omitted. */
const TITLE_MIN = 12;

export function labText(
  outcomes: readonly StoryOutcome[],
  { colour, columns }: { readonly colour: boolean; readonly columns: number },
): string {
  const page = pageFor({ colour, columns, wide: false });
  const packets = outcomes.some(({ how }) => how === 'real')
    ? ', --pcap story.pcapng saves the packets'
    : '';
  const hint = `-o html > story.html creates a page from this${packets}`;
  return `${outcomes.map((outcome) => outcomeText(outcome, page)).join('\n')}${wrap(hint, '', page).map(page.paint.dim).join('\n')}\n`;
}

function outcomeText(outcome: StoryOutcome, page: Page): string {
  const { story, how, server, acts, tookMs } = outcome;
  const { paint } = page;
  const played =
    how === 'real' ? `played in namespaces, ${server} answers` : 'a model, in virtual time';
  const lines = [
    ...wrap(
      `${paint.strong(visible(story.name))}  ${story.title === story.name ? '' : visible(story.title)}`.trimEnd(),
      '',
      page,
    ),
    ...wrap(`${visible(story.source)}; ${played}`, '', page).map(paint.dim),
    ...(story.preconditions.length > 0 || story.trigger !== '' ? [''] : []),
    ...story.preconditions.flatMap((text, index) =>
      wrap(visible(text), `  ${index === 0 ? 'given' : '     '}  `, page),
    ),
    ...(story.trigger === '' ? [] : wrap(visible(story.trigger), '   when  ', page)),
  ];
  for (const act of acts) lines.push('', ...actLines(act, page));
  lines.push(...comparison(acts, page));
  const facts = acts.flatMap((act) => act.facts);
  const held = facts.filter(({ holds }) => holds).length;
  const verdict = isAsTold(outcome)
    ? paint.good(`✓ as documented: ${held} of ${facts.length} facts hold`)
    : paint.bad(`✗ not as documented: ${facts.length - held} of ${facts.length} facts do not hold`);
  lines.push('', `${verdict}  ${paint.dim(printElapsed(tookMs))}`, '');
  return lines.join('\n');
}

function actLines(act: Act, page: Page): readonly string[] {
  const { paint } = page;
  const kind = act.kind === 'flaw' ? paint.bad('with the flaw') : paint.good('with the cure');
  const lines = [
    ...wrap(`${kind}: ${visible(act.title)}`, '', page),
    paint.dim(`  $ ${visible(act.command)}`),
  ];
  const shown = act.packets.slice(0, PACKETS_MAX);
  for (const row of shown) lines.push(...packetLines(row, page));
  if (act.packets.length > shown.length) {
    lines.push(paint.dim(`  … and ${act.packets.length - shown.length} more packets`));
  }
  return [...lines, ...act.facts.flatMap((fact) => factLines(fact, page))];
}

function packetLines({ atMs, from, to, text, isOut }: PacketRow, page: Page): readonly string[] {
  const { paint, narrow } = page;
  const at = printElapsed(atMs).padStart(10);
  const ends = narrow ? '' : `${isOut ? from : to} ${isOut ? '→' : '←'} `.padStart(24);
  const lines = wrap(text, `${at}  ${ends}${isOut ? '' : '  '}`, page);
  return isOut ? lines : lines.map(paint.dim);
}

function factLines({ what, expected, holds, ...fact }: Fact, page: Page): readonly string[] {
  const { paint } = page;
  const found = visible(fact.found);
  const wanted = expected === fact.found ? '' : paint.dim(` (${visible(expected)})`);
  const text = `${visible(what)}: ${holds ? found : paint.bad(found)}${wanted}`;
  const mark = `  ${holds ? paint.good('✓') : paint.bad('✗')} `;
  return text.split('\n').flatMap((line, at) => wrap(line, at === 0 ? mark : '    ', page));
}

/** A number observed in an act. */
interface Measure {
  readonly kind: Act['kind'];
  readonly title: string;
  readonly found: string;
  readonly value: number;
}

/** Compares the numbers that differ between the fault and its fixes. Each act is a row with a bar. */
function comparison(acts: readonly Act[], { paint, columns }: Page): readonly string[] {
  const measures = new Map<string, Measure[]>();
  for (const { kind, title, facts } of acts)
    for (const { what, found } of facts) {
      const [, number] = /^(\d+(?:\.\d+)?)(?: ?[a-zµ%]+)?$/.exec(found) ?? [];
      if (number === undefined) continue;
      appendTo(measures, what, { kind, title, found, value: Number(number) });
    }
  const told = [...measures]
    .filter(([, rows]) => rows.length === acts.length)
    .filter(([, rows]) => new Set(rows.map(({ value }) => value)).size > 1)
    .slice(0, COMPARED_MAX);
  const names = Math.max(...told.map(([what]) => what.length));
  const numbers = Math.max(...told.flatMap(([, rows]) => rows.map(({ found }) => found.length)));
  const left = columns - names - numbers - 6;
  const longest = Math.max(0, Math.min(BAR, left));
  const room = left - longest - 2;
  return told.flatMap(([what, rows]) => {
    const most = Math.max(...rows.map(({ value }) => value));
    return [
      '',
      ...rows.map(({ kind, title, found, value }, index) => {
        const head = `  ${(index === 0 ? visible(what) : '').padEnd(names)}  ${found.padStart(numbers)}  `;
        const bar = '█'.repeat(Math.ceil((value / most) * longest)).padEnd(longest);
        // The full title was already printed.
        const shown = room < TITLE_MIN ? '' : clip(visible(title), room);
        return `${head}${kind === 'flaw' ? paint.bad(bar) : paint.good(bar)}  ${shown}`.trimEnd();
      }),
    ];
  });
}
