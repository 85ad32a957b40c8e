/** Prints messages and records in the formats used by dig and zone files. */
import { className, FLAG, opcodeName, rcodeName, typeName } from './iana.ts';
import { printEdns } from './edns-print.ts';
import type { DnsRecord, Message, Question } from './message.ts';
import { Opaque } from './record/kind.ts';
import { printOpaque } from './record/null.ts';
import { kindOf } from './record/table.ts';

/** Characters per word in long hex or base64, as in dig's output. */
const SPLIT = 56;

/** Prints a message as `dig` does, from the header line to the last section. The output ends in an empty line. */
export function printMessage(message: Message): string {
  const { id, flags, question, answer, authority, additional, edns } = message;
  const opcode = opcodeName((flags & FLAG.OPCODE) >> 11);
  const extra = additional.length + (edns === null ? 0 : 1);
  let text = `;; ->>HEADER<<- opcode: ${opcode}, status: ${rcodeName(message.rcode)}, id: ${id}\n`;
  text += `;; flags:${printFlags(flags)}; QUERY: ${question.length}, ANSWER: ${answer.length}, `;
  text += `AUTHORITY: ${authority.length}, ADDITIONAL: ${extra}\n\n`;
  if (edns !== null) text += printEdns(edns);
  if (question.length > 0)
    text += `;; QUESTION SECTION:\n${question.map(printQuestion).join('')}\n`;
  text += printSection('ANSWER', answer);
  text += printSection('AUTHORITY', authority);
  text += printSection('ADDITIONAL', additional);
  return text;
}

/** Prints a record on one line, as in zone files and `dig`, with tabs between the columns and no line ending. */
export function printRecord(record: DnsRecord, split = 0): string {
  const line = new PrintedLine();
  line.at(0, record.name);
  line.at(24, String(record.ttl));
  line.at(32, className(record.class));
  line.at(40, typeName(record.type));
  line.at(48, printData(record.type, record.data, split));
  return line.text;
}

/** Prints a record's data in zone file format. */
export function printData(type: number, data: object, split = 0): string {
  const kind = kindOf(type);
  return data instanceof Opaque || kind === undefined
    ? printOpaque(data as Opaque, split)
    : kind.print(data, split);
}

function printSection(title: string, records: readonly DnsRecord[]): string {
  if (records.length === 0) return '';
  return `;; ${title} SECTION:\n${records.map((record) => `${printRecord(record, SPLIT)}\n`).join('')}\n`;
}

function printQuestion(question: Question): string {
  const line = new PrintedLine();
  line.at(0, question.name);
  line.at(32, className(question.class));
  line.at(40, typeName(question.type));
  return `;${line.text}\n`;
}

function printFlags(flags: number): string {
  const set = flagNames(flags).map((name) => ` ${name}`);
  return set.join('') + ((flags & FLAG.Z) === 0 ? '' : '; MBZ: 0x4');
}

/** Returns the names of the header flags that are set, in bit order: `qr`, `aa`, `tc`, `rd`, `ra`, `ad`, `cd`. */
export function flagNames(flags: number): string[] {
  return (['QR', 'AA', 'TC', 'RD', 'RA', 'AD', 'CD'] as const)
    .filter((name) => (flags & FLAG[name]) !== 0)
    .map((name) => name.toLowerCase());
}

/**
 * A line of text whose words start at tab columns. A word that is too long for its column is followed by a single
 * blank.
 */
class PrintedLine {
  text = '';
  #column = 0;

  at(column: number, word: string): void {
    if (column > 0) this.#indent(Math.max(column, this.#column + 1));
    this.text += word;
    this.#column += word.length;
  }

  #indent(to: number): void {
    const tabs = Math.floor(to / 8) - Math.floor(this.#column / 8);
    const from = tabs > 0 ? Math.floor(to / 8) * 8 : this.#column;
    this.text += '\t'.repeat(tabs) + ' '.repeat(to - from);
    this.#column = to;
  }
}
