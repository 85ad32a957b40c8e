/** Reads YAML piece by piece, within a bound of memory that is checked before anything is built. */
import { createRequire } from 'node:module';
import { printBytes } from '../../base/limits.ts';
import type { CST, Document } from 'yaml';

/** A document as the parser makes it. */
export type AnyDocument = Document.Parsed;

/** A part of a file that is held in memory by itself. */
export interface YamlPiece {
  readonly document: AnyDocument;
  /** Which entry of the `items` of the document that comes next it is; null: a whole document. */
  readonly item: number | null;
  /** The characters of the file that it takes. */
  readonly length: number;
}

/** The reading of a file that must not go on. What came before it counts. */
export class YamlBoundError extends Error {
  /** Characters from the beginning of the file. */
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(message);
    this.offset = offset;
  }
}

/** Memory that a piece may take while it is read, bytes, where nobody says otherwise. Objects of Kubernetes have at most 1.5 MiB. */
export const PIECE_MEMORY: number = 64 * 1024 * 1024;

/** Collections within each other. The deepest schemas of custom resources have some forty. */
const DEPTH_MAX = 200;
/** What the parser makes of a word, a sign or a line break at most, bytes; measured, empty mappings in a list take 480. */
const BYTES_PER_PART = 512;
/** And of each character of a quoted text, which it puts together one by one. */
const BYTES_PER_CHARACTER = 36;

/**
 * The documents of a file, one after the other, each forgotten by the parser when the next one is asked for. Entries of a list
 * called `items` at the top of a document, as `kubectl get -o yaml` and `-o json` print them, come by themselves before it, and are
 * null in it: so a file of any size takes the memory of its largest object. Where anchors are used, the document comes whole.
 * @param memory bytes that a piece may take while it is read
 * @param entries false: lists come whole, too
 * @throws YamlBoundError when one would take more, or is nested too deeply
 */
export function* yamlPieces(content: string, memory: number, entries = true): Generator<YamlPiece> {
  const yaml = loadYaml();
  const parser = new yaml.Parser();
  const composer = new yaml.Composer(options);
  const list = new ItemList(parser);
  let cost = 0;
  /** Characters of those entries of the document in the composer that came before it. */
  let before = 0;
  for (const lexeme of new yaml.Lexer().lex(content)) {
    // Between documents stand comments and empty lines, of which nothing remains, and directives.
    if (parser.stack.length > 0 || lexeme[0] === '%')
      cost += BYTES_PER_PART + BYTES_PER_CHARACTER * lexeme.length;
    if (cost > memory) throw tooLarge(memory, parser.offset);
    if (parser.stack.length > DEPTH_MAX)
      throw new YamlBoundError('this is nested too deeply to be read', parser.offset);
    for (const token of parser.next(lexeme)) {
      if (token.type === 'document') cost = 0;
      if (token.type === 'comment' || token.type === 'newline') continue;
      for (const document of composer.next(token)) yield whole(document, before);
      if (token.type === 'document') before = list.restart();
    }
    const entry = entries ? list.before(lexeme) : null;
    if (entry === null) continue;
    // Its place in the list remains.
    cost = (entry.item + 1) * BYTES_PER_PART;
    // The composer holds a document until it sees the next one.
    for (const document of composer.end()) yield whole(document, before);
    yield entry;
  }
  for (const token of parser.end()) {
    for (const document of composer.next(token)) yield whole(document, before);
    if (token.type === 'document') before = list.restart();
  }
  for (const document of composer.end()) yield whole(document, before);
}

const options = {
  prettyErrors: false,
  logLevel: 'error',
  // The parser's own check compares each key with each other one.
  uniqueKeys: false,
} as const;

function whole(document: AnyDocument, before: number): YamlPiece {
  const [begin, , end] = document.range;
  return { document, item: null, length: Math.max(0, end - begin - before) };
}

function tooLarge(memory: number, offset: number): YamlBoundError {
  return new YamlBoundError(`reading this takes more than ${printBytes(memory)} of memory`, offset);
}

/** The list `items` at the top of the document that is being read. */
class ItemList {
  readonly #parser: InstanceType<typeof import('yaml').Parser>;
  /** Entries that are read. */
  #done = 0;
  /** Their characters. */
  #length = 0;
  /** An alias may stand for a part of any other entry. */
  #hasAnchors = false;

  constructor(parser: InstanceType<typeof import('yaml').Parser>) {
    this.#parser = parser;
  }

  /** Another document begins. @returns the characters of all entries of this one */
  restart(): number {
    const length = this.#length;
    this.#done = 0;
    this.#length = 0;
    this.#hasAnchors = false;
    return length;
  }

  /** The entry that has ended before this lexeme, of which the parser knows, if one has. */
  before(lexeme: string): (YamlPiece & { readonly item: number }) | null {
    if (lexeme[0] === '&' || lexeme[0] === '*') this.#hasAnchors = true;
    if (this.#hasAnchors || this.#parser.stack.length !== 3) return null;
    if (lexeme !== '-' && lexeme !== ',') return null;
    const items = this.#items();
    const index = (items?.length ?? 0) - 2;
    if (items === null || index < this.#done) return null;
    const item = items[index]!;
    const value = valueOf(item);
    if (value === null) return null;
    this.#done = index + 1;
    const nothing: CST.FlowScalar = {
      type: 'scalar',
      offset: value.offset,
      indent: 0,
      source: 'null',
    };
    if (item.value === undefined) item.key = nothing;
    else item.value = nothing;
    const composer = new (loadYaml().Composer)(options);
    // Composing a document yields the one before it: there is none.
    for (const _ of composer.next({ type: 'document', offset: value.offset, start: [], value }))
      continue;
    const [document] = [...composer.end()] as [AnyDocument];
    const length = document.range[2] - document.range[0];
    this.#length += length;
    return { document, item: index, length };
  }

  #items(): readonly CST.CollectionItem[] | null {
    const [document, top, list] = this.#parser.stack;
    if (document?.type !== 'document') return null;
    const isBlock = top?.type === 'block-map' && list?.type === 'block-seq';
    const isFlow =
      top?.type === 'flow-collection' &&
      list?.type === 'flow-collection' &&
      list.start.source === '[';
    if (!isBlock && !isFlow) return null;
    const { key } = top.items.at(-1) ?? {};
    if (key === undefined || key === null || !('source' in key)) return null;
    return /^["']?items["']?$/.test(String(key.source)) ? list.items : null;
  }
}

/** The value of an entry that is one, and nothing else: no key, no tag. */
function valueOf({ start, key, sep, value }: CST.CollectionItem): CST.Token | null {
  if (start.some(({ type }) => type === 'tag')) return null;
  if (value !== undefined) return key === undefined && sep === undefined ? value : null;
  return sep?.length === 0 ? (key ?? null) : null;
}

let loaded: typeof import('yaml') | null = null;

/** The parser is large and a server that watches an API server never needs it: loaded on first use. */
export function loadYaml(): typeof import('yaml') {
  loaded ??= createRequire(import.meta.url)('yaml') as typeof import('yaml');
  return loaded;
}
