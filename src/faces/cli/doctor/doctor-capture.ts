/** `ndots doctor FILE…`: captures, logs and counters, read to observations. */
import { printElapsed, printSpan } from '../../../server/base/elapsed.ts';
import { problemsIn } from '../../../server/base/problem.ts';
import type { Diagnosis } from '../../../tools/doctor/diagnosis.ts';
import { isLost } from '../../../tools/capture/pair/seen-exchange.ts';
import type { Observations } from '../../../tools/doctor/observe/observations.ts';
import type { SearchDomains } from '../../../tools/capture/pair/search-walk.ts';
import { listed, sentence, share } from '../../../tools/doctor/texts.ts';
import { findingKinds } from '../../../tools/doctor/findings/table.ts';
import { printRemark } from '../../../tools/capture/read/packets/remarks.ts';
import { Reading, usualPorts } from '../../../tools/capture/read/reading.ts';
import { QuerySample, sameTraffic } from '../../../tools/capture/same-traffic.ts';
import { Redaction } from '../../../tools/capture/redaction.ts';
import { Examination } from '../../../tools/doctor/examination.ts';
import { everything, type Part } from '../../../tools/doctor/part-diagnosis.ts';
import type { AddressOwners } from '../../../server/kube/pods/address-owners.ts';
import { capturePackets } from '../capture/capture-live.ts';
import { packetsFile } from '../capture/capture-output.ts';
import type { Io } from '../command.ts';
import type { DoctorOptions } from './doctor-options.ts';
import { readLean } from '../capture/lean-reading.ts';
import { count } from '../page.ts';
import { readingProgress } from '../capture/reading-progress.ts';
import { openGiven } from '../named-capture.ts';
import { comesOnce } from '../named-file.ts';

/** How long to look where nothing is said. */
const LIVE_MS = 60_000;
const signals = ['SIGINT', 'SIGTERM'] as const;

/**
 * What is beside a part belongs to it when a query of it is waited for, or was asked before:
 * milliseconds.
 */
const BESIDE_MS = 20_000;

/**
 * Reads all that there is.
 * @param parts what is looked at, each by itself: what began in it
 * @param domains that were learned when all was looked at before
 */
export async function observe(
  options: DoctorOptions,
  io: Io,
  parts: readonly Part[] = [everything],
  domains?: SearchDomains,
): Promise<{ reading: Reading; observed: readonly Observations[]; failed: number }> {
  const examination = new Examination(domains, parts);
  const reading = new Reading(examination.events, options.ports ?? usualPorts, {
    fromMs: Math.min(...parts.map(({ fromMs }) => fromMs)) - BESIDE_MS,
    toMs: Math.max(...parts.map(({ toMs }) => toMs)) + BESIDE_MS,
    domains: examination.domains,
  });
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
          remarks.add(
            `${input.name} is no capture, no query log, and has no counter that is known`,
          );
        }
      } catch (error) {
        const problems = problemsIn(error);
        if (problems === null) throw error;
        failed++;
        for (const problem of problems) io.err(`ndots doctor: ${problem.print()}\n`);
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
      `${what} than the ${most} that are looked at one by one: they are in the sums only`,
      '',
      many,
    );
  for (const remark of reading.remarks.list) io.err(`ndots doctor: ${printRemark(remark)}\n`);
  return { reading, observed, failed };
}

/**
 * Reads captures together that have the same packets. Files that cannot be read, and all else, are
 * left for later.
 *
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

/** The first queries of a capture; none of what is not one, or cannot be read. */
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
    // It is read again, and then reported.
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
  const capture = capturePackets(parts, (...packet) => reading.takeNetwork(...packet));
  if (!options.quiet)
    io.err(`ndots doctor: ${capture.name}, for ${printSpan(forMs)}; Ctrl-C ends sooner\n`);
  const timer = setTimeout(() => stop.abort(), forMs);
  if (!stop.signal.aborted)
    await new Promise<void>((resolve) => {
      stop.signal.addEventListener('abort', () => resolve(), { once: true });
    });
  clearTimeout(timer);
  capture.stop();
  if (capture.dropped() > 0)
    reading.remarks.add(
      'packets came faster than they were taken, and are lost',
      '',
      capture.dropped(),
    );
}

/** What was read, in two lines. */
export function captureHead(
  { totals }: Reading,
  observed: Observations,
  { findings }: Diagnosis,
  owners: AddressOwners,
): string {
  const { asked, lost } = observed.total;
  const named = observed.clients.list.filter(({ address }) => owners.has(address)).length;
  const counts = (['critical', 'warning', 'info'] as const).map(
    (severity) =>
      `${findings.filter((finding) => finding.severity === severity).length} ${severity}`,
  );
  const failing = errorsOf(observed);
  const times =
    totals.lastMs > totals.firstMs
      ? `, ${((totals.lastMs - totals.firstMs) / 1000).toFixed(0)} s`
      : '';
  const { lines, errors } = observed.logged;
  const ofLogs =
    lines === 0
      ? []
      : [`${count(lines, 'line', 'lines')} of logs, ${count(errors, 'error', 'errors')}`];
  const found = `${counts.join(', ')} of ${new Set(findingKinds.flatMap(({ code, inCapture }) => (inCapture === undefined ? [] : code))).size} things that were looked for`;
  if (asked === 0 && lines > 0) return [...ofLogs, found].join('\n');
  return [
    ...ofLogs,
    `${count(asked, 'query', 'queries')}${times}, ${count(observed.lookups, 'lookup', 'lookups')} (${observed.slowLookups} took a second or more), ${lost} without reply`,
    `${count(observed.clients.size, 'client', 'clients')}${owners.size > 0 ? ` (${named} with a name)` : ''}, ${count(observed.servers.size, 'server', 'servers')}; ${found}`,
    ...(failing === '' ? [] : [failing]),
  ].join('\n');
}

