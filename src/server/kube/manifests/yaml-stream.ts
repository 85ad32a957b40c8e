/** Reads YAML piece by piece within a memory limit, which is checked before anything is built. */
import { createRequire } from 'node:module';
import { printBytes } from '../../base/limits.ts';
import type { CST, Document } from 'yaml';

/** A document as produced by the parser. */
export type AnyDocument = Document.Parsed;

/** A part of a file that is in memory separately. */
export interface YamlPiece {
  readonly document: AnyDocument;
  /** Its index in `items` of the following document, or null if it is a whole document. */
  readonly item: number | null;
  /** Its length in characters of the file. */
  readonly length: number;
}

/** Thrown to end the reading of a file that exceeds a limit. Earlier documents remain valid. */
export class YamlBoundError extends Error {
  /** Offset in characters from the start of the file. */
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(message);
    this.offset = offset;
  }
}

/** Default memory limit in bytes for reading one piece. Kubernetes objects have at most 1.5 MiB. */
export const PIECE_MEMORY: number = 64 * 1024 * 1024;

/** Maximum nesting depth. The deepest custom resource schemas have about forty levels. */
const DEPTH_MAX = 200;
/**
 * Maximum memory in bytes that the parser needs for a word, a sign or a line break. This was measured: empty mappings
 * in a list take 480.
 */
const BYTES_PER_PART = 512;
/** The same for each character of a quoted string, which the parser assembles one by one. */
const BYTES_PER_CHARACTER = 36;

/**
 * Yields the documents in a file one at a time. The parser drops each document before it reads the next. Entries of a
 * top-level list `items`, as printed by `kubectl get -o yaml` and `-o json`, are returned separately before their
 * document, in which they are null. A file of any size therefore needs only as much memory as its largest object. A
 * document with anchors is returned as a whole.
 * @param memory maximum number of bytes for reading one piece
 * @param entries false to return lists as a whole as well
 * @throws YamlBoundError if a piece needs more memory, or is nested too deeply
 */
export function* yamlPieces(content: string, memory: number, entries = true): Generator<YamlPiece> {
  const yaml = loadYaml();
  const parser = new yaml.Parser();
  const composer = new yaml.Composer(options);
  const list = new ItemList(parser);
  let cost = 0;
  /** Number of characters in entries already returned from the document that is being composed. */
  let before = 0;
  for (const lexeme of new yaml.Lexer().lex(content)) {
    // Between documents there may be comments and empty lines, which produce nothing, and directives.
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
    // Only its place in the list remains.
    cost = (entry.item + 1) * BYTES_PER_PART;
    // The composer does not return a document until it sees the next one.
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
  // The parser's own check takes quadratic time, because it compares each key with every other key.
  uniqueKeys: false,
  // As in kubectl, `<<: *defaults` copies the keys of another mapping.
  merge: true,
} as const;

function whole(document: AnyDocument, before: number): YamlPiece {
  const [begin, , end] = document.range;
  return { document, item: null, length: Math.max(0, end - begin - before) };
}

function tooLarge(memory: number, offset: number): YamlBoundError {
  return new YamlBoundError(`reading this needs more than ${printBytes(memory)} of memory`, offset);
}

/** The list `items` at the top level of the document being read. */
class ItemList {
  readonly #parser: InstanceType<typeof import('yaml').Parser>;
  /** Number of entries that have been returned. */
  #done = 0;
  /** Their characters. */
  #length = 0;
  /** Set if there is an anchor, because an alias may then refer to part of any other entry. */
  #hasAnchors = false;

  constructor(parser: InstanceType<typeof import('yaml').Parser>) {
    this.#parser = parser;
  }

  /**
   * Called when another document begins.
   * @returns the number of characters in all the entries returned from this one
   */
  restart(): number {
    const length = this.#length;
    this.#done = 0;
    this.#length = 0;
    this.#hasAnchors = false;
    return length;
  }

  /** Returns the entry that is complete before this lexeme, if there is one. */
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
    // Composing a document would return the previous one, but there is none here.
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

/** Returns the value of an entry that consists of nothing but a value, without key or tag. */
function valueOf({ start, key, sep, value }: CST.CollectionItem): CST.Token | null {
  if (start.some(({ type }) => type === 'tag')) return null;
  if (value !== undefined) return key === undefined && sep === undefined ? value : null;
  return sep?.length === 0 ? (key ?? null) : null;
}

let loaded: typeof import('yaml') | null = null;

/** Loads the parser on first use. It is large, and a server that watches an API server never needs it. */
export function loadYaml(): typeof import('yaml') {
  loaded ??= createRequire(import.meta.url)('yaml') as typeof import('yaml');
  return loaded;
}
