import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { evaluate } from './evaluate.ts';
import { TemplateError } from './lex.ts';
import { parseTemplate } from './parse.ts';
import { printNodes } from './template-tree.ts';
import { printValue, Struct, type GoValue } from './go-values.ts';

const data = new Struct(
  'data',
  {
    Name: () => 'Ä.example.',
    Empty: () => '',
    Number: () => 7n,
    Half: () => 0.5,
    True: () => true,
    Match: () => ['ip-10', '10'],
    None: () => [],
    Group: () =>
      new Map<string, GoValue>([
        ['a', '10'],
        ['b', 'x'],
      ]),
    Question: () => new Struct('question', { Qtype: () => 1n }),
  },
  { Meta: { arguments: 1, run: ([label]) => `meta:${printValue(label)}` } },
);

const run = (text: string): string => evaluate(parseTemplate(text), data);

function refusal(text: string): string {
  try {
    run(text);
  } catch (error) {
    assert.ok(error instanceof TemplateError, String(error));
    return `${error.at}: ${error.message}`;
  }
  return 'not refused';
}

describe('Go templates', () => {
  /** Templates and the output of Go's text/template. */
  const cases: readonly (readonly [string, string])[] = [
    ['plain', 'plain'],
    ['{{ .Name }} 60', 'Ä.example. 60'],
    ['{{.Question.Qtype}}', '1'],
    ['{{ index .Match 1 }}', '10'],
    ['{{ index .Group "a" }}|{{ index .Group "nope" }}|', '10||'],
    ['{{ .Group.a }}|{{ .Group.nope }}', '10|<no value>'],
    ['{{ (index .Match 0) }}', 'ip-10'],
    ['{{ (.Question).Qtype }}', '1'],
    ['{{ .Meta "a/b" }}', 'meta:a/b'],
    ['{{ "a/b" | .Meta }}', 'meta:a/b'],
    ['{{ .Meta (print "x" 1) }}', 'meta:x1'],
    ['{{ $.Name }}', 'Ä.example.'],
    ['a {{- " b " -}} c', 'a b c'],
    ['a {{- /* gone */ -}} b', 'ab'],
    ['a{{/* gone */}}b', 'ab'],
    ['{{- 3 }}', '3'],
    ['{{-3}}', '-3'],
    ['a\n{{- "x" }}', 'ax'],
    ['{{ $x := "v" }}{{ $x }}{{ $x = "w" }}{{ $x }}', 'vw'],
    ['{{ if .Empty }}a{{ else }}b{{ end }}', 'b'],
    ['{{ if .Empty }}a{{ else if .True }}b{{ else }}c{{ end }}', 'b'],
    ['{{ if eq .Number 7 }}seven{{ end }}', 'seven'],
    ['{{ if and .True (eq (len .Match) 2) }}yes{{ end }}', 'yes'],
    ['{{ with .Group.a }}<{{ . }}>{{ else }}none{{ end }}', '<10>'],
    ['{{ with .Empty }}a{{ else with .Name }}{{ . }}{{ end }}', 'Ä.example.'],
    ['{{ range .Match }}[{{ . }}]{{ end }}', '[ip-10][10]'],
    ['{{ range $i, $m := .Match }}{{ $i }}={{ $m }};{{ end }}', '0=ip-10;1=10;'],
    ['{{ range $k, $v := .Group }}{{ $k }}={{ $v }};{{ end }}', 'a=10;b=x;'],
    ['{{ range .None }}x{{ else }}empty{{ end }}', 'empty'],
    ['{{ range 3 }}{{ . }}{{ end }}', '012'],
    ['{{ range .Match }}{{ . }}{{ break }}{{ end }}', 'ip-10'],
    ['{{ range $i, $m := .Match }}{{ if eq $i 0 }}{{ continue }}{{ end }}{{ $m }}{{ end }}', '10'],
    ['{{ $x := 1 }}{{ range .Match }}{{ $x = 2 }}{{ end }}{{ $x }}', '2'],
    ['{{ $x := 1 }}{{ if true }}{{ $x := 2 }}{{ end }}{{ $x }}', '1'],
    ['{{ or .Empty .Name }}', 'Ä.example.'],
    ['{{ and .Empty (index .Match 9) }}|', '|'],
    ['{{ not .Empty }}', 'true'],
    ['{{ eq .Group.b "a" "x" }}', 'true'],
    ['{{ lt 1 2 }}{{ le 2 2 }}{{ gt 1 2 }}{{ ge 1 2 }}{{ ne "a" "b" }}', 'truetruefalsefalsetrue'],
    ['{{ lt "a" "b" }}', 'true'],
    ['{{ len .Name }}', '11'],
    ['{{ slice .Name 3 6 }}', 'exa'],
    ['{{ index "A" 0 }}', '65'],
    ['{{ print 1 2 "a" 3 }}', '1 2a3'],
    ['{{ println "a" 1 }}', 'a 1\n'],
    ['{{ printf "%03d-%s" .Number .Group.a }}', '007-10'],
    ['{{ .Number | printf "%x-%d" 255 }}', 'ff-7'],
    ['{{ parseInt "ff" 16 8 }}.{{ parseInt .Group.a 10 8 }}', '255.10'],
    ['{{ parseInt "18446744073709551615" 10 64 }}', '18446744073709551615'],
    ['{{ `raw "x"\\n` }}', 'raw "x"\\n'],
    [String.raw`{{ "q\"\t\x41é\101" }}`, 'q"\tAéA'],
    ["{{ 'a' }}", '97'],
    ['{{ 0x1F }} {{ 0b11 }} {{ 0o17 }} {{ 1_000 }} {{ 1.50 }} {{ 1e3 }}', '31 3 15 1000 1.5 1000'],
    ['{{ .Half }} {{ .True }} {{ .Match }} {{ .Group }}', '0.5 true [ip-10 10] map[a:10 b:x]'],
    ['{{ html "<a>" }} {{ urlquery "a b&c" }} {{ js "it\'s" }}', "&lt;a&gt; a+b%26c it\\'s"],
  ];
  for (const [text, wanted] of cases)
    test(`${JSON.stringify(text)} outputs ${JSON.stringify(wanted)}`, () =>
      assert.equal(run(text), wanted));

  /** Template, position and reason for errors that the parser finds. */
  const mistakes: readonly (readonly [string, string])[] = [
    ['a {{ .Name', '2: unclosed action'],
    ['a {{ /* x', '2: unclosed comment'],
    ['{{ }}', '3: missing value for command'],
    ['{{ foo }}', '3: function "foo" not defined'],
    ['{{ .Name | foo }}', '11: function "foo" not defined'],
    ['{{ $x }}', '3: undefined variable "$x"'],
    ['{{ if true }}{{ $x := 1 }}{{ end }}{{ $x }}', '38: undefined variable "$x"'],
    ['{{ if .Name }}', '14: unexpected EOF'],
    ['{{ end }}', '3: unexpected {{end}}'],
    ['{{ else }}', '3: unexpected {{else}}'],
    ['{{ if }}x{{ end }}', '6: missing value for if'],
    ['{{ break }}', '3: {{break}} outside {{range}}'],
    ['{{ "a }}', '3: unterminated quoted string'],
    ['{{ "a""b" }}', '6: unexpected <"b"> in operand'],
    ['{{ ( .Name }}', '11: unclosed left paren'],
    ['{{ .Name ) }}', '9: unexpected right paren'],
    ['{{ .Name | }}', '11: missing value for command'],
    ['{{ .Name | "x" }}', '11: non executable command in pipeline stage 2'],
    ['{{ % }}', '3: unexpected "%" in command'],
    ['{{ 12x }}', '3: bad number syntax: "12x"'],
    [
      '{{ define "x" }}{{ end }}',
      '3: {{define}} is not supported here, because each record is one template',
    ],
    ['{{ $a, $b := .Name }}', '5: too many declarations in command'],
  ];
  for (const [text, wanted] of mistakes)
    test(`${text} is rejected: ${wanted}`, () => assert.equal(refusal(text), wanted));

  /** The same for errors found during evaluation. */
  const failures: readonly (readonly [string, string])[] = [
    ['{{ .Nope }}', "3: at <.Nope>: can't evaluate field Nope in type data"],
    ['{{ .Name.X }}', "3: at <.Name.X>: can't evaluate field X in type string"],
    ['{{ index .Match 5 }}', '3: at <index>: error calling index: index out of range: 5'],
    [
      '{{ parseInt "x" 16 8 }}',
      '3: at <parseInt>: error calling parseInt: strconv.ParseUint: parsing "x": invalid syntax',
    ],
    [
      '{{ parseInt "256" 10 8 }}',
      '3: at <parseInt>: error calling parseInt: strconv.ParseUint: parsing "256": value out of range',
    ],
    [
      '{{ parseInt .Group.nope 10 8 }}',
      '3: at <parseInt>: error calling parseInt: invalid value; expected string',
    ],
    ['{{ lt 1 "a" }}', '3: at <lt>: error calling lt: incompatible types for comparison'],
    ['{{ len 3 }}', '3: at <len>: error calling len: len of type int'],
    ['{{ not }}', '3: wrong number of args for not: want 1 got 0'],
    ['{{ .Name "x" }}', '3: at <.Name>: Name has arguments but cannot be invoked as function'],
    ['{{ "x" "y" }}', '3: can\'t give argument to non-function "x"'],
    ['{{ .Meta }}', '3: at <.Meta>: wrong number of args for Meta: want 1 got 0'],
    ['{{ nil }}', '3: nil is not a command'],
    ['{{ range .Name }}{{ end }}', "9: range can't iterate over Ä.example."],
    ['{{ range 100000 }}{{ end }}', '9: range exceeds 10000 iterations'],
    ['{{ .Question }}', "3: at <{{.Question}}>: can't print a value of type question"],
  ];
  for (const [text, wanted] of failures)
    test(`${text} fails: ${wanted}`, () => assert.equal(refusal(text), wanted));

  test('a template is printed as in Go', () => {
    const text =
      '{{ .Name }} 60 {{ if eq $.Type "A" }}A {{ index .Match 1 }}{{ else }}TXT{{ end }}{{ $x := (len .Name) | printf "%d" }}';
    assert.equal(
      printNodes(parseTemplate(text)),
      '{{.Name}} 60 {{if eq $.Type "A"}}A {{index .Match 1}}{{else}}TXT{{end}}{{$x := (len .Name) | printf "%d"}}',
    );
  });

  test('deeply nested actions are rejected rather than overflowing the stack', () => {
    assert.match(
      refusal(`${'{{ if true }}'.repeat(200)}${'{{ end }}'.repeat(200)}`),
      /nested too deeply/,
    );
    assert.match(refusal(`{{ ${'('.repeat(200)}1${')'.repeat(200)} }}`), /nested too deeply/);
  });
});
