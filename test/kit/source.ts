/** Analyses a source file's imports and globals. */
import { stripTypeScriptTypes } from 'node:module';
import { parse, type AnyNode, type Program } from 'acorn';

/** Lists a source file's imports and its globals at run time, after types have been removed. */
export interface SourceFacts {
  readonly loads: readonly Load[];
  /** Uses of names that the file does not declare itself: `NAME`, `NAME.MEMBER`, `new NAME` (with arguments). */
  readonly globals: readonly Use[];
}

/** A module or native code that a source loads. */
export interface Load {
  /** The module, or null if it is only known at run time. */
  readonly module: string | null;
  /** `import`, `import()`, `require`, `createRequire`, `getBuiltinModule`, `dlopen`, `binding` … */
  readonly how: string;
  readonly line: number;
}

export interface Use {
  readonly name: string;
  readonly line: number;
}

/** Functions of `process` that load native code, whatever their argument is. */
const native: ReadonlySet<string> = new Set(['dlopen', 'binding', '_linkedBinding']);

/** The syntax tree of a source. Types are replaced by spaces, so lines and columns stay the same. */
export function programOf(text: string): Program {
  return parse(stripTypeScriptTypes(text), {
    ecmaVersion: 'latest',
    sourceType: 'module',
    locations: true,
  });
}

export function sourceFacts(text: string): SourceFacts {
  const program = programOf(text);
  const declared = declaredNames(program);
  const loads: Load[] = [];
  const globals: Use[] = [];
  walk(program, null, (node, parent) => {
    const line = node.loc?.start.line ?? 0;
    const load = loadOf(node);
    if (load !== null) loads.push({ ...load, line });
    const name = globalOf(node, parent, declared);
    if (name !== null) globals.push({ name, line });
  });
  return { loads, globals };
}

function loadOf(node: AnyNode): Omit<Load, 'line'> | null {
  switch (node.type) {
    case 'ImportDeclaration':
    case 'ExportAllDeclaration':
      return { module: String(node.source.value), how: 'import' };
    case 'ExportNamedDeclaration':
      return node.source ? { module: String(node.source.value), how: 'import' } : null;
    case 'ImportExpression':
      return { module: literal(node.source), how: 'import()' };
    case 'CallExpression': {
      const module = literal(node.arguments[0]);
      const { callee } = node;
      if (callee.type === 'Identifier' && callee.name === 'require')
        return { module, how: 'require' };
      if (callee.type === 'CallExpression' && calleeName(callee) === 'createRequire')
        return { module, how: 'createRequire' };
      if (calleeName(node) === 'getBuiltinModule') return { module, how: 'getBuiltinModule' };
      return null;
    }
    case 'MemberExpression': {
      const how = memberName(node);
      const ofProcess = node.object.type === 'Identifier' && node.object.name === 'process';
      // `binding` is an ordinary word, except after `process`.
      if (how === null || !native.has(how) || (how === 'binding' && !ofProcess)) return null;
      return { module: null, how };
    }
    case 'VariableDeclarator': {
      // const { dlopen } = process
      if (node.id.type !== 'ObjectPattern' || node.init?.type !== 'Identifier') return null;
      if (node.init.name !== 'process') return null;
      for (const property of node.id.properties) {
        const key = property.type === 'Property' && property.key;
        if (key && key.type === 'Identifier' && native.has(key.name))
          return { module: null, how: key.name };
      }
      return null;
    }
    default:
      return null;
  }
}

/** The callee's last word: `process.getBuiltinModule(…)` → `getBuiltinModule`. */
function calleeName(node: AnyNode & { type: 'CallExpression' }): string | null {
  if (node.callee.type === 'Identifier') return node.callee.name;
  return node.callee.type === 'MemberExpression' ? memberName(node.callee) : null;
}

function memberName(node: AnyNode & { type: 'MemberExpression' }): string | null {
  if (!node.computed && node.property.type === 'Identifier') return node.property.name;
  return literal(node.property);
}

function literal(node: AnyNode | null | undefined): string | null {
  if (node?.type === 'Literal' && typeof node.value === 'string') return node.value;
  if (node?.type === 'TemplateLiteral' && node.expressions.length === 0)
    return node.quasis[0]?.value.cooked ?? null;
  return null;
}

function globalOf(
  node: AnyNode,
  parent: AnyNode | null,
  declared: ReadonlySet<string>,
): string | null {
  if (node.type !== 'Identifier' || declared.has(node.name) || !isReference(node, parent))
    return null;
  if (parent?.type === 'MemberExpression' && parent.object === node) {
    const member = memberName(parent);
    return member === null ? node.name : `${node.name}.${member}`;
  }
  const isMade = parent?.type === 'NewExpression' && parent.callee === node;
  return isMade && parent.arguments.length > 0 ? `new ${node.name}` : node.name;
}

/** True if an identifier is a value rather than a member's or key's name. */
function isReference(node: AnyNode, parent: AnyNode | null): boolean {
  switch (parent?.type) {
    case 'MemberExpression':
      return parent.object === node || parent.computed;
    case 'Property':
      return parent.value === node || parent.computed;
    case 'MethodDefinition':
    case 'PropertyDefinition':
      return parent.key !== node || parent.computed;
    case 'MetaProperty':
    case 'ImportSpecifier':
    case 'ExportSpecifier':
      return false;
    default:
      return true;
  }
}

/** Every name that the file declares, in any scope. */
function declaredNames(program: Program): ReadonlySet<string> {
  const names = new Set<string>();
  const take = (pattern: AnyNode | null | undefined): void => {
    switch (pattern?.type) {
      case 'Identifier':
        names.add(pattern.name);
        return;
      case 'ObjectPattern':
        for (const property of pattern.properties)
          take(property.type === 'Property' ? property.value : property.argument);
        return;
      case 'ArrayPattern':
        for (const element of pattern.elements) take(element);
        return;
      case 'AssignmentPattern':
        take(pattern.left);
        return;
      case 'RestElement':
        take(pattern.argument);
        return;
      default:
    }
  };
  walk(program, null, (node) => {
    if (node.type === 'VariableDeclarator') take(node.id);
    else if (node.type === 'CatchClause') take(node.param);
    else if (node.type === 'ImportSpecifier' || node.type === 'ImportDefaultSpecifier')
      take(node.local);
    else if (node.type === 'ImportNamespaceSpecifier') take(node.local);
    if ('params' in node) for (const param of node.params) take(param);
    if ('id' in node && node.id && node.type !== 'VariableDeclarator') take(node.id);
  });
  return names;
}

/** Visits a node and all nodes below it, each with its parent. */
export function walk(
  node: AnyNode,
  parent: AnyNode | null,
  visit: (node: AnyNode, parent: AnyNode | null) => void,
): void {
  visit(node, parent);
  for (const value of Object.values(node) as unknown[]) {
    for (const inner of Array.isArray(value) ? (value as unknown[]) : [value])
      if (isNode(inner)) walk(inner, node, visit);
  }
}

const isNode = (value: unknown): value is AnyNode =>
  typeof value === 'object' && value !== null && typeof (value as AnyNode).type === 'string';
