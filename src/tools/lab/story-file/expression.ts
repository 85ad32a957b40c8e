/**
 * Expressions in expectations, which consist of step results, numbers and the four operations: `glibc.seconds` or
 * `stream.lost / stream.sent`.
 */

/** Results by name. A function is called when its result is used. */
export type Results = Readonly<Record<string, Result | (() => Result)>>;
export type Result = string | number | boolean;

export interface Mention {
  readonly step: string;
  readonly result: string;
}

export interface Expression {
  readonly mentions: readonly Mention[];
  /**
   * @param of returns the value of a mention
   * @throws RangeError if a value that must be a number is not one
   */
  value(of: (mention: Mention) => Result): Result;
}

export class BadExpression extends Error {}

type ExpressionNode = (of: (mention: Mention) => Result) => Result;

const operations: Readonly<Record<string, (a: number, b: number) => number>> = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => {
    if (b === 0) throw new RangeError(`${a} is divided by 0`);
    return a / b;
  },
};
/** The maximum number of characters in an expression. */
const LENGTH_MAX = 300;

export function parseExpression(source: string): Expression {
  if (source.length > LENGTH_MAX) throw new BadExpression('it is too long');
  const tokens = source.match(/[\w.]+|\S/g) ?? [];
  const mentions: Mention[] = [];
  let at = 0;

  const factor = (): ExpressionNode => {
    const token = tokens[at++];
    if (token === undefined) throw new BadExpression('something is missing at its end');
    if (token === '(') {
      const inner = sum();
      if (tokens[at++] !== ')') throw new BadExpression('a ")" is missing');
      return inner;
    }
    if (/^\d+(?:\.\d+)?$/.test(token)) return () => Number(token);
    const [step = '', result = '', ...more] = token.split('.');
    if (!/^[A-Za-z_]/.test(step) || !/^[A-Za-z]/.test(result) || more.length > 0)
      throw new BadExpression(`"${token}" is not a result of a step`);
    const mention = { step, result };
    mentions.push(mention);
    return (of) => of(mention);
  };
  const chain = (next: () => ExpressionNode, signs: string): ExpressionNode => {
    let left = next();
    while (at < tokens.length && signs.includes(tokens[at]!)) {
      const sign = tokens[at++]!;
      const [first, second] = [left, next()];
      left = (of) => operations[sign]!(numeric(first(of)), numeric(second(of)));
    }
    return left;
  };
  const product = (): ExpressionNode => chain(factor, '*/');
  const sum = (): ExpressionNode => chain(product, '+-');

  const value = sum();
  if (at < tokens.length) throw new BadExpression(`"${tokens[at]!}" is not allowed there`);
  return { mentions, value };
}

function numeric(value: Result): number {
  if (typeof value === 'number') return value;
  throw new RangeError(`"${String(value)}" is not a number`);
}
