/** `on`: runs commands when the server starts or stops. */
import { builtins } from '../../base/builtins.ts';
import { position, required } from '../../corefile/positions.ts';
import { directive } from '../../corefile/syntax.ts';
import { value, wrong } from '../../corefile/word-values.ts';
import type { ControlContext } from '../../engine/contract/control-context.ts';
import { definePlugin, type Plugin } from '../../engine/contract/plugin.ts';
import { splitCommand } from './split-command.ts';
import { whyFailed } from '../../base/why-failed.ts';

const events = ['startup', 'shutdown', 'certrenew'] as const;

const event = value('startup|shutdown|certrenew', ({ text }) => {
  const found = events.find((name) => name === text.toLowerCase());
  return (
    found ??
    wrong(
      `Wrong event name or event not supported: '${text}'`,
      `Known events: ${events.join(', ')}.`,
    )
  );
});

/** Maximum time to wait for a command at shutdown, in milliseconds. */
const PATIENCE_MS = 10_000;

interface CommandLine {
  readonly program: string;
  readonly words: readonly string[];
  readonly background: boolean;
}

const command = position(
  'COMMAND [ARGUMENTS…] [&]',
  'a program and its arguments, run without a shell; quote words that contain blanks. If the line ends with `&`, the server does not wait for the program',
  (line): CommandLine => {
    const text = line
      .takeAll()
      .map((token) => token.text)
      .join(' ');
    const words = splitCommand(text);
    if (words === null)
      return line.refuse('error parsing command: EOF found when expecting closing quote');
    const [program, ...rest] = words;
    if (program === undefined) return line.refuse(`no command contained in '${text}'`);
    const background = rest.at(-1) === '&';
    return { program, words: background ? rest.slice(0, -1) : rest, background };
  },
);

const syntax = directive({
  name: 'on',
  summary: 'runs commands when the server starts and stops',
  repeat: 'each',
  args: {
    event: required(event, {
      help: 'the event that triggers the command; `certrenew` never occurs',
    }),
    command,
  },
});

/** Runs the command as the process's user, with the same environment and standard output. */
export const on: Plugin = definePlugin({
  syntax,
  operational: true,
  control({ event: when, command: line }, context) {
    if (when === 'startup') context.onStart(() => run(line, context));
    if (when === 'shutdown')
      context.onShutdown(() => run(line, context), line.background ? 0 : PATIENCE_MS);
  },
});

/** Resolves once the command has ended, successfully or not, or at once if there is no need to wait. */
function run(
  { program, words, background }: CommandLine,
  { log, env, path }: ControlContext,
): Promise<void> {
  const text = [program, ...words].join(' ');
  log.raw(`[INFO] ${background ? 'Nonblocking' : 'Blocking'} Command "${text}"`);
  return new Promise((resolve) => {
    const ended = (why: string): void => {
      if (why !== '') log.error(`Command "${text}" failed: ${why}`);
      resolve();
    };
    const child = builtins.childProcess().spawn(program, words, {
      stdio: 'inherit',
      cwd: path('.'),
      env: { ...env },
    });
    child.once('error', (error) => ended(whyFailed(error)));
    child.once('exit', (code, signal) => {
      if (signal !== null) ended(`signal: ${signal}`);
      else ended(code === 0 ? '' : `exit status ${code}`);
    });
    if (!background) return;
    child.unref();
    resolve();
  });
}
