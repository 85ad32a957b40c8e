/** `ndots doctor FILE…`: collects observations from captures, logs and counters. */
import { printSpan } from '../../../server/base/elapsed.ts';
import { problemsIn } from '../../../server/base/problem.ts';
import type { Diagnosis } from '../../../tools/doctor/diagnosis.ts';
import type { Observations } from '../../../tools/doctor/observe/observations.ts';
import type { SearchDomains } from '../../../tools/capture/pair/search-walk.ts';
import { printRemark } from '../../../tools/capture/read/packets/remarks.ts';
import { Reading, usualPorts } from '../../../tools/capture/read/reading.ts';
import { QuerySample, sameTraffic } from '../../../tools/capture/same-traffic.ts';
import { Redaction } from '../../../tools/capture/redaction.ts';
import { Examination } from '../../../tools/doctor/examination.ts';
import { everything, type Part } from '../../../tools/doctor/part-diagnosis.ts';
import { capturePackets, remarkOnLosses, whileGone } from '../capture/capture-live.ts';
import { packetsFile } from '../capture/capture-output.ts';
import type { Io } from '../command.ts';
import type { DoctorOptions } from './doctor-options.ts';
import { readLean } from '../capture/lean-reading.ts';
import { readingProgress } from '../capture/reading-progress.ts';
import { openGiven } from '../named-capture.ts';
import { comesOnce } from '../named-file.ts';
import { tellProblems } from '../problem-text.ts';
import { untilAborted } from '../until-signal.ts';

const LIVE_MS = 60_000;
const signals = ['SIGINT', 'SIGTERM'] as const;

/**
 * Reads all inputs.
 * @param parts time ranges, each examined separately using the exchanges that began in it
 * @param domains learned in an earlier pass
 */
export async function observe(
  options: DoctorOptions,
  io: Io,
  parts: readonly Part[] = [everything],
  domains?: SearchDomains,
): Promise<{ reading: Reading; observed: readonly Observations[]; failed: number }> {
  const examination = new Examination(domains, parts);
  const reading = new Reading(examination.events, options.ports ?? usualPorts, examination.extent);
  const stop = new AbortController();
  const interrupt = (): void => stop.abort();
  for (const signal of signals) process.once(signal, interrupt);
  let failed = 0;
  const atOnce = readLean();
  try {
    if (options.device !== null) await live(options, options.device, reading, stop, io);
    const together = await readSameTraffic(options, reading, stop.signal, io);
    for (const path of options.files) {
      if (stop.signal.aborted) break;
      if (together.has(path)) continue;
      const before = examination.understood;
      try {
        const { remarks } = reading;
        const input = await openGiven(path, remarks, stop.signal);
        const close = (): void => input.close();
        stop.signal.addEventListener('abort', close);
        const progress = options.quiet ? null : readingProgress(io, input, reading);
        try {
          await reading.read(input, () => stop.signal.aborted);
        } finally {
          if (progress !== null) clearInterval(progress);
          stop.signal.removeEventListener('abort', close);
          input.close();
        }
        if (input.format === 'empty') failed += stop.signal.aborted ? 0 : 1;
        else if (
          input.format === 'text' &&
          before === examination.understood &&
          examination.unknownLines > 0
        ) {
          failed++;
          remarks.add(`${input.name} is not a capture or a query log, and has no known counter`);
        }
      } catch (error) {
        const problems = problemsIn(error);
        if (problems === null) throw error;
        failed++;
        tellProblems('doctor', problems, io);
      }
    }
  } finally {
    atOnce();
    for (const signal of signals) process.removeListener(signal, interrupt);
  }
  reading.end();
  examination.noteUnread(reading);
  const { observed } = examination;
  for (const { what, most, count: many } of observed[0]!.leftOut)
    reading.remarks.add(
      `${what} beyond the limit of ${most}: counted in the totals, but not examined individually`,
      '',
      many,
    );
  for (const remark of reading.remarks.list) io.err(`ndots doctor: ${printRemark(remark)}\n`);
  return { reading, observed, failed };
}

