/** Constructions that are not plain English, each with an alternative. STYLE.md gives the reasons. */
import type { PassageKind } from './passages.ts';

/** A rule against one construction. */
export interface ProseRule {
  readonly name: string;
  readonly pattern: RegExp;
  readonly write: string;
  /** The kinds of passages to check. By default, all of them. */
  readonly only?: readonly PassageKind[];
  /** Matches inside these words are acceptable. */
  readonly unless?: RegExp;
}

/** Compiles a pattern in which a space matches any whitespace. */
const words = (source: string, flags = 'gi'): RegExp =>
  new RegExp(source.replaceAll(' ', '\\s+'), flags);

const rule = (name: string, source: string, write: string, rest = {}): ProseRule => ({
  name,
  pattern: words(source),
  write,
  ...rest,
});

const sentenceStart = String.raw`(?<=^|[.!?:] )`;

/** Follows the order in STYLE.md: clauses, negation, verbs, nouns, docstrings. */
export const proseRules: readonly ProseRule[] = [
  // Clauses used as a noun.
  {
    name: 'clause as subject',
    pattern: new RegExp(
      `${sentenceStart}(?:Who|Whose|Whom|Whoever|What)\\s+(?!to\\b)[^.?!:]*(?:[.;:]|$)`.replaceAll(
        ' ',
        '\\s+',
      ),
      'g',
    ),
    write: 'name the noun: "clients that wait", "the remaining losses"',
    only: ['markdown', 'docstring', 'comment', 'string', 'title'],
    unless:
      /^What (?:(?:it|they|this|that|you|ndots|the|a|an|we|each|happens|changes)\b|\w+ (?:does|do|prints|needs|checks|reads|sees)\b)[^;]*$/,
  },
  rule(
    'clause as object',
    String.raw`\b(?:of|for|by|to|from|with|than|as|if|when|because|names?|tells?) (?:who|whom|whoever)\b`,
    'name the noun: "clients that", "the pod that"',
  ),
  rule(
    'clause as object',
    String.raw`\b(?:of|by|from|with|than|beyond|beside|behind|over|without) what\b(?! to\b)(?! (?:it|they|you|happens)\b)`,
    'name the noun',
  ),
  rule(
    'clause as subject',
    String.raw`[;:] (?:who|what|whose) (?:is|are|was|has|have|does|asks?|comes?|goes|stands?|waits?|gives?|takes?)\b`,
    'start a new sentence with the noun',
  ),
  rule(
    'whose they are',
    String.raw`\bwhom(?:ever)?\b|\bwhose (?:it|they) (?:is|are|was|were)\b`,
    'their owners, the client that',
  ),
  rule(
    'who asks',
    String.raw`\b(?:who|whoever) (?:asks?|asked|is asked|was asked|answers?|waits?|listens|reads it|calls)\b(?![^.]*\?)`,
    'client, server, caller',
    {
      unless:
        /\b(?:clients?|pods?|people|anyone|everyone|person|one|those|shows?|report|see|knows?|says?|find|workload) who/i,
    },
  ),
  rule(
    'what is left',
    String.raw`\bwhat (?:is|was|were|of it|of them) (?:lost|kept|left|asked|given|sent|held|told|named|known|there|missing|wrong with it)\b(?! \?)`,
    'name the noun: "the remaining queries", "the cached reply"',
  ),
  // Negated nouns instead of verbs.
  rule(
    'negated noun',
    String.raw`(?<!\bthere )\b(?:is|are|was|were|be|being|been) no(?: (?!longer\b|more\b|less\b|fewer\b|later\b|earlier\b|sooner\b|larger\b|better\b|worse\b|higher\b|lower\b|slower\b|faster\b|smaller\b|wider\b|longer\b|older\b|newer\b)\w)`,
    'negate the verb: "is not a", "are not", "there is no"',
    {
      unless:
        /\bthere (?:is|are|was|were|will be|can be|must be|may be|should be|would be|has been|have been) no/i,
    },
  ),
  rule(
    'negated noun',
    String.raw`(?<!\bthere )\b(?:is|are|was|were|be) none\b`,
    'negate the verb: "is not one", "there is none"',
    { unless: /\bthere (?:is|are|was|were|will be|can be|must be|may be) none/i },
  ),
  rule(
    'nobody',
    String.raw`\b(?:nobody|somebody|everybody)(?:'s)?\b`,
    'no client, a program, someone; or negate the verb',
  ),
  // Verbs.
  rule(
    'tells of',
    String.raw`\b(?:tell|tells|told|telling|say|says|said) (?:nothing |something |more |all )?of\b`,
    'report, show, list, name',
  ),
  rule('is told', String.raw`\b(?:is|are|be|was|were|been) told\b`, 'receives, reads, is notified'),
  rule('let go of', String.raw`\blet(?:s|ting)? go\b`, 'release, drop, close'),
  rule(
    'stands',
    String.raw`\b(?:stands?|stood)\b(?! for\b)(?!-)(?! out\b)(?! alone\b)`,
    'is in, is, follows',
  ),
  rule(
    'lies',
    String.raw`\b(?:lies|lie|lain) (?:in|under|at|on|behind|beside|between|above|below|within|over)\b`,
    'is in, is under',
  ),
  rule(
    'comes to',
    String.raw`\b(?:what|which|it|all) comes? to\b|\bcomes? to (?:an end|nothing|stand|know)\b`,
    'the result, the total; ends',
  ),
  rule('mend', String.raw`\bmend(?:s|ed|ing)?\b`, 'fix'),
  rule(
    'taken for',
    String.raw`\b(?:take|takes|taken|took|taking) (?:\w+ )?for (?:one|a|an|the|granted|gone|lost|dead|their|its|that)\b`,
    'treat as',
    { unless: /time|seconds|ms|minutes/i },
  ),
  rule(
    'finds out',
    String.raw`\b(?:find|finds|found|finding) (?:\w+ )?out\b(?! why\b)`,
    'detect, learn, determine',
  ),
  rule('hold against', String.raw`\b(?:hold|holds|held) (?:\w+ )?against\b`, 'compare with'),
  rule(
    'goes on',
    String.raw`\b(?:go|goes|going|went) on (?:\w+ing|with|as|to)\b`,
    'continue, keep, retry',
  ),
  rule('asks anew', String.raw`\banew\b|\bonce more\b`, 'again'),
  rule('hears', String.raw`\b(?:hear|hears|heard) (?:of|that|nothing|from)\b`, 'receive, learn'),
  rule(
    'passed over',
    String.raw`\bpass(?:es|ed|ing)? over\b|\bwithout a word\b`,
    'ignore, skip; silently',
  ),
  rule(
    'looked at',
    String.raw`\b(?:is|are|was|were) looked (?:at|into|for|after|through)\b`,
    'read, check, examine',
  ),
  rule(
    'is kept',
    String.raw`\b(?:is|are|was|were|be|been) (?:no longer |never |also |still )?kept\b(?! (?:open|alive|up|apart|separate|private|out))`,
    'is cached, is stored, stays',
  ),
  rule('reckons', String.raw`\breckon(?:s|ed|ing)?\b`, 'compute, estimate'),
  rule(
    'makes of',
    String.raw`\b(?:make|makes|made) of (?:it|them|the|that|this|a)\b(?! (?:text|yaml|bytes))`,
    'does with, concludes from',
  ),
  rule(
    'is asked',
    String.raw`\bwho is asked\b|\bis asked (?:anew|again)\b`,
    'server; is queried again',
  ),
  // Words.
  rule(
    'old word',
    String.raw`\b(?:amid|amidst|besides|meanwhile|whereof|thereof|wherein|whither|whence|naught|aught|amiss|ere|nigh|twofold|threefold|manifold)\b`,
    'during, also, or leave it out',
  ),
  rule('in vain', String.raw`\bin vain\b`, 'failed, without an answer'),
  rule(
    'for want of',
    String.raw`\bfor want of\b|\bto and fro\b|\bthe like\b`,
    'without; alternating; name the things',
  ),
  rule('dear', String.raw`\b(?:dear|dearer|dearest)\b`, 'expensive'),
  rule('what it comes to', String.raw`\bwhat it comes to\b`, 'the result, the total'),
  rule(
    'names of outside',
    String.raw`\b(?:names?|servers?|queries) of (?:the )?outside\b|\bof outside\b`,
    'external names',
  ),
  rule(
    'by itself',
    String.raw`\bby itself\b|\bby themselves\b`,
    'separately, alone, automatically',
  ),
  rule('of itself', String.raw`\bof (?:itself|themselves)\b(?! as)`, 'its own'),
  rule(
    'as it is',
    String.raw`\bas (?:it is|they are|it was|they were)(?=\s*(?:[,.;:)]|first\b|$))`,
    'unchanged, as written',
  ),
  rule('so many', String.raw`\bso (?:many|much)\b(?! (?:that|as))`, 'the number of, up to', {
    unless: /so (?:many|much)[^.]{0,60} that\b/i,
  }),
  rule('has its page', String.raw`\bhas its (?:page|place)\b`, 'is documented in, is in'),
  rule('processor', String.raw`\bprocessors?\b`, 'CPU', { unless: /protocol processor/i }),
  rule('folder', String.raw`\bfolders?\b`, 'directory'),
  rule('remedy', String.raw`\bremed(?:y|ies)\b|\bcures?\b`, 'fix'),
  rule('flaw', String.raw`\bflaws?\b`, 'fault'),
  rule('witness', String.raw`\bwitness(?:es)?\b`, 'example query'),
  rule('misspelt', String.raw`\bmisspelt\b|\bslips? of the pen\b`, 'misspelled, typo'),
  rule('net', String.raw`(?<![.\w/-])nets?\b(?![./])`, 'prefix, network'),
  rule('response', String.raw`\bDNS responses?\b`, 'reply'),
  rule(
    'one sees',
    String.raw`\bone (?:sees|has|wants|knows|can|must|may|asks|needs|reads)\b`,
    'you',
    {
      unless:
        /\b(?:only|each|every|other|this|that|no|any|the|first|last|second|next|new|old|which|and|with|than|as|from|of|if) one/i,
    },
  ),
  rule(
    'at that',
    String.raw`\ball the same\b|\bat the least\b|\bno matter\b|\bbe it\b`,
    'still; at least; whether',
  ),
  // Docstrings.
  rule(
    'docstring start',
    String.raw`^(?:What|Which|Who|Whose|Whether|Where|How|When|That)\b`,
    'start with a verb ("Returns …", "Detects …", "True if …") or a noun',
    { only: ['docstring'] },
  ),
];

