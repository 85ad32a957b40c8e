/** Evaluates templates. */
import { functions } from './functions.ts';
import { TemplateError } from './lex.ts';
import {
  type BranchNode,
  type CommandNode,
  type TemplateNode,
  type Operand,
  type Pipe,
} from './template-tree.ts';
import {
  isList,
  isMap,
  isTrue,
  printValue,
  Struct,
  typeOf,
  TemplateValueError,
  type GoValue,
} from './go-values.ts';

/** If the text is longer, it is an error rather than a record. */
const OUTPUT_MAX = 65_536;
/** Maximum number of iterations for all loops in a template together. */
const ROUNDS_MAX = 10_000;

/**
 * Evaluates a template with `data` as the initial dot.
 * @throws TemplateError if a value has the wrong type
 */
export function evaluate(nodes: readonly TemplateNode[], data: GoValue): string {
  const run = new TemplateRun(data);
  run.walk(nodes, data);
  return run.output;
}

type Jump = 'break' | 'continue' | null;

class TemplateRun {
  output = '';
  #rounds = 0;
  readonly #variables: { readonly name: string; value: GoValue }[];

  constructor(data: GoValue) {
    this.#variables = [{ name: '$', value: data }];
  }

  walk(nodes: readonly TemplateNode[], dot: GoValue): Jump {
    for (const node of nodes) {
      const jump = this.#node(node, dot);
      if (jump !== null) return jump;
    }
    return null;
  }

  #node(node: TemplateNode, dot: GoValue): Jump {
    switch (node.kind) {
      case 'text':
        this.#write(node.text);
        return null;
      case 'action': {
        const value = this.#pipe(node.pipe, dot);
        if (node.pipe.variables.length === 0) {
          this.#guard(node.pipe.at, node.text, () => this.#write(printValue(value)));
        }
        return null;
      }
      case 'break':
      case 'continue':
        return node.kind;
      case 'if':
      case 'with':
      case 'range': {
        const outer = this.#variables.length;
        const jump = this.#branch(node, dot);
        this.#variables.length = outer;
        return jump;
      }
    }
  }

  #write(text: string): void {
    this.output += text;
    if (this.output.length > OUTPUT_MAX)
      throw new TemplateError(`the text is longer than ${OUTPUT_MAX} characters`, 0);
  }

  #branch(node: BranchNode, dot: GoValue): Jump {
    if (node.kind === 'range') return this.#range(node, dot);
    const value = this.#pipe(node.pipe, dot);
    if (!isTrue(value)) return this.walk(node.otherwise, dot);
    return this.walk(node.body, node.kind === 'with' ? value : dot);
  }

  #range(node: BranchNode, dot: GoValue): Jump {
    const value = this.#pipe(node.pipe, dot, false);
    const { pipe } = node;
    const size = sizeOf(value);
    if (size === null)
      throw new TemplateError(`range can't iterate over ${printValue(value)}`, pipe.at);
    if (size === 0n) return this.walk(node.otherwise, dot);
    const outer = this.#variables.length;
    for (const [key, item] of items(value)) {
      if (++this.#rounds > ROUNDS_MAX)
        throw new TemplateError(`range exceeds ${ROUNDS_MAX} iterations`, pipe.at);
      const given = pipe.variables.length === 1 ? [item] : [key, item];
      pipe.variables.forEach((name, index) => this.#set(name, given[index], pipe.declares));
      const jump = this.walk(node.body, item);
      this.#variables.length = outer;
      if (jump === 'break') break;
    }
    return null;
  }

  #set(name: string, value: GoValue, declare: boolean): void {
    if (declare) this.#variables.push({ name, value });
    else this.#variables.findLast((variable) => variable.name === name)!.value = value;
  }

  /** @param assign false if range assigns its own variables */
  #pipe({ variables, declares, commands }: Pipe, dot: GoValue, assign = true): GoValue {
    let value: GoValue;
    let piped: GoValue[] = [];
    for (const command of commands) {
      value = this.#command(command, dot, piped);
      piped = [value];
    }
    if (assign) for (const name of variables) this.#set(name, value, declares);
    return value;
  }

  #command({ operands }: CommandNode, dot: GoValue, piped: readonly GoValue[]): GoValue {
    const [first, ...rest] = operands as readonly [Operand, ...Operand[]];
    if (first.kind === 'function') return this.#call(first, rest, dot, piped);
    if (first.kind === 'nil') throw new TemplateError('nil is not a command', first.at);
    if (first.kind === 'field' || first.kind === 'variable' || first.kind === 'pipe') {
      if (first.path.length > 0)
        return this.#fields(first, first.path, dot, () => [
          ...rest.map((operand) => this.#operand(operand, dot)),
          ...piped,
        ]);
    }
    if (rest.length > 0 || piped.length > 0) {
      throw new TemplateError(`can't give argument to non-function ${first.text}`, first.at);
    }
    return this.#operand(first, dot);
  }

  #operand(operand: Operand, dot: GoValue): GoValue {
    switch (operand.kind) {
      case 'dot':
        return dot;
      case 'nil':
        return null;
      case 'literal':
        return operand.value;
      case 'function':
        return this.#call(operand, [], dot, []);
      case 'field':
      case 'variable':
      case 'pipe':
        return this.#fields(operand, operand.path, dot, () => []);
    }
  }

  #call(
    operand: Operand & { readonly kind: 'function' },
    rest: readonly Operand[],
    dot: GoValue,
    piped: readonly GoValue[],
  ): GoValue {
    const { name, at } = operand;
    const { least, most, run } = functions.get(name)!;
    const count = rest.length + piped.length;
    if (count < least || count > most) {
      const wanted =
        most === Infinity
          ? `at least ${least}`
          : least === most
            ? `${least}`
            : `${least} to ${most}`;
      throw new TemplateError(`wrong number of args for ${name}: want ${wanted} got ${count}`, at);
    }
    if (name === 'and' || name === 'or') return this.#logical(name === 'or', rest, dot, piped);
    const values = [...rest.map((one) => this.#operand(one, dot)), ...piped];
    return this.#guard(at, name, () => run(values), `error calling ${name}: `);
  }

  /** Values after the deciding one are not evaluated. */
  #logical(
    by: boolean,
    rest: readonly Operand[],
    dot: GoValue,
    piped: readonly GoValue[],
  ): GoValue {
    let value: GoValue;
    for (const operand of rest) {
      value = this.#operand(operand, dot);
      if (isTrue(value) === by) return value;
    }
    return piped.length > 0 ? piped[0] : value;
  }

  /** Evaluates `.A.B`, `$x.A` and `(…).A`. Only the last field in a path can have arguments. */
  #fields(
    operand: Operand & { readonly kind: 'field' | 'variable' | 'pipe' },
    path: readonly string[],
    dot: GoValue,
    given: () => readonly GoValue[],
  ): GoValue {
    let value = dot;
    if (operand.kind === 'variable')
      value = this.#variables.findLast(({ name }) => name === operand.name)!.value;
    if (operand.kind === 'pipe') value = this.#pipe(operand.pipe, dot);
    path.forEach((name, index) => {
      const from = value;
      value = this.#guard(operand.at, operand.text, () =>
        fieldOf(from, name, index === path.length - 1 ? given() : []),
      );
    });
    return value;
  }

  /** Adds the position of a value that has the wrong type. */
  #guard<T>(at: number, what: string, run: () => T, lead = ''): T {
    try {
      return run();
    } catch (error) {
      if (!(error instanceof TemplateValueError)) throw error;
      throw new TemplateError(`at <${what}>: ${lead}${error.message}`, at);
    }
  }
}

