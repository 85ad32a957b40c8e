/** `ndots lab up`, `exec` and `down`: manage a lab that keeps running until it is ended. */
import { closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { errorCode } from '../../../server/base/error-code.ts';
import { Problem } from '../../../server/base/problem.ts';
import { FILE_MAX } from '../../../server/base/read-file.ts';
import { findPod, LabCluster } from '../../../tools/lab/cluster.ts';
import { INTERNET, usualCorefile, usualNodeResolvConf } from '../../../tools/lab/defaults.ts';
import { wordsBehind } from '../../../tools/lab/files.ts';
import { furnish, startIsolated } from '../../../tools/lab/isolation.ts';
import { lacksOfMachine } from '../../../tools/lab/machine.ts';
import { endProcess } from '../../../server/runtime/end-process.ts';
import { startProgram } from '../../../server/runtime/programs.ts';
import {
  firstProcess,
  hasEnded,
  ownDirectory,
  readStanding,
  wordsInside,
  writeStanding,
  type StandingLab,
  type StandingPod,
} from '../../../tools/lab/standing.ts';
import { parseAnswers } from '../../../tools/resolver/answers-file.ts';
import { EXIT, type Io } from '../command.ts';
import type { LabOptions } from './lab-options.ts';
import { checkCoredns, INSIDE, ownWords, REPORT_FD } from './lab-perform.ts';
import { readText } from '../named-file.ts';
import { whyFailed } from '../../../server/base/why-failed.ts';

/** State directory of this user's labs. */
const directory = join(tmpdir(), `ndots-lab-${process.getuid?.() ?? 0}`);
const file = join(directory, 'lab.json');
/** Output of the lab's processes. */
const log = join(directory, 'log');
const example = fileURLToPath(new URL('../../../../examples/cluster', import.meta.url));
/** Time limit for a lab to end, milliseconds. */
const DOWN_MS = 10_000;

/** Sent to the lab after saving its state. */
const STANDS = 'stands\n';

/** Sent by the lab when it is ready. */
interface Ready {
  readonly pods: readonly StandingPod[];
  readonly services: readonly string[];
}

/** Runs `up`, `exec` or `down`, depending on `options.action`. */
export async function standingLab(options: LabOptions, io: Io): Promise<number> {
  if (io.env[INSIDE] !== undefined) return standInside(options, io);
  if (options.action === 'up') return up(options, io);
  if (options.action === 'down') return down(io);
  return exec(options, io);
}

async function up(options: LabOptions, io: Io): Promise<number> {
  const lacks = lacksOfMachine(io.env['PATH'] ?? '', options.run.mode);
  if (lacks.length > 0) {
    throw new Problem({
      code: 'no-lab',
      text: `cannot create a lab here: it needs ${lacks.join(', ')}`,
      remedy: 'ndots lab run --model plays stories without a lab',
    });
  }
  if (readStanding(file) !== null) throw standsAlready();
  checkCoredns(options.run.coredns);
  const corefile = options.corefile === null ? [] : ['--corefile', resolve(options.corefile)];
  const words = [
    ...ownWords(),
    'lab',
    'up',
    '-f',
    resolve(options.file ?? example),
    ...corefile,
    '--mode',
    options.run.mode,
  ];
  const server =
    options.run.coredns === null ? [] : ['--server', `coredns=${resolve(options.run.coredns)}`];
  ownDirectory(directory);
  const logFile = openSync(log, 'w');
  const child = startIsolated(
    [...words, ...server],
    { ...io.env, [INSIDE]: '1' },
    ['pipe', logFile, logFile, 'pipe'],
    { outlives: true },
  );
  closeSync(logFile);
  const report = child.stream(REPORT_FD);
  const text = await new Promise<string>((done) => {
    let line = '';
    report.on('data', (chunk: Buffer) => {
      line += chunk.toString();
      if (line.endsWith('\n')) done(line);
    });
    void child.ended.then(() => done(''));
  });
  report.destroy();
  const pid = child.pid === undefined || text === '' ? null : firstProcess(child.pid);
  if (pid === null) {
    throw new Problem({
      code: 'lab-ended',
      text: 'the lab could not be created',
      hint:
        readFileSync(log, 'utf8')
          .trim()
          .replace(/^ndots lab: /, '') || undefined,
    });
  }
  const { pods, services } = JSON.parse(text) as Ready;
  try {
    // Recreates the directory if `down` removed it.
    ownDirectory(directory);
    writeStanding(file, pid, pods);
  } catch (error) {
    child.signal('SIGKILL');
    throw errorCode(error) === 'EEXIST' ? standsAlready() : notWritten(error);
  }
  // Until it receives this, the lab ends together with this process.
  child.stdin?.end(STANDS);
  child.unref();
  const width = Math.max(...pods.map(({ namespace, pod }) => namespace.length + pod.length + 1));
  for (const { namespace, pod, addresses, node } of pods)
    io.out(`${`${namespace}/${pod}`.padEnd(width)}  ${(addresses[0] ?? '').padEnd(15)}  ${node}\n`);
  for (const service of services) io.out(`service ${service}\n`);
  const first = pods.find(({ namespace }) => namespace !== 'kube-system') ?? pods[0];
  const [, namespace, service] =
    services
      .map((each) => /^([^/\s]+)\/(\S+)/.exec(each))
      .find((found) => found?.[1] !== 'kube-system') ?? [];
  const name = service === undefined ? 'kube-dns.kube-system' : `${service}.${namespace}`;
  io.out(
    `\nTry: ndots lab exec ${first?.namespace}/${first?.pod} -- getent ahosts ${name}\nndots lab down takes it down.\n`,
  );
  return EXIT.ok;
}

function standsAlready(): Problem {
  return new Problem({
    code: 'lab-stands',
    text: 'a lab is running already',
    remedy: 'ndots lab down ends it; ndots lab exec POD -- CMD runs a program in it',
  });
}

function notWritten(error: unknown): Problem {
  return new Problem({
    code: 'unwritable-file',
    text: `${file}: cannot save the state of the lab: ${whyFailed(error)}`,
    remedy: 'use another directory: TMPDIR=DIR ndots lab up',
    cause: error,
  });
}

async function exec({ words: [name = ''], program }: LabOptions, io: Io): Promise<number> {
  const standing = theLab();
  const { name: machine, files } = findPod(standing.pods, name);
  const words = wordsInside(standing, wordsBehind(machine, files, program));
  const { code, signal, error } = await startProgram(words, { stdio: 'inherit', env: io.env })
    .closed;
  if (error !== null) throw error;
  return code ?? (signal === 'SIGINT' ? EXIT.interrupted : EXIT.failed);
}

async function down(io: Io): Promise<number> {
  const standing = readStanding(file);
  if (standing === null) {
    rmSync(directory, { recursive: true, force: true });
    io.out('No lab stands.\n');
    return EXIT.ok;
  }
  // When the lab's first process ends, so do all others, and the namespaces disappear.
  process.kill(standing.pid, 'SIGKILL');
  for (let waited = 0; !hasEnded(standing) && waited < DOWN_MS; waited += 50)
    await new Promise((done) => setTimeout(done, 50));
  rmSync(directory, { recursive: true, force: true });
  io.out('The lab is gone.\n');
  return EXIT.ok;
}

/** `down` cannot find the lab until it is recorded, so before that it ends with the process that started it. */
function endWithStarter(): void {
  let stands = false;
  process.stdin.on('data', () => (stands = true));
  process.stdin.on('close', () => {
    if (!stands) endProcess(EXIT.failed);
  });
}

async function standInside(
  { file: manifests, corefile, run }: LabOptions,
  io: Io,
): Promise<number> {
  endWithStarter();
  furnish();
  const lab = await LabCluster.start(
    {
      manifests: manifests ?? example,
      corefile: corefile === null ? usualCorefile : readText(corefile, 'Corefile', FILE_MAX.small),
      nodeResolvConf: usualNodeResolvConf,
      mode: run.mode,
      ipv6: true,
      internet: {
        addresses: [INTERNET],
        script: parseAnswers({ delay: 1, rules: [] }, 'the internet'),
      },
    },
    { ndots: ownWords(), coredns: run.coredns, env: io.env },
  );
  const ready: Ready = {
    pods: [...lab.pods.values()],
    services: lab.serviceNames(),
  };
  writeSync(REPORT_FD, `${JSON.stringify(ready)}\n`);
  closeSync(REPORT_FD);
  // Runs until killed.
  return new Promise(() => setInterval(() => undefined, 60_000));
}

function theLab(): StandingLab {
  const standing = readStanding(file);
  if (standing !== null) return standing;
  throw new Problem({
    code: 'no-lab-stands',
    text: 'no lab is running',
    remedy: 'ndots lab up starts one',
  });
}
