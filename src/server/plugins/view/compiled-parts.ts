/** The parts of a compiled expression, one for each language construct. */
import { netHolds } from '../../base/ip.ts';
import { builtins, readCidr, type overItems } from './functions.ts';
import {
  asArray,
  asBool,
  step,
  typeOf,
  type CompiledPart,
  type Evaluate,
  type Type,
  type ExpressionValue,
} from './expression-values.ts';
import { ExpressionError } from './expression-words.ts';

export function literal(value: ExpressionValue, at: number): CompiledPart {
  return { type: typeOf(value), at, constant: value, run: () => value };
}

export function not({ run, at }: Pick<CompiledPart, 'run' | 'at'>): CompiledPart {
  return { type: 'bool', at, run: (query, item) => !asBool(run(query, item)) };
}

/**
 * Returns the part, or its value if it consists only of constants. If evaluating it fails, the first query reports the
 * error, like any other.
 */
export function folded(part: CompiledPart, from: readonly CompiledPart[]): CompiledPart {
  if (from.some(({ constant }) => constant === undefined)) return part;
  try {
    const constant = part.run(nobody, null);
    return { ...part, constant, run: () => constant };
  } catch {
    return part;
  }
}

/** A placeholder for the query while constants are evaluated, because they do not depend on it. */
const nobody = null as never;

/**
 * The `incidr` function. By far the most common condition, `incidr(client_ip(), '…')`, compares the bytes of the
 * client's address instead of texts.
 */
export function inNet(address: CompiledPart, cidr: CompiledPart, at: number): CompiledPart {
  const { constant } = cidr;
  if (typeof constant === 'string') {
    const net = readCidr(constant);
    if (net === null) throw new ExpressionError(`invalid CIDR address: ${constant}`, cidr.at);
    if (address.call === 'client_ip') {
      return {
        type: 'bool',
        at,
        run: (query) => netHolds(net, query.peer, query.peerAt, query.family === 4 ? 4 : 16),
      };
    }
  }
  const { run } = builtins['incidr']!;
  return computed('bool', at, [address, cidr], (...values) => run(values, nobody));
}

/** `condition ? yes : no`. */
export function chosen(condition: CompiledPart, yes: CompiledPart, no: CompiledPart): CompiledPart {
  return {
    type: yes.type === no.type ? yes.type : 'any',
    at: condition.at,
    run: (query, item) =>
      asBool(condition.run(query, item)) ? yes.run(query, item) : no.run(query, item),
  };
}

/** A function over the items in an array, such as `any(items, test)`. */
export function applied(
  over: (typeof overItems)[string],
  items: CompiledPart,
  test: CompiledPart,
  at: number,
): CompiledPart {
  return {
    type: over.type,
    at,
    run(query, item) {
      const value = (one: ExpressionValue): ExpressionValue => {
        step();
        return test.run(query, one);
      };
      return over.run(asArray(items.run(query, item)), (one) => asBool(value(one)), value);
    },
  };
}

/** A part computed from the values of others. If all of them are constants, so is the result. */
export function computed(
  type: Type,
  at: number,
  parts: readonly CompiledPart[],
  run: (...values: ExpressionValue[]) => ExpressionValue,
): CompiledPart {
  const evaluate: Evaluate = (query, item) => run(...parts.map((part) => part.run(query, item)));
  return folded({ type, at, run: evaluate }, parts);
}