function fieldOf(value: GoValue, name: string, given: readonly GoValue[]): GoValue {
  if (value === null || value === undefined)
    throw new TemplateValueError(`nil pointer evaluating ${typeOf(value)}.${name}`);
  if (value instanceof Struct) {
    const method = value.method(name);
    if (method !== null) {
      if (given.length === method.arguments) return method.run(given);
      throw new TemplateValueError(
        `wrong number of args for ${name}: want ${method.arguments} got ${given.length}`,
      );
    }
    const field = value.field(name);
    if (field !== null && given.length === 0) return field();
    if (field !== null)
      throw new TemplateValueError(`${name} has arguments but cannot be invoked as function`);
  } else if (isMap(value)) {
    if (given.length > 0) throw new TemplateValueError(`${name} is not a method but has arguments`);
    return value.get(name);
  }
  throw new TemplateValueError(`can't evaluate field ${name} in type ${typeOf(value)}`);
}

/** Returns how often a loop over this value runs, or null if it cannot be iterated. */
function sizeOf(value: GoValue): bigint | null {
  if (typeof value === 'bigint') return value > 0n ? value : 0n;
  if (isList(value)) return BigInt(value.length);
  if (isMap(value)) return BigInt(value.size);
  return value === null || value === undefined ? 0n : null;
}

function* items(value: GoValue): Generator<readonly [GoValue, GoValue]> {
  if (typeof value === 'bigint') for (let at = 0n; at < value; at++) yield [at, at];
  else if (isList(value)) for (let at = 0; at < value.length; at++) yield [BigInt(at), value[at]];
  else if (isMap(value))
    for (const key of [...value.keys()].toSorted()) yield [key, value.get(key)];
}
