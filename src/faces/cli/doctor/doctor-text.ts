/** Prints a diagnosis as text. Each finding comes with its evidence, affected clients, cause, fix and proof. */
import type { Diagnosis, NotFound } from '../../../tools/doctor/diagnosis.ts';
import type { Finding } from '../../../tools/doctor/findings/finding.ts';
import type { Who } from '../../../tools/doctor/report/who.ts';
import { printShare } from '../live/figures.ts';
import { count } from '../../../server/base/counted.ts';
import { wrap, type Page } from '../page.ts';

const marks: Readonly<Record<Finding['severity'], string>> = {
  critical: '✕',
  warning: '!',
  info: '·',
};
const FRAMES = 6;
/** A space at which no line ends (U+00A0). */
const UNBROKEN = '\u00A0';
/** Limit of listed pods and places. */
const PLACES = 5;

/**
 * @param who affected clients of a finding
 * @param hide replaces names and addresses if redaction was requested
 * @param well is printed if nothing critical was found
 * @param isLong true to list causes without a finding, false to count them
 * @param isSelected true to print informational findings in full, because --only selects findings
 */
export function diagnosisText(
  { findings, excluded, unknown }: Diagnosis,
  who: (finding: Finding) => Who,
  page: Page,
  hide: (text: string) => string,
  well: string,
  isLong: boolean,
  isSelected: boolean,
): string {
  const { paint } = page;
  const isCritical = findings.some(({ severity }) => severity === 'critical');
  const lines = isCritical ? [] : [...wrap(`${paint.good('✓')} ${well}`, '', page), ''];
  for (const finding of findings) {
    const { severity, code, title, confidence } = finding;
    const shade =
      severity === 'critical' ? paint.bad : severity === 'warning' ? paint.warn : paint.dim;
    const sure = paint.dim(
      `confidence ${Math.round(confidence * 100)} %`.replaceAll(' ', UNBROKEN),
    );
    const head = wrap(
      `${paint.strong(title)}  ${sure}`,
      `${shade(marks[severity])} ${shade(code)}  `,
      page,
    );
    lines.push(...head.map((line) => line.trimEnd().replaceAll(UNBROKEN, ' ')));
    const part = (word: string, text: string): void =>
      void lines.push(...wrap(hide(text), `  ${word.padEnd(7)} `, page));
    // Minor findings take up three lines unless they were selected.
    if (severity === 'info' && !isSelected) {
      part('seen', finding.seen[0] ?? '');
      part('fix', finding.fix[0] ?? '');
      part(
        'more',
        `--only ${code} prints the rest; ndots doctor --explain ${code} explains the finding`,
      );
      lines.push('');
      continue;
    }
    finding.seen.forEach((text, index) => part(index === 0 ? 'seen' : '', text));
    const groups = [whoText(who(finding)), affectedText(finding)].filter((text) => text !== '');
    groups.forEach((text, index) => part(index === 0 ? 'who' : '', text));
    part('why', finding.why);
    finding.fix.forEach((text, index) =>
      part(index === 0 ? 'fix' : '', finding.fix.length > 1 ? `${'abcdef'[index]}  ${text}` : text),
    );
    part('prove', finding.prove);
    if (finding.disproved !== '') part('', `Disproved if: ${finding.disproved}.`);
    const frames = finding.exchanges.filter(({ queryFrame }) => queryFrame > 0).slice(0, FRAMES);
    if (frames.length > 0)
      part(
        'look',
        `frames ${frames.map(({ queryFrame }) => queryFrame).join(' ')}${finding.exchanges.length > FRAMES ? ' …' : ''}; --evidence FILE writes them all`,
      );
    const { places = [] } = finding;
    places
      .slice(0, PLACES)
      .forEach((text, nth) => part(nth === 0 && frames.length === 0 ? 'look' : '', text));
    lines.push('');
  }
  if (isLong) {
    lines.push(...list('Ruled out, with enough evidence', excluded, page, hide));
    lines.push(...list('Cannot be checked with this input', unknown, page, hide));
  } else if (excluded.length + unknown.length > 0) {
    lines.push(...wrap(counted(excluded.length, unknown.length), '', page), '');
  }
  return `${lines.join('\n')}\n`;
}

/** Summarizes causes without findings in one line to keep the report short. */
function counted(excluded: number, unknown: number): string {
  const causes = (number: number): string => count(number, 'cause', 'causes');
  const cannot = unknown === 0 ? '' : `${causes(unknown)} cannot be checked with this input`;
  const not = excluded === 0 ? '' : `${causes(excluded)} ruled out`;
  return `${[not, cannot].filter((text) => text !== '').join('; ')}. --ruled-out lists ${not !== '' && cannot !== '' ? 'both' : 'them'}.`;
}

function list(
  title: string,
  rules: readonly NotFound[],
  page: Page,
  hide: (text: string) => string,
): string[] {
  if (rules.length === 0) return [];
  // Groups causes with the same reason.
  const byReason = Map.groupBy(rules, ({ reason }) => reason);
  const lines = wrap(title, '', page).map(page.paint.strong);
  for (const [reason, same] of byReason)
    lines.push(...wrap(`${same.map(({ name }) => name).join(', ')}: ${hide(reason)}`, '  ', page));
  return [...lines, ''];
}

function affectedText({ affected = [] }: Finding): string {
  const rest = affected.length - PLACES;
  const shown = affected.slice(0, PLACES).join(', ');
  return rest > 0 ? `${shown} and ${rest} more` : shown;
}

function whoText({ clients, nodes, groups, resolvers }: Who): string {
  if (clients === 0) return '';
  const shown = groups.slice(0, 4).map(({ name, share }) => `${name} ${printShare(share)}`);
  const kinds = resolvers.map(([kind, number]) => `${kind} ${number}`);
  return [
    `${count(clients, 'client', 'clients')}${nodes > 0 ? ` on ${count(nodes, 'node', 'nodes')}` : ''}`,
    `${shown.join(', ')}${groups.length > 4 ? ` and ${groups.length - 4} more` : ''}`,
    ...(kinds.length > 0 ? [`resolvers: ${kinds.join(', ')}`] : []),
  ].join(' · ');
}
