/** A template as a tree, and as text in Go's format. */
import type { GoValue } from './go-values.ts';

/** A parsed template, with texts to copy and actions to evaluate. Positions are character offsets in the template. */
export type TemplateNode = TextNode | ActionNode | BranchNode | JumpNode;

export interface TextNode {
  readonly kind: 'text';
  readonly text: string;
}

/** A pipeline, whose value is printed unless it sets a variable. */
export interface ActionNode {
  readonly kind: 'action';
  readonly pipe: Pipe;
}

/** `{{if}}`, `{{with}}` or `{{range}}`, up to its `{{end}}`. */
export interface BranchNode {
  readonly kind: 'if' | 'with' | 'range';
  readonly pipe: Pipe;
  readonly body: readonly TemplateNode[];
  /** The nodes after `else`; an `else if` is represented by an `if` among them. */
  readonly otherwise: readonly TemplateNode[];
}

/** `{{break}}` or `{{continue}}` in the innermost `{{range}}`. */
export interface JumpNode {
  readonly kind: 'break' | 'continue';
}

/** `$a := command | command`. */
export interface Pipe {
  readonly at: number;
  /** Variables on the left, including their `$`. */
  readonly variables: readonly string[];
  /** True for `:=`, which declares variables, and false for `=`, which assigns to them. */
  readonly declares: boolean;
  readonly commands: readonly CommandNode[];
}

export interface CommandNode {
  readonly at: number;
  readonly operands: readonly Operand[];
}

export type Operand =
  | { readonly kind: 'dot'; readonly at: number }
  | { readonly kind: 'nil'; readonly at: number }
  | {
      readonly kind: 'literal';
      readonly at: number;
      readonly value: GoValue;
      readonly text: string;
    }
  | { readonly kind: 'function'; readonly at: number; readonly name: string }
  | { readonly kind: 'field'; readonly at: number; readonly path: readonly string[] }
  | {
      readonly kind: 'variable';
      readonly at: number;
      readonly name: string;
      readonly path: readonly string[];
    }
  | {
      readonly kind: 'pipe';
      readonly at: number;
      readonly pipe: Pipe;
      readonly path: readonly string[];
    };

/** Prints a tree as text in Go's format: `{{.Name}} 60 IN A 192.0.2.1`. */
export function printNodes(nodes: readonly TemplateNode[]): string {
  return nodes.map(printNode).join('');
}

function printNode(node: TemplateNode): string {
  switch (node.kind) {
    case 'text':
      return node.text;
    case 'action':
      return `{{${printPipe(node.pipe)}}}`;
    case 'break':
    case 'continue':
      return `{{${node.kind}}}`;
    case 'if':
    case 'with':
    case 'range': {
      const otherwise = node.otherwise.length === 0 ? '' : `{{else}}${printNodes(node.otherwise)}`;
      return `{{${node.kind} ${printPipe(node.pipe)}}}${printNodes(node.body)}${otherwise}{{end}}`;
    }
  }
}

function printPipe({ variables, declares, commands }: Pipe): string {
  const left = variables.length === 0 ? '' : `${variables.join(', ')} ${declares ? ':=' : '='} `;
  return left + commands.map((command) => command.operands.map(printOperand).join(' ')).join(' | ');
}

/** Prints an operand as text in Go's format. */
export function printOperand(operand: Operand): string {
  switch (operand.kind) {
    case 'dot':
      return '.';
    case 'nil':
      return 'nil';
    case 'literal':
      return operand.text;
    case 'function':
      return operand.name;
    case 'field':
      return fields(operand.path);
    case 'variable':
      return operand.name + fields(operand.path);
    case 'pipe':
      return `(${printPipe(operand.pipe)})${fields(operand.path)}`;
  }
}

function fields(path: readonly string[]): string {
  return path.map((name) => `.${name}`).join('');
}