/** From so large a share on the head of a report names an error, whatever explains it. */
const MANY_ERRORS = { least: 10, share: 0.1 };

function errorsOf({ total }: Observations): string {
  const replies = total.asked - total.lost;
  const kinds = [
    ['SERVFAIL', total.servfail],
    ['REFUSED', total.refused],
    ['other errors (FORMERR, NOTIMP …)', total.error],
  ] as const;
  return kinds
    .filter(([, many]) => many >= MANY_ERRORS.least && many >= MANY_ERRORS.share * replies)
    .map(([name, many]) => `${share(many, replies)} replies are ${name}`)
    .join('; ');
}

/** Replies that take so long are felt: nobody is told then that it is not DNS. */
const SLOW_MS = 800;

/** So many lost queries, and of all so many, are more than a packet that gets lost now and then. */
const FEW = 2;
const FEW_SHARE = 0.02;

/** What stands where nothing critical was found. */
export function captureWell(observed: Observations, { findings, excluded }: Diagnosis): string {
  const { total, servers, cut } = observed;
  if (cut.messages > 0 && excluded.length === 0)
    return `Nothing critical was found, but of ${cut.messages} of ${cut.of} messages the capture has only the beginning: that replies came can be seen, and not what they say. Take packets whole: tcpdump -s 0.`;
  if (total.asked < 20) return 'Nothing critical was found, but there is little to judge by.';
  const slowest = Math.max(...servers.list.map((server) => server.quantile(0.9)));
  if (slowest >= SLOW_MS)
    return `Nothing critical was found, but one reply in ten took ${printElapsed(slowest / 2)} or more: programs wait for it.`;
  // Programs do not notice what is only counted.
  if (findings.some(({ severity, counted }) => severity === 'warning' && counted === undefined))
    return 'Nothing critical was found, but something in these lookups is not as it should be: see above.';
  // No message was read: these are the lines of logs.
  if (cut.of === 0)
    return `Nothing critical was found, as far as logs show: nine of ten replies took no longer than ${printElapsed(slowest)} in the server. A log has what the server answered; queries and replies that get lost on the way are seen in a capture alone.`;
  if (total.lost >= FEW && total.lost >= FEW_SHARE * total.asked)
    return `Nothing critical was found, but ${total.lost} of ${total.asked} queries got no reply: programs waited for them, and they are too few to tell why. Capture for longer, or on the node.`;
  const errors = total.servfail + total.refused + total.error;
  if (errors >= FEW && errors >= FEW_SHARE * total.asked)
    return `Nothing critical was found, but ${errors} of ${total.asked} replies are errors: programs may fail because of them.`;
  const doubt = doubtOf(observed);
  if (doubt !== null) return `Nothing critical was found, but ${doubt}`;
  const lost =
    total.lost === 0 ? 'every query' : `${total.asked - total.lost} of ${total.asked} queries`;
  return `Not DNS, as far as this shows: ${lost} got a reply, nine of ten within ${printElapsed(slowest)}. If programs fail or wait, look elsewhere, or capture where they are.`;
}

/** So many lookups that end without an address are more than names that somebody misspelled. */
const FAILED = { least: 3, share: 0.05 };
/** Names of which each lookup fails. */
const ALWAYS = 3;

/** Resolvers wait so long and longer before they retry, milliseconds: a program feels it. */
const WAITED_MS = 2000;

/** Why the capture does not prove that DNS is well; null: nothing speaks against it. */
function doubtOf(observed: Observations): string | null {
  const { lookups, slowLookups, failedLookups, askedAgain, losses, domains, givenUp } = observed;
  if (slowLookups >= FEW && slowLookups >= FEW_SHARE * lookups)
    return `${slowLookups} of ${lookups} lookups took a second or more: their programs waited.`;
  const again = askedAgain.unexplained(losses).length;
  if (again >= FAILED.least)
    return `${again} questions were asked again after their reply had passed: the replies may get lost between here and the clients. Capture there.`;
  const refused = givenUp.rejected.length;
  if (refused >= FAILED.least)
    return `${refused} replies came to ports that their clients had closed: the programs had stopped waiting.`;
  const names = [...failedLookups.names.entries].flatMap(([name, { failed, found }]) =>
    failed >= ALWAYS && found === 0 && domains.domainOf(name) === null ? [name] : [],
  );
  if (names.length > 0)
    return `${names.length === 1 ? 'one name' : `${names.length} names`} never resolved: ${sentence(listed(names))} If they should exist, that is the fault.`;
  if (failedLookups.count >= FAILED.least && failedLookups.count >= FAILED.share * lookups)
    return `${failedLookups.count} of ${lookups} lookups ended without an address.`;
  const waits = observed.affected
    .filter(({ exchanges }) => exchanges.some(isLost))
    .map(({ startMs, endMs }) => endMs - startMs)
    .filter((ms) => ms >= WAITED_MS);
  if (waits.length > 0)
    return `${waits.length} of ${count(lookups, 'lookup', 'lookups')} waited ${printElapsed(Math.max(...waits))} because a query or its reply was lost. Capture for longer to learn why.`;
  return null;
}

/** The packets of all exchanges that findings name, into the file that `--evidence` says. */
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
