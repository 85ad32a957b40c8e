/** The operators in expressions. */
import { compilePattern, PatternError, type Pattern } from '../../base/pattern.ts';
import { compare, isIn } from './functions.ts';
import {
  asBool,
  asNumber,
  asString,
  bounded,
  isSame,
  ITEMS_MAX,
  step,
  stepThrough,
  ExpressionValueError,
  type CompiledPart,
  type Evaluate,
  type Type,
  type ExpressionValue,
} from './expression-values.ts';
import { ExpressionError } from './expression-words.ts';

export interface Operator {
  /** An operator with a higher rank binds more tightly. The ranks are expr-lang's. */
  readonly rank: number;
  readonly rightFirst?: boolean;
  /** @throws ExpressionError for operands that can never work */
  make(left: CompiledPart, right: CompiledPart, name: string): Pick<CompiledPart, 'type' | 'run'>;
}

/** Rank of the prefixes `not` and `!`. */
export const NOT_RANK = 50;
/** The rank of the prefixes `-` and `+`. */
export const SIGN_RANK = 90;

/** An operator on two values whose types `fits` accepts. */
function typed(
  rank: number,
  type: Type,
  fits: (left: Type, right: Type) => boolean,
  run: Run,
): Operator {
  return {
    rank,
    make(left, right, name) {
      if (!fits(left.type, right.type)) mismatch(name, left, right);
      return { type, run: (query, item) => run(left.run(query, item), right.run(query, item)) };
    },
  };
}

function both(operands: Type): (left: Type, right: Type) => boolean {
  return (left, right) => mayBe(left, operands) && mayBe(right, operands);
}

function mayBe(type: Type, ...types: readonly Type[]): boolean {
  return type === 'any' || types.includes('any') || types.includes(type);
}

function plain(rank: number, operands: Type, type: Type, run: Run): Operator {
  return typed(rank, type, both(operands), run);
}

type Run = (left: ExpressionValue, right: ExpressionValue) => ExpressionValue;

function mismatch(name: string, left: CompiledPart, right: CompiledPart): never {
  throw new ExpressionError(
    `invalid operation: ${name} (mismatched types ${left.type} and ${right.type})`,
    left.at,
  );
}

function compared(run: (order: number) => boolean): Operator {
  const fits = (left: Type, right: Type): boolean =>
    both('string')(left, right) || both('number')(left, right);
  return typed(20, 'bool', fits, (left, right) => run(compare(left, right)));
}

function equal(wanted: boolean): Operator {
  const fits = (left: Type, right: Type): boolean =>
    mayBe(left, right, 'nil') || mayBe(right, left, 'nil');
  return typed(20, 'bool', fits, (left, right) => isSame(left, right) === wanted);
}

function logical(rank: number, run: (left: Evaluate, right: Evaluate) => Evaluate): Operator {
  return {
    rank,
    make(left, right, name) {
      if (!both('bool')(left.type, right.type)) mismatch(name, left, right);
      return { type: 'bool', run: run(left.run, right.run) };
    },
  };
}

const or = logical(
  10,
  (left, right) => (query, item) => asBool(left(query, item)) || asBool(right(query, item)),
);
const and = logical(
  15,
  (left, right) => (query, item) => asBool(left(query, item)) && asBool(right(query, item)),
);

const sum: Operator = {
  rank: 30,
  make(left, right, name) {
    const known = [left.type, right.type].find((type) => type !== 'any') ?? 'any';
    if (!mayBe(known, 'string', 'number')) mismatch(name, left, right);
    return plain(30, known, known, (a, b) =>
      typeof a === 'string' ? bounded(a + asString(b)) : asNumber(a) + asNumber(b),
    ).make(left, right, name);
  },
};

const matches: Operator = {
  rank: 20,
  make(left, right, name) {
    if (!mayBe(left.type, 'string')) mismatch(name, left, right);
    const { constant, at } = right;
    if (typeof constant !== 'string')
      throw new ExpressionError('the pattern of matches must be a string', at);
    const expression = compiled(constant, at);
    return {
      type: 'bool',
      run(query, item) {
        const text = asString(left.run(query, item));
        stepThrough([text]);
        return expression.test(text);
      },
    };
  },
};

function compiled(pattern: string, at: number): Pattern {
  try {
    return compilePattern(pattern);
  } catch (error) {
    if (!(error instanceof PatternError)) throw error;
    throw new ExpressionError(error.message, at);
  }
}

const within: Operator = {
  rank: 20,
  make(left, right, name) {
    if (!mayBe(right.type, 'array', 'map')) mismatch(name, left, right);
    const { constant } = right;
    if (Array.isArray(constant) && constant.every((value) => typeof value !== 'object')) {
      const members = new Set<ExpressionValue>(constant as readonly ExpressionValue[]);
      return { type: 'bool', run: (query, item) => members.has(left.run(query, item)) };
    }
    return {
      type: 'bool',
      run: (query, item) => isIn(left.run(query, item), right.run(query, item)),
    };
  },
};

const power: Operator = {
  ...plain(100, 'number', 'number', (a, b) => asNumber(a) ** asNumber(b)),
  rightFirst: true,
};

export const operators: Readonly<Record<string, Operator>> = {
  or,
  '||': or,
  and,
  '&&': and,
  '==': equal(true),
  '!=': equal(false),
  '<': compared((found) => found < 0),
  '<=': compared((found) => found <= 0),
  '>': compared((found) => found > 0),
  '>=': compared((found) => found >= 0),
  in: within,
  matches,
  contains: plain(20, 'string', 'bool', (text, part) => {
    stepThrough([text]);
    return asString(text).includes(asString(part));
  }),
  startsWith: plain(20, 'string', 'bool', (text, part) =>
    asString(text).startsWith(asString(part)),
  ),
  endsWith: plain(20, 'string', 'bool', (text, part) => asString(text).endsWith(asString(part))),
  '..': plain(25, 'number', 'array', (from, to) => range(asNumber(from), asNumber(to))),
  '+': sum,
  '-': plain(30, 'number', 'number', (a, b) => asNumber(a) - asNumber(b)),
  '*': plain(60, 'number', 'number', (a, b) => asNumber(a) * asNumber(b)),
  '/': plain(60, 'number', 'number', (a, b) => asNumber(a) / asNumber(b)),
  '%': plain(60, 'number', 'number', (a, b) => remainder(asNumber(a), asNumber(b))),
  '**': power,
  '^': power,
  '??': {
    rank: 500,
    make: (left, right) => ({
      type: left.type === right.type ? left.type : 'any',
      run: (query, item) => left.run(query, item) ?? right.run(query, item),
    }),
  },
};

function range(from: number, to: number): readonly number[] {
  const length = to - from + 1;
  if (length > ITEMS_MAX)
    throw new ExpressionValueError(`a range of ${length} items; at most ${ITEMS_MAX} are allowed`);
  step(Math.max(0, Math.ceil(length)));
  return length <= 0 ? [] : Array.from({ length }, (_, index) => from + index);
}

function remainder(a: number, b: number): number {
  if (b === 0) throw new ExpressionValueError('integer divide by zero');
  return a % b;
}
