import { nearest, problemsIn } from '../base/problem.ts';
import { EXIT, type Io } from './command.ts';
import { isVerb, loadVerb, verbNames, verbSummaries } from './verbs.ts';

function help(): string {
  const width = Math.max(...verbNames.map((name) => name.length));
  return [
    'ndots: Kubernetes DNS you can see through',
    '',
    '  ndots serve --example             serve the example cluster on 127.0.0.1:1053',
    '  ndots serve -conf Corefile        serve in place of coredns',
    '  ndots trace redis.cache           what a program sends for this name, and why',
    '  ndots query @10.96.0.10 NAME      one query, as dig would send it',
    '',
    'Verbs:',
    ...[...verbSummaries].map(([name, summary]) => `  ${name.padEnd(width)}  ${summary}`),
    '',
    'Each verb has its own --help. Exit codes: 0 yes, 1 no, 2 could not find out, 3 wrong usage.',
    '',
  ].join('\n');
}

const helpWords: ReadonlySet<string> = new Set(['--help', '-help', '-h']);

/** Runs the verb that `words` name. Started with coredns's own flags (`-conf …`), it is `serve`. */
async function main(words: readonly string[], io: Io): Promise<number> {
  const [first, ...rest] = words;
  if (first === undefined) {
    io.err(help());
    return EXIT.usage;
  }
  if (helpWords.has(first)) {
    io.out(help());
    return EXIT.ok;
  }
  if (first === 'help') {
    const [about = 'help'] = rest;
    if (about !== 'help' && !isVerb(about)) return noVerb(about, io);
    io.out(about === 'help' ? help() : (await loadVerb(about)).help);
    return EXIT.ok;
  }
  if (first === '--version') return (await loadVerb('version')).run(rest, io);
  const serves = first.startsWith('-');
  if (!serves && !isVerb(first)) return noVerb(first, io);
  const command = await loadVerb(serves ? 'serve' : first);
  if (rest.some((word) => helpWords.has(word))) {
    io.out(command.help);
    return EXIT.ok;
  }
  return command.run(serves ? words : rest, io);
}

function noVerb(word: string, io: Io): number {
  const meant = nearest(word, verbNames);
  io.err(
    `ndots: there is no verb '${word}'.${meant === null ? '' : ` Did you mean '${meant}'?`}\n  ndots --help lists them.\n`,
  );
  return EXIT.usage;
}

function wantsColour(stream: NodeJS.WriteStream, env: Io['env']): boolean {
  if (env['FORCE_COLOR']) return true;
  return stream.isTTY === true && !env['NO_COLOR'] && env['TERM'] !== 'dumb';
}

async function readStdin(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

// What `ps` shows, and what the message of a second start calls the process that holds the port.
process.title = ['ndots', ...process.argv.slice(2)].join(' ');

const interrupt = new AbortController();
const io: Io = {
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  env: process.env,
  colour: wantsColour(process.stdout, process.env),
  columns: process.stdout.columns ?? 100,
  signal: interrupt.signal,
  stdin: readStdin,
};

// Who reads through `head` has seen enough: no message, and the exit code that the shell gives a program ended by SIGPIPE.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(141);
  process.stderr.write(`ndots: cannot write to standard output: ${error.message}\n`);
  process.exit(EXIT.failed);
});
process.stderr.on('error', () => process.exit(EXIT.failed));

async function toExitCode(): Promise<number> {
  try {
    return await main(process.argv.slice(2), io);
  } catch (error) {
    const problems = problemsIn(error);
    if (problems === null) throw error;
    for (const problem of problems) io.err(`ndots: ${problem.print()}\n`);
    return EXIT.failed;
  }
}

const code = await toExitCode();
// A slow reader gets all of it, and an error of the stream has its say; a socket or timer that a lookup which was cut
// short left behind keeps nobody waiting.
if (process.stdout.writableLength > 0)
  await new Promise((resolve) => process.stdout.write('', resolve));
await new Promise(setImmediate);
process.exit(code);
