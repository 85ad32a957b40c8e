/** Finds the numbers of a source that decide something: thresholds, shares and times. */
import type { AnyNode } from 'acorn';
import { programOf, walk } from './source.ts';

/** Numbers that are not thresholds: none, one, two, half, the bits of a byte, and a second in milliseconds. */
const plain: ReadonlySet<number> = new Set([0, 0.5, 1, 2, 8, 1000]);
/** Constants that decide by their name, wherever they are used. */
const decidingName = /(?:^|_)(?:MS|SECONDS|MINUTES|SHARE|CHANCE|MIN|LEAST)(?:_|$)/;

/**
 * Lists inline numbers and declared constants that decide something, each as `LINE: TEXT`.
 *
 * - An inline number decides if it is compared by size, directly or multiplied. So does a quantile, and a share in a
 *   multiplication.
 * - A constant decides if it is compared so, or if its name has a unit or a role (`_MS`, `_SHARE`, `_MIN`).
 * - A whole number whose name ends in `_MAX` is a limit of memory and may stay beside its table. Bit masks and bytes are
 *   hexadecimal. The number of rounds of a loop, and offsets, which are added to others, do not count.
 */
export function decidingNumbers(text: string): readonly string[] {
  const program = programOf(text);
  const constants = new Map<string, AnyNode>();
  const compared = new Set<string>();
  const found: (readonly [line: number, text: string])[] = [];
  const add = (node: AnyNode): void => {
    found.push([node.loc?.start.line ?? 0, text.slice(node.start, node.end)]);
  };
  const decide = (node: AnyNode): void => {
    for (const operand of factors(node)) {
      if (isDecidingLiteral(operand)) add(operand);
      const name = operand.type === 'MemberExpression' ? operand.object : operand;
      if (name.type === 'Identifier') compared.add(name.name);
    }
  };
  walk(program, null, (node, parent) => {
    if (node.type === 'VariableDeclarator' && node.id.type === 'Identifier' && node.init) {
      if (/^[A-Z][A-Z\d_]*$/.test(node.id.name) && hasNumber(node.init))
        constants.set(node.id.name, node);
    } else if (node.type === 'BinaryExpression' && /^[<>]=?$/.test(node.operator)) {
      if (parent?.type !== 'ForStatement') [node.left, node.right].forEach(decide);
    } else if (node.type === 'BinaryExpression' && node.operator === '*') {
      for (const side of [node.left, node.right])
        if (isDecidingLiteral(side) && side.value % 1 !== 0) add(side);
    } else if (node.type === 'CallExpression' && node.callee.type === 'MemberExpression') {
      const { property } = node.callee;
      if (property.type === 'Identifier' && property.name === 'quantile')
        node.arguments.forEach(decide);
    }
  });
  for (const [name, node] of constants)
    if ((compared.has(name) || decidingName.test(name)) && !isLimitOfMemory(name, node)) add(node);
  return [
    ...new Set(found.toSorted(([a], [b]) => a - b).map(([line, each]) => `${line}: ${each}`)),
  ];
}

/** The parts of a compared value that set its size: `-3` and `0.3 * Math.max(4, n)` have 3, 0.3, 4 and n. */
function factors(node: AnyNode): readonly AnyNode[] {
  if (node.type === 'UnaryExpression') return factors(node.argument);
  if (node.type === 'BinaryExpression' && (node.operator === '*' || node.operator === '/'))
    return [...factors(node.left), ...factors(node.right)];
  const isExtreme =
    node.type === 'CallExpression' &&
    node.callee.type === 'MemberExpression' &&
    node.callee.property.type === 'Identifier' &&
    /^(?:min|max)$/.test(node.callee.property.name);
  return isExtreme ? node.arguments.flatMap(factors) : [node];
}

type NumberLiteral = AnyNode & { readonly type: 'Literal'; readonly value: number };

const isNumber = (node: AnyNode): node is NumberLiteral =>
  node.type === 'Literal' && typeof node.value === 'number' && node.raw?.startsWith('0x') !== true;

const isDecidingLiteral = (node: AnyNode): node is NumberLiteral =>
  isNumber(node) && !plain.has(node.value);

/** True for a number, a computation of numbers, and an object or a list with a number. */
function hasNumber(node: AnyNode): boolean {
  switch (node.type) {
    case 'UnaryExpression':
      return hasNumber(node.argument);
    case 'BinaryExpression':
      return hasNumber(node.left) && hasNumber(node.right);
    case 'ObjectExpression':
      return node.properties.some((each) => each.type === 'Property' && hasNumber(each.value));
    case 'ArrayExpression':
      return node.elements.some((each) => each !== null && hasNumber(each));
    default:
      return isNumber(node);
  }
}

/** True for `ROWS_MAX = 500`. A share or a probability is not a whole number. */
function isLimitOfMemory(name: string, node: AnyNode): boolean {
  let isWhole = true;
  walk(node, null, (each) => {
    if (isNumber(each) && each.value % 1 !== 0) isWhole = false;
  });
  return isWhole && name.endsWith('_MAX');
}
