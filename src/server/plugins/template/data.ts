/** The data available to templates. */
import type { PatternMatch } from '../../base/pattern.ts';
import { FLAG } from '../../wire/iana.ts';
import { printName } from '../../wire/name.ts';
import type { Query } from '../../transport/query.ts';
import { asString, Struct, type GoValue } from './go-values.ts';

/** A query that matched, with the data for its templates. */
export interface Matched {
  readonly zone: string;
  /** The names of class and type, from the query or, if that has ANY, from the template. */
  readonly class: string;
  readonly type: string;
  readonly pattern: string;
  readonly match: PatternMatch;
}

export const dataFields: readonly string[] = [
  'Zone',
  'Name',
  'Regex',
  'Match',
  'Group',
  'Class',
  'Type',
  'Message',
  'Question',
  'Remote',
  'Meta',
];

/**
 * Returns the query in the form that Go's templates see. Fields are read only while the template runs, so the query
 * need not be retained.
 */
export function templateData(
  query: Query,
  { zone, class: qclass, type, pattern, match }: Matched,
): Struct {
  const { notes } = query;
  return new Struct(
    '*template.templateData',
    {
      Zone: () => zone,
      Name: () => query.name,
      Regex: () => pattern,
      Match: () => match.groups.map((group) => group ?? ''),
      Group: () => groupMap(match),
      Class: () => qclass,
      Type: () => type,
      Message: () => messageOf(query),
      Question: () => questionOf(query),
      Remote: () => query.client,
    },
    { Meta: { arguments: 1, run: ([label]) => notes?.get(asString(label)) ?? '' } },
  );
}

function groupMap({ groups, named }: PatternMatch): ReadonlyMap<string, GoValue> {
  const map = new Map<string, GoValue>();
  groups.forEach((group, index) => map.set(String(index), group ?? ''));
  for (const [name, group] of Object.entries(named)) map.set(name, group ?? '');
  return map;
}

function questionOf(query: Query): Struct {
  return new Struct('*dns.Question', {
    Name: () => printName(query.wireName),
    Qtype: () => BigInt(query.type),
    Qclass: () => BigInt(query.class),
  });
}

/**
 * Builds the header and the question. The query's other sections are empty, except for records used by the transport.
 */
function messageOf(query: Query): Struct {
  const flag = (bit: number) => () => (query.flags & bit) !== 0;
  return new Struct('*dns.Msg', {
    Id: () => BigInt(query.id),
    Response: flag(FLAG.QR),
    Opcode: () => BigInt(query.opcode),
    Authoritative: flag(FLAG.AA),
    Truncated: flag(FLAG.TC),
    RecursionDesired: flag(FLAG.RD),
    RecursionAvailable: flag(FLAG.RA),
    Zero: flag(FLAG.Z),
    AuthenticatedData: flag(FLAG.AD),
    CheckingDisabled: flag(FLAG.CD),
    Rcode: () => BigInt(query.flags & FLAG.RCODE),
    Question: () => [questionOf(query)],
    Answer: () => [],
    Ns: () => [],
    Extra: () => [],
  });
}
