/** Passes a command line to its command and sets the process's exit code. */
import { once } from 'node:events';
import { drawHashKey } from '../../server/base/hash.ts';
import { nearest, problemsIn } from '../../server/base/problem.ts';
import { secureRandom } from '../../server/base/random.ts';
import { shortened } from '../../server/base/shortened.ts';
import { whyFailed } from '../../server/base/why-failed.ts';
import { endProcess } from '../../server/runtime/end-process.ts';
import { EXIT, failure, type Io } from './command.ts';
import { ProgressLine } from './progress-line.ts';
import { harmless } from './terminal.ts';
import { interrupted, interruptSignal, outlivesOutput, wasInterrupted } from './until-signal.ts';
import {
  isVerb,
  splitVerb,
  verbNames,
  verbSummaries,
  wantsHelp,
  type VerbName,
} from './verb-names.ts';
import { isBuiltIn, loadUsage, loadVerb } from './verbs.ts';

async function help({ program, columns }: Io): Promise<string> {
  const { beside, wrap } = await import('./page.ts');
  const built = verbNames.filter(isBuiltIn);
  const all = built.length === verbNames.length;
  const width = Math.max(...built.map((name) => name.length));
  const rows = (pairs: Iterable<readonly [string, string]>, room: number): readonly string[] =>
    [...pairs].flatMap(([left, what]) =>
      beside(`  ${left.padEnd(room)}  `, what, room + 4, { columns }),
    );
  return [
    ...wrap(`${program}: Kubernetes DNS you can see through`, '', { columns }),
    '',
    ...rows(
      [
        [`${program} serve --example`, 'serve the example cluster on 127.0.0.1:1053'],
        [`${program} serve -conf Corefile`, 'serve in place of coredns'],
        ...(all
          ? ([
              [`${program} trace redis.cache`, 'show what a program sends for this name, and why'],
              [`${program} query @10.96.0.10 NAME`, 'send one query, as dig does'],
            ] as const)
          : []),
      ],
      program.length + 27,
    ),
    '',
    'Verbs:',
    ...rows(
      built.map((name) => [name, verbSummaries.get(name)!]),
      width,
    ),
    ...(all ? [] : [`The ndots-tools image has ${verbNames.length - built.length} more.`]),
    '',
    ...wrap(
      'Run VERB --help for its options. Exit codes: 0 yes or done, 1 no, 2 could not run, 3 usage error.',
      '',
      { columns },
    ),
    '',
  ].join('\n');
}

async function verbHelp(verb: VerbName, { program, columns }: Io): Promise<string> {
  const { helpText } = await import('./option-help.ts');
  return helpText(program, verb, verbSummaries.get(verb) ?? '', await loadUsage(verb), columns);
}

/** Runs the command that `words` select. coredns's own flags (`-conf …`) select `serve`. */
async function main(words: readonly string[], io: Io): Promise<number> {
  const [first, ...rest] = words;
  if (first === undefined) {
    io.err(await help(io));
    return EXIT.usage;
  }
  if (wantsHelp([first])) {
    io.out(await help(io));
    return EXIT.ok;
  }
  if (first === 'help') {
    const [about = 'help', more] = rest;
    if (more !== undefined) {
      io.err(`ndots: help accepts only one verb, and "${more}" is a second word\n`);
      return EXIT.usage;
    }
    if (about !== 'help' && !isVerb(about)) return noVerb(about, io);
    if (about !== 'help' && !isBuiltIn(about)) return notBuiltIn(about, io);
    io.out(about === 'help' ? await help(io) : await verbHelp(about, io));
    return EXIT.ok;
  }
  if (first === '__complete') {
    const { complete, printCandidates } = await import('./completion/complete.ts');
    io.out(printCandidates(await complete(rest, io.env)));
    return EXIT.ok;
  }
  if (first === '--version') return (await loadVerb('version')).run(rest, io);
  const { verb, own } = splitVerb(words);
  if (!isVerb(verb)) return noVerb(verb, io);
  if (!isBuiltIn(verb)) return notBuiltIn(verb, io);
  if (wantsHelp(own)) {
    io.out(await verbHelp(verb, io));
    return EXIT.ok;
  }
  try {
    return await Promise.race([(await loadVerb(verb)).run(own, io), interrupted]);
  } catch (error) {
    // An interrupted command prints no error.
    if (wasInterrupted() && problemsIn(error) !== null) return EXIT.interrupted;
    return failure(verb, error, io);
  }
}

