/** The parts of a compiled expression, one for each language construct. */
import { netHolds } from '../../base/ip.ts';
import { builtins, memberOf, readCidr, type overItems } from './functions.ts';
import {
  asArray,
  asBool,
  asMap,
  asNumber,
  asString,
  step,
  typeOf,
  type CompiledPart,
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
  return {
    type: 'bool',
    at,
    run: (query, item) => run([address.run(query, item), cidr.run(query, item)], query),
  };
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
    run: (query, item) =>
      over.run(asArray(items.run(query, item)), (one) => {
        step();
        return test.run(query, one);
      }),
  };
}

/** `[a, b]`. */
export function arrayOf(parts: readonly CompiledPart[], at: number): CompiledPart {
  return folded(
    { type: 'array', at, run: (query, item) => parts.map((part) => part.run(query, item)) },
    parts,
  );
}

/** `{key: value}`. */
export function mapOf(
  entries: readonly (readonly [CompiledPart, CompiledPart])[],
  at: number,
): CompiledPart {
  return folded(
    {
      type: 'map',
      at,
      run: (query, item) =>
        new Map(
          entries.map(([key, value]) => [asString(key.run(query, item)), value.run(query, item)]),
        ),
    },
    entries.flat(),
  );
}

/**
 * Compiles `of.name`.
 * @param orNil true if a field of nil is nil (`?.`) rather than an error
 */
export function fieldOf(of: CompiledPart, name: string, orNil: boolean): CompiledPart {
  return folded(
    {
      type: 'any',
      at: of.at,
      run(query, item) {
        const from = of.run(query, item);
        return orNil && from === null ? null : (asMap(from).get(name) ?? null);
      },
    },
    [of],
  );
}

/** `of[index]`. */
export function elementOf(of: CompiledPart, index: CompiledPart): CompiledPart {
  return {
    type: of.type === 'string' ? 'string' : 'any',
    at: of.at,
    run: (query, item) => memberOf(of.run(query, item), index.run(query, item)),
  };
}

/** Compiles `of[from:to]`, where null stands for a missing bound. */
export function sliceOf(
  of: CompiledPart,
  from: CompiledPart | null,
  to: CompiledPart | null,
): CompiledPart {
  return {
    type: of.type,
    at: of.at,
    run: (query, item) => {
      const whole = of.run(query, item);
      const first = from === null ? 0 : asNumber(from.run(query, item));
      const end = to === null ? undefined : asNumber(to.run(query, item));
      return typeof whole === 'string' ? whole.slice(first, end) : asArray(whole).slice(first, end);
    },
  };
}
