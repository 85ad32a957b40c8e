/** Parses a template's words into a tree. */
import { functions } from './functions.ts';
import { lex, TemplateError, type Lexeme } from './lex.ts';
import { literalValue } from './literal.ts';
import {
  printNodes,
  type BranchNode,
  type CommandNode,
  type TemplateNode,
  type Operand,
  type Pipe,
} from './template-tree.ts';

/**
 * Parses a template, supporting most of Go's text/template.
 * @throws TemplateError
 */
export function parseTemplate(source: string): readonly TemplateNode[] {
  return new TemplateParser(lex(source)).whole();
}

/** Maximum nesting depth of actions and parentheses; anything deeper is an error or an attack. */
const DEPTH_MAX = 100;

/** Words that make no sense here or are unknown, because each record is a separate template. */
const unknown: ReadonlySet<string> = new Set(['define', 'template', 'block']);

class TemplateParser {
  readonly #lexemes: readonly Lexeme[];
  #at = 0;
  #depth = 0;
  #ranges = 0;
  #variables: string[] = ['$'];

  constructor(lexemes: readonly Lexeme[]) {
    this.#lexemes = lexemes;
  }

  whole(): readonly TemplateNode[] {
    const { nodes, end } = this.#nodes();
    if (end.text !== 'EOF') this.#fail(`unexpected {{${end.text}}}`, end);
    return nodes;
  }

