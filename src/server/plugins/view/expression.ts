/**
 * Parses the expressions of `view`, which are the part of expr-lang that conditions need. This includes literals,
 * arrays, maps, operators, `?:`, calls, indexes, members, slices, pipes, predicates with `#`, and constants (`let`).
 * There are no loops and no side effects, so every evaluation ends. Steps are counted to make sure that it ends soon.
 * An expression is checked and compiled once, when the Corefile is read.
 */
import { nearest } from '../../base/problem.ts';
import { applied, chosen, computed, folded, inNet, literal, not } from './compiled-parts.ts';
import { builtins, memberOf, notThere, ofQuery, overItems } from './functions.ts';
import { NOT_RANK, operators, SIGN_RANK } from './operators.ts';
import {
  asArray,
  asMap,
  asNumber,
  asString,
  beginSteps,
  stepThrough,
  type CompiledPart,
  type Evaluate,
  type ExpressionValue,
} from './expression-values.ts';
import { ExpressionError, readWords, type ExpressionWord } from './expression-words.ts';

/** Compiles an expression. @throws ExpressionError */
export function compileExpression(text: string): CompiledPart {
  // Constant parts are evaluated now.
  beginSteps();
  const part = new ExpressionParser(readWords(text)).whole();
  return {
    ...part,
    run(query, item) {
      beginSteps();
      return part.run(query, item);
    },
  };
}

/** Maximum nesting depth of parentheses. */
const DEPTH_MAX = 100;
/**
 * Maximum number of operators, functions after `|`, members and indexes in an expression. Each contains the part before
 * it, so a chain is as deep as it is long. expr-lang accepts 10 000 nodes, and each of these creates at least two.
 */
const CHAINED_MAX = 5000;
/** Maximum number of constants (`let`) in an expression. */
const NAMES_MAX = 20;

class ExpressionParser {
  readonly #words: readonly ExpressionWord[];
  #at = 0;
  #depth = 0;
  /** Number of chained parts so far, which is at most `CHAINED_MAX`. */
  #chained = 0;
  #predicates = 0;
  /** The constants (`let`) in scope. */
  #names: ReadonlyMap<string, CompiledPart> = new Map();

  constructor(words: readonly ExpressionWord[]) {
    this.#words = words;
  }

  whole(): CompiledPart {
    const part = this.#sequence();
    if (this.#word.kind !== 'end') this.#unexpected();
    return part;
  }

  get #word(): ExpressionWord {
    return this.#words[this.#at]!;
  }