/** Terminal width. Terminals that do not know their size report 0 or nothing. */
function columnsOf(stream: NodeJS.WriteStream): number {
  return stream.columns || 100;
}

/**
 * Output width. As with git, ls and man, `COLUMNS` takes precedence. Shells export it only on request, and it is the
 * only source for the width in a pipe.
 */
function columnsWanted(stream: NodeJS.WriteStream, { COLUMNS = '' }: Io['env']): number {
  return /^[1-9]\d{0,4}$/.test(COLUMNS) ? Number(COLUMNS) : columnsOf(stream);
}

// Every command may read untrusted data.
drawHashKey(secureRandom);

const progress =
  process.stderr.isTTY && process.env['TERM'] !== 'dumb'
    ? new ProgressLine({
        write: (text) => void process.stderr.write(text),
        columns: () => columnsOf(process.stderr),
        nowMs: () => performance.now(),
      })
    : null;

/** Writes to a stream. Pipes and files receive the same text as terminals, where they often end up later. */
function writerTo(stream: NodeJS.WriteStream): (text: string) => void {
  return (text) => {
    progress?.clear();
    stream.write(harmless(text));
  };
}

function noVerb(word: string, io: Io): number {
  const meant = nearest(word, verbNames);
  io.err(
    `ndots: there is no verb '${word}'.${meant === null ? '' : ` Did you mean '${meant}'?`}\n  ${io.program} --help lists them.\n`,
  );
  return EXIT.usage;
}

function notBuiltIn(verb: VerbName, io: Io): number {
  io.err(
    `ndots: this image contains only the DNS server. The ndots-tools image of the same version has the verb '${verb}'.\n`,
  );
  return EXIT.usage;
}

function wantsColour(stream: NodeJS.WriteStream, env: Io['env']): boolean {
  if (env['FORCE_COLOR']) return true;
  return stream.isTTY === true && !env['NO_COLOR'] && env['TERM'] !== 'dumb';
}

const readStdin: Io['stdin'] = async (what, mostBytes) =>
  (await import('./named-file.ts')).readStream(process.stdin, what, mostBytes);

// Shown by `ps`, and in the error message if a second process uses the same port.
process.title = ['ndots', ...process.argv.slice(2)].join(' ');

const tellError = writerTo(process.stderr);

const io: Io = {
  out: writerTo(process.stdout),
  err: (text) => tellError(shortened(text)),
  async taken(signal) {
    if (process.stdout.writableNeedDrain)
      await once(process.stdout, 'drain', { signal }).catch(() => undefined);
  },
  progress: (text) => progress?.tell(text),
  env: process.env,
  colour: wantsColour(process.stdout, process.env),
  columns: columnsWanted(process.stdout, process.env),
  // Created on first use, because without it, Ctrl-C ends the command as usual.
  get signal() {
    return interruptSignal();
  },
  stdin: readStdin,
  program: process.env['NDOTS_PROGRAM'] ?? 'ndots',
};

// If a reader such as `head` closes the pipe early, there is no message. The exit code is what shells report for
// SIGPIPE.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') endProcess(141);
  // The disk is full or the stream was closed. Servers carry on without their log.
  if (outlivesOutput()) return;
  const why = error.code === 'EBADF' ? 'it is closed' : whyFailed(error);
  process.stderr.write(`ndots: cannot write to standard output: ${why}\n`);
  endProcess(EXIT.failed);
});
process.stderr.on('error', () => endProcess(EXIT.failed));

// Neither the clock's timers nor idle connections keep the process alive, so this timer does.
setInterval(() => undefined, 60_000);
const code = await main(process.argv.slice(2), io);
progress?.clear();
// Waits until a slow reader has received all output, but does not wait for an interrupted lookup's sockets and timers.
if (process.stdout.writableLength > 0)
  await new Promise((resolve) => process.stdout.write('', resolve));
if (process.stderr.writableLength > 0)
  await new Promise((resolve) => process.stderr.write('', resolve));
await new Promise(setImmediate);
endProcess(code);
