/** The template for one record, which is parsed here and then builds the record. */
import { nearest, Problem, type Place } from '../../base/problem.ts';
import type { Refuse } from '../../corefile/properties.ts';
import type { Token } from '../../corefile/corefile-tree.ts';
import type { DnsRecord } from '../../wire/message.ts';
import { parseRecord } from '../../wire/zone-text.ts';
import { dataFields } from './data.ts';
import { evaluate } from './evaluate.ts';
import { TemplateError } from './lex.ts';
import { parseTemplate } from './parse.ts';
import { printNodes, type TemplateNode, type Operand, type Pipe } from './template-tree.ts';
import type { Struct } from './go-values.ts';

export type SectionName = 'answer' | 'additional' | 'authority';

export interface RecordTemplate {
  readonly section: SectionName;
  readonly nodes: readonly TemplateNode[];
  /** As written by Go, for the metrics' label. */
  readonly text: string;
  readonly token: Token;
}

/** Thrown if a record could not be built, because either the template failed or its output is not a record. */
export class RecordFailure extends Error {
  override readonly name = 'RecordFailure';
  readonly by: 'template' | 'record';

  constructor(message: string, by: 'template' | 'record') {
    super(message);
    this.by = by;
  }
}

/** Parses the template for one record; errors include their location in the Corefile. */
export function readTemplate(
  section: SectionName,
  words: readonly Token[],
  token: Token,
  refuse: Refuse,
): RecordTemplate {
  try {
    const nodes = parseTemplate(token.text);
    return { section, nodes, text: printNodes(nodes), token };
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    const text = `could not compile template: ${words.at(-1)!.text}, template: ${section}:${lineOf(token.text, error.at)}: ${error.message}`;
    return refuse(text, placeIn(token, error.at), { code: 'template-syntax' });
  }
}

function placeIn({ text, place, quoted }: Token, at: number): Place {
  const before = text.slice(0, at);
  const line = lineOf(text, at) - 1;
  // Inside quotes, every quote is preceded by a backslash.
  const written = (part: string): number => part.length + (quoted ? part.split('"').length - 1 : 0);
  const column =
    line === 0
      ? place.column + (quoted ? 1 : 0) + written(before)
      : 1 + written(before.slice(before.lastIndexOf('\n') + 1));
  return { file: place.file, line: place.line + line, column };
}

function lineOf(text: string, at: number): number {
  return text.slice(0, at).split('\n').length;
}

/**
 * Returns the record that the template produces for a query, or null if there is no output.
 * @throws RecordFailure
 */
export function makeRecord(template: RecordTemplate, data: Struct): DnsRecord | null {
  const text = execute(template, data);
  if (/^\s*$/.test(text)) return null;
  try {
    return parseRecord(text, '.', template.section);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    throw new RecordFailure(
      `template: ${template.section}: ${JSON.stringify(shortened(text))}: ${error.message}`,
      'record',
    );
  }
}

function execute({ section, nodes, token }: RecordTemplate, data: Struct): string {
  try {
    return evaluate(nodes, data);
  } catch (error) {
    if (!(error instanceof TemplateError)) throw error;
    const place = `${section}:${lineOf(token.text, error.at)}:${error.at}`;
    throw new RecordFailure(
      `template: ${place}: executing "${section}" ${error.message}`,
      'template',
    );
  }
}

function shortened(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

/**
 * Builds the record in advance if the template has no actions. Returns null if it has actions or does not produce a
 * record.
 */
export function constantRecord({ section, nodes }: RecordTemplate): DnsRecord | null {
  if (nodes.some(({ kind }) => kind !== 'text')) return null;
  try {
    return parseRecord(printNodes(nodes), '.', section);
  } catch (error) {
    if (error instanceof Problem) return null;
    throw error;
  }
}

export function doubtsAbout(
  template: RecordTemplate,
): { readonly text: string; readonly hint: string | null; readonly place: Place }[] {
  const { section, nodes, token } = template;
  const doubts = unknownFields(nodes).map(({ name, at }) => {
    const meant = nearest(name, dataFields);
    const hint =
      meant === null
        ? `Available fields: ${dataFields.map((field) => `.${field}`).join(', ')}.`
        : `Did you mean .${meant}?`;
    return { text: `${section}: there is no field .${name}`, hint, place: placeIn(token, at) };
  });
  if (doubts.length > 0 || nodes.some(({ kind }) => kind !== 'text')) return doubts;
  try {
    const text = printNodes(nodes);
    if (!/^\s*$/.test(text)) parseRecord(text, '.', section);
    return [];
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    return [
      {
        text: `${section}: this is not a record: ${error.message}`,
        hint: null,
        place: token.place,
      },
    ];
  }
}

interface Unknown {
  readonly name: string;
  readonly at: number;
}

/** Returns fields that the data does not have, wherever the dot is the data. */
function unknownFields(nodes: readonly TemplateNode[], isData = true): Unknown[] {
  return nodes.flatMap((node) => {
    switch (node.kind) {
      case 'action':
        return inPipe(node.pipe, isData);
      case 'if':
      case 'with':
      case 'range':
        return [
          ...inPipe(node.pipe, isData),
          ...unknownFields(node.body, isData && node.kind === 'if'),
          ...unknownFields(node.otherwise, isData),
        ];
      default:
        return [];
    }
  });
}

function inPipe({ commands }: Pipe, isData: boolean): Unknown[] {
  return commands.flatMap(({ operands }) =>
    operands.flatMap((operand) => inOperand(operand, isData)),
  );
}

function inOperand(operand: Operand, isData: boolean): Unknown[] {
  if (operand.kind === 'pipe') return inPipe(operand.pipe, isData);
  const onData =
    (operand.kind === 'field' && isData) || (operand.kind === 'variable' && operand.name === '$');
  if (!onData) return [];
  const [name] = (operand as { readonly path: readonly string[] }).path;
  return name === undefined || dataFields.includes(name) ? [] : [{ name, at: operand.at }];
}