/** The maximum number of words in a sentence, as stated in STYLE.md. */
const SENTENCE_WORDS = 24;

/**
 * Counts words. Markup is not counted, and a list of code words or numbers counts as one word because it is read at a
 * glance.
 */
const wordCount = (sentence: string): number =>
  sentence
    .replaceAll(/<\/?[a-z][^>]*>/g, '')
    .replaceAll(/(?<!\w)(X|[\d.]+)(?:(?:,|,? (?:and|or|to|with)|) (?:X|[\d.]+)(?!\w))+/g, '$1')
    .match(/\S*\w\S*/g)?.length ?? 0;

/**
 * Reports the start offsets of sentences that are too long. List items and tags such as `@param` count as separate
 * sentences.
 */
export function longSentences(text: string): readonly (readonly [offset: number, words: number])[] {
  const found: (readonly [number, number])[] = [];
  let start = 0;
  const ends = /[.!?:](?=["')\]]*(?:\s|$))|·|\s(?=@[a-z]+\s|- )/g;
  for (let end = ends.exec(text); ; end = ends.exec(text)) {
    const stop = end === null ? text.length : end.index + 1;
    const count = wordCount(text.slice(start, stop));
    if (count > SENTENCE_WORDS) found.push([start, count]);
    if (end === null) return found;
    start = stop;
  }
}