  #next(): ExpressionWord {
    return this.#words[this.#at++]!;
  }

  #is(text: string): boolean {
    const { kind, text: found } = this.#word;
    return kind !== 'string' && kind !== 'number' && found === text;
  }

  #take(text: string): boolean {
    if (!this.#is(text)) return false;
    this.#at++;
    return true;
  }

  #expect(text: string): void {
    if (!this.#take(text)) this.#unexpected();
  }

  /** @param back 1 if the word has already been taken */
  #unexpected(back = 0): never {
    const { kind, text, at } = this.#words[this.#at - back]!;
    throw new ExpressionError(
      kind === 'end'
        ? 'unexpected end of the expression'
        : `unexpected token ${JSON.stringify(text)}`,
      at,
    );
  }

  /** Parses `let NAME = VALUE; …`. If several expressions are separated by semicolons, the last one counts. */
  #sequence(): CompiledPart {
    const names = this.#names;
    const lets: ((...given: Parameters<Evaluate>) => void)[] = [];
    let part: CompiledPart;
    do {
      while (this.#take('let')) lets.push(this.#let());
      part = this.#expression(0);
    } while (this.#take(';'));
    this.#names = names;
    if (lets.length === 0 || part.constant !== undefined) return part;
    const { run } = part;
    return {
      type: part.type,
      at: part.at,
      run(query, item) {
        for (const give of lets) give(query, item);
        return run(query, item);
      },
    };
  }

  /** @returns a function that evaluates the constant for a query */
  #let(): (...given: Parameters<Evaluate>) => void {
    const { kind, text, at } = this.#next();
    if (kind !== 'name') {
      this.#unexpected(1);
    }
    if (isFunction(text)) throw new ExpressionError(`${text} is a function already`, at);
    if (this.#names.has(text)) throw new ExpressionError(`${text} already has a value`, at);
    if (this.#names.size >= NAMES_MAX)
      throw new ExpressionError(`more than ${NAMES_MAX} names have values`, at);
    this.#expect('=');
    const { type, constant, run } = this.#expression(0);
    this.#expect(';');
    let value: ExpressionValue = null;
    this.#names = new Map([
      ...this.#names,
      [text, constant === undefined ? { type, at, run: () => value } : literal(constant, at)],
    ]);
    return (query, item) => {
      value = run(query, item);
    };
  }

  #expression(rank: number): CompiledPart {
    if (++this.#depth > DEPTH_MAX)
      throw new ExpressionError('the expression is nested too deeply', this.#word.at);
    let left = this.#prefix();
    for (;;) {
      if (rank === 0 && this.#take('|')) {
        this.#chain();
        left = this.#piped(left);
        continue;
      }
      const negated = this.#is('not') && this.#words[this.#at + 1]?.kind === 'name';
      const word = this.#words[this.#at + (negated ? 1 : 0)]!;
      const operator =
        word.kind === 'sign' || word.kind === 'name' ? known(operators, word.text) : undefined;
      if (operator === undefined || operator.rank < rank || (negated && !isWord(word))) break;
      this.#chain();
      this.#at += negated ? 2 : 1;
      const right = this.#expression(
        operator.rightFirst === true ? operator.rank : operator.rank + 1,
      );
      const made = { ...operator.make(left, right, word.text), at: left.at };
      left = folded(negated ? not(made) : made, [left, right]);
    }
    if (rank === 0 && this.#take('?')) left = this.#choice(left);
    this.#depth--;
    return left;
  }

  #chain(): void {
    if (++this.#chained > CHAINED_MAX)
      throw new ExpressionError(
        `the expression has more than ${CHAINED_MAX} operators`,
        this.#word.at,
      );
  }

  #choice(condition: CompiledPart): CompiledPart {
    const yes = this.#expression(0);
    this.#expect(':');
    const no = this.#expression(0);
    return chosen(condition, yes, no);
  }

  #prefix(): CompiledPart {
    const { at } = this.#word;
    if (this.#take('not') || this.#take('!')) {
      const part = this.#expression(NOT_RANK);
      if (part.type !== 'bool' && part.type !== 'any') {
        throw new ExpressionError(`invalid operation: not (mismatched type ${part.type})`, at);
      }
      return folded(not({ ...part, at }), [part]);
    }
    if (this.#is('-') || this.#is('+')) {
      const factor = this.#next().text === '-' ? -1 : 1;
      const part = this.#expression(SIGN_RANK);
      if (part.type !== 'number' && part.type !== 'any') {
        throw new ExpressionError(`invalid operation: - (mismatched type ${part.type})`, at);
      }
      return computed('number', at, [part], (value) => factor * asNumber(value!));
    }
    let part = this.#primary();
    for (; ; this.#chain()) {
      if (this.#take('[')) part = this.#index(part);
      else if (this.#take('.')) part = this.#member(part, false);
      else if (this.#take('?.')) part = this.#member(part, true);
      else return part;
    }
  }

  #primary(): CompiledPart {
    const word = this.#next();
    const { kind, text, at } = word;
    if (kind === 'number') return literal(Number(text.replaceAll('_', '')), at);
    if (kind === 'string') return literal(text, at);
    if (kind === 'name') return this.#named(word);
    if (text === '(') {
      const part = this.#sequence();
      this.#expect(')');
      return part;
    }
    if (text === '[') return this.#array(at);
    if (text === '{') return this.#map(at);
    if (text === '.' && this.#predicates > 0)
      return this.#member({ type: 'any', at, run: (_query, item) => item }, false);
    if (text === '#') {
      if (this.#predicates === 0)
        throw new ExpressionError('# is only allowed inside a predicate', at);
      return { type: 'any', at, run: (_query, item) => item };
    }
    return this.#unexpected(1);
  }

  #named({ text, at }: ExpressionWord): CompiledPart {
    if (text === 'true' || text === 'false') return literal(text === 'true', at);
    if (text === 'nil') return literal(null, at);
    const given = this.#names.get(text);
    if (given !== undefined) return { ...given, at };
    const instead = known(notThere, text);
    if (instead !== undefined)
      throw new ExpressionError(`expr-lang’s ${text} is not supported: ${instead}`, at);
    if (!isFunction(text)) {
      const meant = nearest(text, [
        ...Object.keys(ofQuery),
        ...Object.keys(builtins),
        ...Object.keys(overItems),
      ]);
      throw new ExpressionError(
        `unknown name ${text}${meant === null ? '' : `, did you mean ${meant}?`}`,
        at,
      );
    }
    if (!this.#take('(')) throw new ExpressionError(`${text} is a function; write ${text}()`, at);
    return this.#call(text, at, []);
  }

  #piped(first: CompiledPart): CompiledPart {
    const { kind, text, at } = this.#next();
    if (kind !== 'name' || (known(builtins, text) ?? known(overItems, text)) === undefined) {
      throw new ExpressionError(`unknown function ${text}`, at);
    }
    this.#expect('(');
    return this.#call(text, at, [first]);
  }

  #call(name: string, at: number, given: readonly CompiledPart[]): CompiledPart {
    const items = known(overItems, name);
    if (items !== undefined) return this.#predicate(items, at, given);
    const parts = [...given];
    while (!this.#take(')')) {
      if (parts.length > given.length) this.#expect(',');
      parts.push(this.#expression(0));
    }
    const read = known(ofQuery, name);
    if (read !== undefined) {
      if (parts.length > 0) throw new ExpressionError(`too many arguments to call ${name}`, at);
      return { type: read.type, at, call: name, run: (query) => read.read(query) };
    }
    const { type, arity, run } = builtins[name]!;
    if (parts.length < arity[0])
      throw new ExpressionError(`not enough arguments to call ${name}`, at);
    if (parts.length > arity[1])
      throw new ExpressionError(`too many arguments to call ${name}`, at);
    if (name === 'incidr') return inNet(parts[0]!, parts[1]!, at);
    const call: CompiledPart = {
      type,
      at,
      run(query, item) {
        const values = parts.map((part) => part.run(query, item));
        stepThrough(values);
        return run(values, query);
      },
    };
    return name === 'metadata' ? call : folded(call, parts);
  }

  #predicate(
    over: (typeof overItems)[string],
    at: number,
    given: readonly CompiledPart[],
  ): CompiledPart {
    const items = given[0] ?? this.#expression(0);
    if (given.length === 0) this.#expect(',');
    this.#predicates++;
    const braces = this.#take('{');
    const test = braces ? this.#sequence() : this.#expression(0);
    if (braces) this.#expect('}');
    this.#predicates--;
    this.#expect(')');
    return applied(over, items, test, at);
  }

  #array(at: number): CompiledPart {
    const parts: CompiledPart[] = [];
    while (!this.#take(']')) {
      if (parts.length > 0) this.#expect(',');
      if (parts.length > 0 && this.#take(']')) break;
      parts.push(this.#expression(0));
    }
    return computed('array', at, parts, (...items) => items);
  }

  /** `{a: 1, 'b': 2, (name()): 3}` */
  #map(at: number): CompiledPart {
    const keys: CompiledPart[] = [];
    const values: CompiledPart[] = [];
    while (!this.#take('}')) {
      if (keys.length > 0) this.#expect(',');
      if (keys.length > 0 && this.#take('}')) break;
      const { kind, text, at: keyAt } = this.#next();
      if (kind === 'sign' ? text !== '(' : kind === 'end') {
        this.#unexpected(1);
      }
      keys.push(kind === 'sign' ? this.#expression(0) : literal(text, keyAt));
      if (kind === 'sign') this.#expect(')');
      this.#expect(':');
      values.push(this.#expression(0));
    }
    const count = keys.length;
    return computed('map', at, [...keys, ...values], (...found) => {
      return new Map(found.slice(0, count).map((key, i) => [asString(key), found[count + i]!]));
    });
  }

  /** Parses `.name`. With `?.`, a field of nil is nil. */
  #member(of: CompiledPart, orNil: boolean): CompiledPart {
    const { kind, text, at } = this.#next();
    if (kind !== 'name') {
      this.#unexpected(1);
    }
    if (of.type !== 'map' && of.type !== 'any' && of.type !== 'nil')
      throw new ExpressionError(`type ${of.type} has no field ${text}`, at);
    return computed('any', of.at, [of], (from) =>
      orNil && from === null ? null : (asMap(from!).get(text) ?? null),
    );
  }

  /** Parses `[i]` and `[from:to]`, where negative numbers count from the end. */
  #index(of: CompiledPart): CompiledPart {
    const from = this.#is(':') ? literal(0, of.at) : this.#expression(0);
    if (!this.#take(':')) {
      this.#expect(']');
      return computed(of.type === 'string' ? 'string' : 'any', of.at, [of, from], memberOf);
    }
    const to = this.#is(']') ? literal(Infinity, of.at) : this.#expression(0);
    this.#expect(']');
    return computed(of.type, of.at, [of, from, to], (whole, first, end) => {
      const bounds = [asNumber(first!), asNumber(end!)] as const;
      return typeof whole === 'string' ? whole.slice(...bounds) : asArray(whole!).slice(...bounds);
    });
  }
}

function known<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

function isFunction(name: string): boolean {
  return [ofQuery, builtins, overItems].some((table) => Object.hasOwn(table, name));
}

/** True for operators that are words and can be negated: `not in`, `not contains`. */
function isWord({ text }: ExpressionWord): boolean {
  return /^[a-z]/i.test(text) && text !== 'and' && text !== 'or';
}
