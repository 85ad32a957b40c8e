/** A parsed template. */
import type { GoValue } from './go-values.ts';

interface Printed {
  /** Its text in Go's format: `{{.Name}} 60 IN A 192.0.2.1`. */
  readonly text: string;
}

interface Placed extends Printed {
  /** Number of characters before it in the template. */
  readonly at: number;
}

/** A text to copy, or an action to evaluate. */
export type TemplateNode = TextNode | ActionNode | BranchNode | JumpNode;

export interface TextNode extends Printed {
  readonly kind: 'text';
}

/** A pipeline, whose value is printed unless it sets a variable. */
export interface ActionNode extends Printed {
  readonly kind: 'action';
  readonly pipe: Pipe;
}

/** `{{if}}`, `{{with}}` or `{{range}}`, up to its `{{end}}`. */
export interface BranchNode extends Printed {
  readonly kind: 'if' | 'with' | 'range';
  readonly pipe: Pipe;
  readonly body: readonly TemplateNode[];
  /** The nodes after `else`; an `else if` is represented by an `if` among them. */
  readonly otherwise: readonly TemplateNode[];
}

/** `{{break}}` or `{{continue}}` in the innermost `{{range}}`. */
export interface JumpNode extends Printed {
  readonly kind: 'break' | 'continue';
}

/** `$a := command | command`. */
export interface Pipe extends Placed {
  /** Variables on the left, including their `$`. */
  readonly variables: readonly string[];
  /** True for `:=`, which declares variables, and false for `=`, which assigns to them. */
  readonly declares: boolean;
  readonly commands: readonly CommandNode[];
}

export interface CommandNode extends Placed {
  readonly operands: readonly Operand[];
}

export type Operand = Placed &
  (
    | { readonly kind: 'dot' | 'nil' }
    | { readonly kind: 'literal'; readonly value: GoValue }
    | { readonly kind: 'function'; readonly name: string }
    | { readonly kind: 'field'; readonly path: readonly string[] }
    | { readonly kind: 'variable'; readonly name: string; readonly path: readonly string[] }
    | { readonly kind: 'pipe'; readonly pipe: Pipe; readonly path: readonly string[] }
  );

/** Prints nodes as text in Go's format. */
export function printNodes(nodes: readonly TemplateNode[]): string {
  return nodes.map(({ text }) => text).join('');
}
