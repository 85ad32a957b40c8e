import { Problem } from '../base/problem.ts';

/** Returns the Corefile that CoreDNS and ndots use if there is no server block. */
export function builtInCorefile(port: number): string {
  return `.:${port} {\n    whoami\n    log\n}\n`;
}

/** Creates the problem that every command reports for a Corefile like this. */
export function emptyCorefile(file: string): Problem {
  return new Problem({
    code: 'corefile-empty',
    text: 'this Corefile is empty',
    place: { file, line: 1, column: 1 },
    hint: 'A server that starts with it answers every name with whoami, so no name resolves. A running server keeps its configuration.',
    remedy:
      'Check where the file comes from: a template, a ConfigMap key, or a command whose output was redirected.',
  });
}
