/** Finds the functions of a source that are longer than a number of lines. */
import type { AnyNode } from 'acorn';
import { programOf, walk } from './source.ts';

export interface LongFunction {
  /** The name of the function, method or variable. Empty if the function has none. */
  readonly name: string;
  readonly lines: number;
}

export function longFunctions(text: string, most: number): readonly LongFunction[] {
  const found: LongFunction[] = [];
  walk(programOf(text), null, (node, parent) => {
    const isFunction =
      node.type === 'FunctionDeclaration' ||
      node.type === 'FunctionExpression' ||
      node.type === 'ArrowFunctionExpression';
    if (!isFunction || !node.loc) return;
    const lines = node.loc.end.line - node.loc.start.line + 1;
    if (lines > most) found.push({ name: nameOf(node, parent), lines });
  });
  return found;
}

function nameOf(node: AnyNode, parent: AnyNode | null): string {
  for (const each of [node, parent]) {
    const name = each !== null && ('id' in each ? each.id : 'key' in each ? each.key : null);
    if (name && (name.type === 'Identifier' || name.type === 'PrivateIdentifier')) return name.name;
  }
  return '';
}
