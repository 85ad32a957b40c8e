/**
 * Finds metric declarations in the sources, which are calls and tables with a name directly followed by a help text.
 */
import { stripTypeScriptTypes } from 'node:module';
import { parse, type AnyNode } from 'acorn';

/** A declared metric. Parts of its name that are computed are written as `*`. */
export interface DeclaredMetric {
  readonly name: string;
  readonly kind: string;
  readonly help: string;
  readonly labels: readonly string[];
}

const METRIC = /^(?:coredns|ndots|nodejs|process|go|kuberhealthy)_[a-z0-9_*]+$/;
const kinds = ['counter', 'gauge', 'histogram', 'summary'];

type Constants = ReadonlyMap<string, AnyNode>;

/** Lists the metrics declared in a TypeScript source, in order. */
export function declaredMetrics(source: string): readonly DeclaredMetric[] {
  const program = parse(stripTypeScriptTypes(source), {
    ecmaVersion: 'latest',
    sourceType: 'module',
  });
  const constants = new Map<string, AnyNode>();
  const found = new Map<string, DeclaredMetric>();
  const nodes = nodesOf(program);
  for (const node of nodes)
    if (node.type === 'VariableDeclarator' && node.id.type === 'Identifier' && node.init)
      constants.set(node.id.name, node.init);
  for (const node of nodes) {
    const metric = metricOf(node, constants);
    if (metric !== null && !found.has(metric.name)) found.set(metric.name, metric);
  }
  return [...found.values()];
}

function nodesOf(root: AnyNode): readonly AnyNode[] {
  const found: AnyNode[] = [];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const each of value) visit(each);
    else if (typeof value === 'object' && value !== null && 'type' in value) {
      found.push(value as AnyNode);
      for (const each of Object.values(value)) visit(each);
    }
  };
  visit(root);
  return found;
}

function metricOf(node: AnyNode, constants: Constants): DeclaredMetric | null {
  if (node.type === 'ObjectExpression') {
    const part = (key: string): AnyNode | null => {
      for (const each of node.properties)
        if (each.type === 'Property' && each.key.type === 'Identifier' && each.key.name === key)
          return each.value;
      return null;
    };
    const [name, help] = [textOf(part('name'), constants), textOf(part('help'), constants)];
    if (name === null || help === null || !METRIC.test(name)) return null;
    const kind = textOf(part('kind') ?? part('type'), constants);
    return {
      name,
      help,
      kind: kind ?? kindOf(name, ''),
      labels: labelsOf(part('labels'), constants),
    };
  }
  const list =
    node.type === 'CallExpression' || node.type === 'NewExpression'
      ? node.arguments
      : node.type === 'ArrayExpression'
        ? node.elements
        : [];
  const texts = list.map((each) => textOf(each, constants));
  const at = texts.findIndex((text) => text !== null && METRIC.test(text));
  const help = texts[at + 1];
  if (at < 0 || help === undefined || help === null || !help.includes(' ')) return null;
  const name = texts[at]!;
  const callee =
    node.type === 'CallExpression' && node.callee.type === 'MemberExpression'
      ? node.callee.property
      : node.type === 'CallExpression'
        ? node.callee
        : null;
  const said = kinds.find((kind) => kind === texts[at - 1]) ?? '';
  const calleeName = callee?.type === 'Identifier' ? callee.name : '';
  const labels = list.slice(at + 2).map((each) => labelsOf(each, constants));
  return {
    name,
    help,
    kind: said === '' ? kindOf(name, calleeName) : said,
    labels: labels.find((each) => each.length > 0) ?? [],
  };
}

/** The declaring function's name determines the type. Otherwise, the suffix does, as in OpenMetrics. */
const kindOf = (name: string, callee: string): string =>
  kinds.find((kind) => callee.toLowerCase().endsWith(kind)) ??
  (name.endsWith('_total') ? 'counter' : 'gauge');

/** The value of a string literal or a concatenation, with `*` for computed parts. */
function textOf(node: AnyNode | null | undefined, constants: Constants, depth = 0): string | null {
  if (node === null || node === undefined || depth > 4) return null;
  if (node.type === 'Literal') return typeof node.value === 'string' ? node.value : null;
  if (node.type === 'TemplateLiteral')
    return node.quasis.map(({ value }) => value.cooked ?? '').join('*');
  if (node.type === 'BinaryExpression' && node.operator === '+') {
    const [left, right] = [node.left as AnyNode, node.right].map((each) =>
      textOf(each, constants, depth + 1),
    );
    return left === null && right === null ? null : `${left ?? '*'}${right ?? '*'}`;
  }
  if (node.type === 'Identifier') return textOf(constants.get(node.name), constants, depth + 1);
  // `honest('…')` adds a sentence to the help text of all Go metrics.
  if (node.type === 'CallExpression' && node.callee.type === 'Identifier')
    return node.callee.name === 'honest' ? textOf(node.arguments[0], constants, depth + 1) : null;
  return null;
}

function labelsOf(node: AnyNode | null | undefined, constants: Constants): readonly string[] {
  if (node?.type === 'Identifier') return labelsOf(constants.get(node.name), constants);
  if (node?.type !== 'ArrayExpression') return [];
  const texts = node.elements.map((each) =>
    each?.type === 'Literal' && typeof each.value === 'string' ? each.value : null,
  );
  return texts.every((text) => text !== null) ? texts : [];
}
