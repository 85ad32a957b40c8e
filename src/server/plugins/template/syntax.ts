/** The syntax of the `template` directive. */
import { compilePattern, PatternError, type Pattern } from '../../base/pattern.ts';
import { required, zones, type Position } from '../../corefile/positions.ts';
import { pluginRemark } from '../../corefile/problems.ts';
import {
  chained,
  custom,
  fallthrough,
  lines,
  setting,
  type PropertySchema,
  type Refuse,
} from '../../corefile/properties.ts';
import { directive, type Syntax } from '../../corefile/syntax.ts';
import type { Token } from '../../corefile/corefile-tree.ts';
import { value, wrong } from '../../corefile/word-values.ts';
import {
  classNumber,
  className,
  RCODE,
  rcodeName,
  rcodeNumber,
  typeName,
  typeNumber,
} from '../../wire/iana.ts';
import type { ExtendedError } from '../../wire/reply.ts';
import {
  doubtsAbout,
  readTemplate,
  type RecordTemplate,
  type SectionName,
} from './record-template.ts';

const qclass = value(
  'CLASS',
  ({ text }) =>
    classNumber(text) ?? wrong(`invalid query class ${text}`, 'A class is IN, CH, HS or ANY.'),
  className,
);
const qtype = value(
  'TYPE',
  ({ text }) =>
    typeNumber(text) ?? wrong(`invalid RR class ${text}`, 'A type is A, AAAA, TXT … or ANY.'),
  typeName,
);
const rcode = value(
  'CODE',
  ({ text }) =>
    (/\d/.test(text) ? null : rcodeNumber(text)) ??
    wrong(`unknown rcode ${text}`, 'A code is NOERROR, NXDOMAIN, SERVFAIL, REFUSED …'),
  rcodeName,
);

function readPatterns(name: Token, words: readonly Token[], refuse: Refuse): readonly Pattern[] {
  needWords(name, words, refuse);
  return words.map(({ text, place }) => {
    try {
      return compilePattern(text);
    } catch (error) {
      if (!(error instanceof PatternError)) throw error;
      const { kind, message, hint } = error;
      const reason = kind === 'length' ? message : `could not parse regex: ${text}, ${message}`;
      return refuse(reason, place, { hint });
    }
  });
}

function readTemplates(
  name: Token,
  words: readonly Token[],
  refuse: Refuse,
): readonly RecordTemplate[] {
  needWords(name, words, refuse);
  return words.map((token) => readTemplate(name.text as SectionName, words, token, refuse));
}

function needWords(name: Token, words: readonly Token[], refuse: Refuse): void {
  if (words.length === 0)
    refuse(`Wrong argument count or unexpected line ending after '${name.text}'`, name.place, {
      code: 'argument-count',
    });
}

function readError(words: readonly Token[], refuse: Refuse): ExtendedError {
  const [code, text] = words;
  if (code === undefined || words.length > 2)
    return refuse("Wrong argument count or unexpected line ending after 'ederror'");
  if (!/^\d{1,5}$/.test(code.text) || Number(code.text) > 0xffff) {
    return refuse(`error parsing extended DNS error code ${code.text}`, code.place, {
      hint: 'RFC 8914 numbers them from 0.',
    });
  }
  return { code: Number(code.text), text: text?.text ?? '' };
}

export const syntax: Syntax<
  {
    class: Position<number>;
    type: Position<number>;
    zones: Position<readonly string[]>;
  },
  {
    patterns: PropertySchema<readonly (readonly Pattern[])[]>;
    answers: PropertySchema<readonly (readonly RecordTemplate[])[]>;
    additionals: PropertySchema<readonly (readonly RecordTemplate[])[]>;
    authorities: PropertySchema<readonly (readonly RecordTemplate[])[]>;
    rcode: PropertySchema<number>;
    error: PropertySchema<ExtendedError | null>;
    fallthrough: PropertySchema<readonly string[] | null>;
  },
  'gather'
> = directive({
  name: 'template',
  summary: 'generates answers from the query, using templates',
  repeat: 'gather',
  args: {
    class: required(qclass, { help: 'query class: IN, CH … or ANY for all' }),
    type: required(qtype, {
      help: 'query type: A, AAAA … or ANY for all; a query for ANY matches every template',
    }),
    zones: zones({ help: 'zones that the template applies to' }),
  },
  properties: {
    patterns: lines(['match'], 'REGEX…', readPatterns, {
      help: 'the name (in lower case, with its trailing dot) must match one of these RE2 expressions (default: all names)',
    }),
    answers: lines(['answer'], 'RR…', readTemplates, {
      help: 'records for the answer section, as Go templates that produce zone file lines',
    }),
    additionals: lines(['additional'], 'RR…', readTemplates, {
      help: 'the same for the additional section',
    }),
    authorities: lines(['authority'], 'RR…', readTemplates, {
      help: 'the same for the authority section',
    }),
    rcode: chained(
      setting('rcode', rcode, {
        default: RCODE.NOERROR,
        help: 'result code; SERVFAIL replies have no records',
      }),
    ),
    error: custom('ederror', 'CODE [TEXT]', readError, {
      help: 'an Extended DNS Error (RFC 8914) for clients that use EDNS',
    }),
    fallthrough: fallthrough({
      help: 'pass a name in ZONES that no expression matches to the next template, then to the next plugin; without this, the reply is SERVFAIL',
    }),
  },
  retired: { upstream: 'CNAMEs are always followed' },
  warn: (uses) =>
    uses.flatMap((use) =>
      [...use.answers, ...use.additionals, ...use.authorities]
        .flat()
        .flatMap((template) =>
          doubtsAbout(template).map(({ text, hint, place }) =>
            pluginRemark('template', place, text, { code: 'template-fails', hint }),
          ),
        ),
    ),
});
