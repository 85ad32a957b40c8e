import './signals.ts';
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
    '  ndots trace redis.cache           what a client in a pod sends for this name, and why',
    '',
    'Verbs:',
    ...[...verbSummaries].map(([name, summary]) => `  ${name.padEnd(width)}  ${summary}`),
    '',
    'Each verb has its own --help. Exit codes: 0 yes, 1 no, 2 could not find out, 3 wrong usage.',
    '',
  ].join('\n');
}

/** Runs the verb that `words` name. Started with coredns's own flags (`-conf …`), it is `serve`. */
async function main(words: readonly string[], io: Io): Promise<number> {
  const [first, ...rest] = words;
  if (first === undefined || first === '--help' || first === '-h' || first === 'help') {
    const about = first === 'help' ? rest[0] : undefined;
    if (about !== undefined && isVerb(about)) {
      io.out((await loadVerb(about)).help);
      return EXIT.ok;
    }
    io.out(help());
    return first === undefined ? EXIT.usage : EXIT.ok;
  }
  if (first === '--version') return (await loadVerb('version')).run([], io);
  if (first.startsWith('-')) return (await loadVerb('serve')).run(words, io);
  if (!isVerb(first)) {
    const meant = nearest(first, verbNames);
    io.err(
      `ndots: there is no verb '${first}'.${meant === null ? '' : ` Did you mean '${meant}'?`}\n`,
    );
    io.err('ndots --help lists them.\n');
    return EXIT.usage;
  }
  const command = await loadVerb(first);
  if (rest.includes('--help') || rest.includes('-h')) {
    io.out(command.help);
    return EXIT.ok;
  }
  return command.run(rest, io);
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

try {
  process.exitCode = await main(process.argv.slice(2), io);
} catch (error) {
  const problems = problemsIn(error);
  if (problems === null) throw error;
  for (const problem of problems) io.err(`ndots: ${problem.print()}\n`);
  process.exitCode = EXIT.failed;
}