/**
 * Reads captures that contain the same packets as if they were one. Skips all others and those it cannot read.
 * @returns the files that were read
 */
async function readSameTraffic(
  { files, ports }: DoctorOptions,
  reading: Reading,
  signal: AbortSignal,
  io: Io,
): Promise<ReadonlySet<string>> {
  const read = new Set<string>();
  const paths = [...new Set(files)].filter((file) => !comesOnce(file));
  if (paths.length < 2) return read;
  const samples = [];
  for (const path of paths) samples.push(await sampleOf(path, ports, signal));
  for (const group of sameTraffic(samples)) {
    if (group.length < 2 || signal.aborted) continue;
    const captures = await Promise.all(
      group.map(async ({ at, aheadMs }) => ({
        input: await openGiven(paths[at]!, reading.remarks, signal),
        aheadMs,
      })),
    );
    try {
      await reading.readTogether(captures, () => signal.aborted);
      reading.end();
    } finally {
      for (const { input } of captures) input.close();
    }
    for (const { at } of group) read.add(paths[at]!);
    const clocks = group.flatMap(({ at, aheadMs }) =>
      aheadMs === 0 ? [] : [`the clock of ${paths[at]!} is ${printAhead(aheadMs)}`],
    );
    io.err(
      `ndots doctor: ${group.map(({ at }) => paths[at]!).join(', ')} have the same packets: each counts once${clocks.map((text) => `; ${text}`).join('')}\n`,
    );
  }
  return read;
}

function printAhead(ms: number): string {
  return `${Math.abs(ms).toFixed(1)} ms ${ms > 0 ? 'ahead' : 'behind'}`;
}

/** The first queries in a capture. Empty if the file is unreadable or not a capture. */
async function sampleOf(
  path: string,
  ports: DoctorOptions['ports'],
  signal: AbortSignal,
): Promise<QuerySample> {
  const sample = new QuerySample();
  const reading = new Reading({ message: (message) => sample.add(message) }, ports ?? usualPorts);
  try {
    const input = await openGiven(path, reading.remarks, signal);
    const isCapture = input.format === 'pcap' || input.format === 'pcapng';
    if (isCapture) await reading.readWhole(input, () => sample.isFull || signal.aborted);
    else input.close();
  } catch (error) {
    // The file will be read again, and the error is reported then.
    if (problemsIn(error) === null) throw error;
  }
  return sample;
}

async function live(
  options: DoctorOptions,
  device: string,
  reading: Reading,
  stop: AbortController,
  io: Io,
): Promise<void> {
  const forMs = options.forMs ?? LIVE_MS;
  const parts = { device, netns: options.netns, ports: options.ports ?? usualPorts };
  const capture = capturePackets(
    parts,
    (bytes, start, end, timeMs, port) => reading.takeNetwork(bytes, start, end, timeMs, port),
    (why) => why === null || reading.remarks.add(whileGone(why)),
  );
  if (!options.quiet)
    io.err(`ndots doctor: ${capture.name}, for ${printSpan(forMs)}; Ctrl-C ends sooner\n`);
  const timer = setTimeout(() => stop.abort(), forMs);
  await untilAborted(stop.signal);
  clearTimeout(timer);
  capture.stop();
  remarkOnLosses(capture, reading);
}

/** Writes the packets of all exchanges mentioned in findings to the `--evidence` file. */
export function writeEvidence(
  { evidence, redactKey }: DoctorOptions,
  { findings }: Diagnosis,
): void {
  const redaction = redactKey === null ? null : new Redaction(redactKey);
  const file = packetsFile(evidence!);
  const exchanges = new Set(findings.flatMap((finding) => finding.exchanges));
  for (const exchange of [...exchanges].toSorted((one, other) => one.sentMs - other.sentMs))
    file.exchange(redaction === null ? exchange : redaction.exchange(exchange));
  file.close();
}