  get #next(): Lexeme {
    return this.#lexemes[this.#at]!;
  }

  #take(): Lexeme {
    return this.#lexemes[this.#at++]!;
  }

  #fail(message: string, { at }: Pick<Lexeme, 'at'> = this.#next): never {
    throw new TemplateError(message, at);
  }

  #unexpected(context: string, lexeme = this.#next): never {
    const shown =
      lexeme.kind === 'end'
        ? 'EOF'
        : lexeme.kind === 'field'
          ? `<.${lexeme.text}>`
          : `<${lexeme.text}>`;
    return this.#fail(
      lexeme.kind === 'end' ? `unexpected EOF` : `unexpected ${shown} in ${context}`,
      lexeme,
    );
  }

  /** Parses nodes up to the action that ends them (`else` or `end`), or up to the end of the template. */
  #nodes(): { readonly nodes: TemplateNode[]; readonly end: Lexeme } {
    const nodes: TemplateNode[] = [];
    for (;;) {
      const lexeme = this.#take();
      if (lexeme.kind === 'end') return { nodes, end: lexeme };
      if (lexeme.kind === 'text') {
        nodes.push({ kind: 'text', text: lexeme.text });
        continue;
      }
      const word = this.#next;
      if (word.kind === 'word' && (word.text === 'else' || word.text === 'end')) {
        this.#at++;
        return { nodes, end: word };
      }
      nodes.push(this.#action(word));
    }
  }

  #action(word: Lexeme): TemplateNode {
    if (word.kind === 'word') {
      switch (word.text) {
        case 'if':
        case 'with':
        case 'range':
          this.#at++;
          return this.#branch(word.text, word);
        case 'break':
        case 'continue':
          this.#at++;
          if (this.#ranges === 0) this.#fail(`{{${word.text}}} outside {{range}}`, word);
          this.#close(word.text);
          return { kind: word.text, text: `{{${word.text}}}` };
        default:
          if (unknown.has(word.text))
            this.#fail(
              `{{${word.text}}} is not supported here, because each record is one template`,
              word,
            );
      }
    }
    const pipe = this.#pipe('command');
    this.#close('command');
    return { kind: 'action', text: `{{${pipe.text}}}`, pipe };
  }

  #close(context: string): void {
    if (this.#next.kind !== 'close') this.#unexpected(context);
    this.#at++;
  }

  #branch(kind: BranchNode['kind'], word: Lexeme): BranchNode {
    if (++this.#depth > DEPTH_MAX) this.#fail('the template is nested too deeply', word);
    const outer = this.#variables.length;
    const pipe = this.#pipe(kind);
    this.#close(kind);
    if (kind === 'range') this.#ranges++;
    const { nodes: body, end } = this.#nodes();
    if (kind === 'range') this.#ranges--;
    const otherwise = end.text === 'else' ? this.#otherwise(kind) : [];
    if (end.kind === 'end') this.#fail('unexpected EOF', end);
    if (end.text === 'end') this.#close('end');
    this.#variables.length = outer;
    this.#depth--;
    const printed = otherwise.length === 0 ? '' : `{{else}}${printNodes(otherwise)}`;
    const text = `{{${kind} ${pipe.text}}}${printNodes(body)}${printed}{{end}}`;
    return { kind, text, pipe, body, otherwise };
  }

  /** Parses the nodes after `else`. `else if` and `else with` have no `end` of their own. */
  #otherwise(kind: BranchNode['kind']): TemplateNode[] {
    const word = this.#next;
    if (word.kind === 'word' && word.text === kind && kind !== 'range') {
      this.#at++;
      return [this.#branch(kind, word)];
    }
    this.#close('else');
    const { nodes, end } = this.#nodes();
    if (end.text !== 'end')
      this.#fail(end.kind === 'end' ? 'unexpected EOF' : 'expected end; found {{else}}', end);
    this.#close('end');
    return nodes;
  }

  #pipe(context: string): Pipe {
    const { at } = this.#next;
    const { variables, declares } = this.#variablesOf(context);
    const commands: CommandNode[] = [];
    for (;;) {
      if (this.#pipeEnds()) break;
      commands.push(this.#command());
      if (this.#pipeEnds()) break;
      this.#at++; // skip the |
      if (this.#pipeEnds()) this.#fail(`missing value for ${context}`);
    }
    if (commands.length === 0) this.#fail(`missing value for ${context}`);
    commands.slice(1).forEach((command, index) => {
      const [first] = command.operands;
      if (first!.kind === 'literal' || first!.kind === 'dot' || first!.kind === 'nil') {
        this.#fail(`non executable command in pipeline stage ${index + 2}`, first!);
      }
    });
    // Added last, because a variable does not exist yet in the pipeline that declares it.
    if (declares) this.#variables.push(...variables);
    const left = variables.length === 0 ? '' : `${variables.join(', ')} ${declares ? ':=' : '='} `;
    const text = left + commands.map((command) => command.text).join(' | ');
    return { at, text, variables, declares, commands };
  }

  #pipeEnds(): boolean {
    const { kind, text } = this.#next;
    return kind === 'close' || kind === 'end' || (kind === 'sign' && text === ')');
  }

  /** Parses `$x :=`, `$x =`, and for range `$i, $x :=`. */
  #variablesOf(context: string): Pick<Pipe, 'variables' | 'declares'> {
    const [first, second, third, fourth] = this.#lexemes.slice(this.#at, this.#at + 4);
    if (first!.kind !== 'variable') return { variables: [], declares: false };
    const two = second?.text === ',' && third?.kind === 'variable' && context === 'range';
    if (second?.text === ',' && !two) this.#fail(`too many declarations in ${context}`, second);
    const sign = two ? fourth : second;
    if (sign?.kind !== 'sign' || (sign.text !== ':=' && sign.text !== '='))
      return { variables: [], declares: false };
    const variables = two ? [first!.text, third.text] : [first!.text];
    const declares = sign.text === ':=';
    if (!declares) for (const name of variables) this.#known(name, first!);
    this.#at += two ? 4 : 2;
    return { variables, declares };
  }

  #known(name: string, lexeme: Lexeme): void {
    if (!this.#variables.includes(name))
      this.#fail(`undefined variable ${JSON.stringify(name)}`, lexeme);
  }

  #command(): CommandNode {
    const { at } = this.#next;
    const operands: Operand[] = [this.#operand()];
    for (;;) {
      const { kind, text, spaced } = this.#next;
      if (this.#pipeEnds() || (kind === 'sign' && text === '|'))
        return { at, text: operands.map((operand) => operand.text).join(' '), operands };
      if (!spaced) this.#unexpected('operand');
      operands.push(this.#operand());
    }
  }

  #operand(): Operand {
    const lexeme = this.#take();
    const { kind, text, at } = lexeme;
    switch (kind) {
      case 'field': {
        const path = [text, ...this.#path()];
        return { kind, at, text: dotted('', path), path };
      }
      case 'variable': {
        this.#known(text, lexeme);
        const path = this.#path();
        return { kind, at, text: dotted(text, path), name: text, path };
      }
      case 'dot':
        return { kind: 'dot', at, text: '.' };
      case 'number':
      case 'string':
      case 'char':
        return { kind: 'literal', at, value: literalValue(lexeme), text };
      case 'word':
        return this.#word(lexeme);
      case 'sign':
        if (text === '(') return this.#parenthesis(at);
        return this.#unexpected('command', lexeme);
      default:
        return this.#unexpected('command', lexeme);
    }
  }

  #word(lexeme: Lexeme): Operand {
    const { text, at } = lexeme;
    if (text === 'true' || text === 'false')
      return { kind: 'literal', at, value: text === 'true', text };
    if (text === 'nil') return { kind: 'nil', at, text };
    if (!functions.has(text)) this.#fail(`function ${JSON.stringify(text)} not defined`, lexeme);
    return { kind: 'function', at, text, name: text };
  }

  #parenthesis(at: number): Operand {
    if (++this.#depth > DEPTH_MAX) this.#fail('the template is nested too deeply', { at });
    const pipe = this.#pipe('parenthesized pipeline');
    if (this.#next.text !== ')') this.#unexpected('parenthesized pipeline');
    this.#at++;
    this.#depth--;
    const path = this.#path();
    return { kind: 'pipe', at, text: dotted(`(${pipe.text})`, path), pipe, path };
  }

  /** Parses the fields that follow without a space. */
  #path(): string[] {
    const path: string[] = [];
    while (this.#next.kind === 'field' && !this.#next.spaced) path.push(this.#take().text);
    return path;
  }
}

function dotted(text: string, path: readonly string[]): string {
  return [text, ...path].join('.');
}
