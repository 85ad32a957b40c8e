import { Problem } from '../base/problem.ts';

/** The Corefile that CoreDNS and ndots use if there is no server block. */
export function builtInCorefile(port: number): string {
  return `.:${port} {\n    whoami\n    log\n}\n`;
}

/** The problem that every verb reports for such a Corefile. */
export function emptyCorefile(file: string): Problem {
  return new Problem({
    code: 'corefile-empty',
    text: 'there is nothing in this Corefile',
    place: { file, line: 1, column: 1 },
    hint: 'A server that starts with it answers every name by whoami, so that no name resolves; one that runs keeps what it has.',
    remedy:
      'Look at what writes it: a template, a key of a ConfigMap, a command before a redirection.',
  });
}
