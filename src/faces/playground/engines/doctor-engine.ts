/** The doctor engine: diagnoses a capture, a dnstap stream or a log, as `ndots doctor` does. */
import { Problem } from '../../../server/base/problem.ts';
import { Reading, usualPorts } from '../../../tools/capture/read/reading.ts';
import { printRemark } from '../../../tools/capture/read/packets/remarks.ts';
import type { SearchDomains } from '../../../tools/capture/pair/search-walk.ts';
import type { NotFound } from '../../../tools/doctor/diagnosis.ts';
import { Examination } from '../../../tools/doctor/examination.ts';
import type { Observations } from '../../../tools/doctor/observe/observations.ts';
import { diagnoseWithParts, everything, type Part } from '../../../tools/doctor/part-diagnosis.ts';
import {
  busiestClients,
  shownFinding,
  type ShownFinding,
} from '../../../tools/doctor/report/shown.ts';
import { whoOf } from '../../../tools/doctor/report/who.ts';
import { resolverText } from '../../cli/capture/client-rows.ts';
import type { Progress } from './progress.ts';
import { openDropped } from './file-input.ts';

/** A file on disk, read piece by piece. */
export interface DoctorInput {
  readonly file: File;
}

export interface ShownClient {
  readonly address: string;
  readonly queries: number;
  readonly lost: number;
  readonly lookups: number;
  /** `glibc 98 %`, or why it is unknown. */
  readonly resolver: string;
}

export interface DoctorResult {
  readonly name: string;
  readonly packets: number;
  readonly queries: number;
  readonly lost: number;
  readonly lookups: number;
  readonly slowLookups: number;
  readonly clientCount: number;
  readonly servers: number;
  readonly seconds: number;
  readonly findings: readonly ShownFinding[];
  readonly excluded: readonly NotFound[];
  readonly unknown: readonly NotFound[];
  readonly clients: readonly ShownClient[];
  readonly remarks: readonly string[];
}

const CLIENTS_MAX = 20;
const FRAMES_MAX = 12;
/** Interval between progress messages, milliseconds. */
const PROGRESS_MS = 250;

/**
 * Reads the file, and parts of it a second time if that helps.
 * @throws Problem
 */
export async function runDoctor({ file }: DoctorInput, progress: Progress): Promise<DoctorResult> {
  const whole = await observe(file, [everything], undefined, progress);
  const { reading, examination } = whole;
  const observed = examination.observed[0]!;
  if (examination.understood === 0) throw nothingIn(file.name, reading, examination);
  const again = async (parts: readonly Part[]): Promise<readonly Observations[]> => {
    observed.forgetDetails();
    const looked = await observe(file, parts, observed.domains, progress);
    return looked.examination.observed;
  };
  progress('applying the rules');
  const { findings, excluded, unknown } = await diagnoseWithParts(observed, again);
  const { totals, remarks } = reading;
  return {
    name: file.name,
    packets: totals.frames,
    queries: observed.total.asked,
    lost: observed.total.lost,
    lookups: observed.lookups,
    slowLookups: observed.slowLookups,
    clientCount: observed.clients.size,
    servers: observed.servers.size,
    seconds: observed.seconds,
    findings: findings.map((finding) =>
      shownFinding(finding, whoOf(finding, observed, new Map()), FRAMES_MAX),
    ),
    ...{ excluded, unknown },
    clients: clientsOf(observed),
    remarks: remarks.list.map(printRemark),
  };
}

interface Observed {
  readonly reading: Reading;
  readonly examination: Examination;
}

async function observe(
  file: File,
  parts: readonly Part[],
  domains: SearchDomains | undefined,
  progress: Progress,
): Promise<Observed> {
  const examination = new Examination(domains, parts);
  const reading = new Reading(examination.events, usualPorts, examination.extent);
  const input = await openDropped(file, reading.remarks);
  let toldMs = performance.now();
  const chunks = async function* (): AsyncIterable<Uint8Array> {
    for await (const chunk of input.chunks) {
      if (performance.now() - toldMs > PROGRESS_MS) {
        toldMs = performance.now();
        const share = Math.round((100 * input.taken()) / Math.max(1, file.size));
        progress(`read ${share} %, ${reading.totals.exchanges} queries`);
      }
      yield chunk;
    }
  };
  await reading.read({ ...input, chunks: chunks() });
  reading.end();
  examination.noteUnread(reading);
  return { reading, examination };
}

/** Explains why there is nothing to diagnose. */
function nothingIn(name: string, { totals }: Reading, { unknownLines }: Examination): Problem {
  if (totals.frames > 0)
    return new Problem({
      code: 'capture-empty',
      text: `${name} has ${totals.frames} packets, but no DNS query to port 53 or 5353`,
      remedy: `If the DNS servers listen on other ports, run: ndots doctor ${name} --port PORT`,
    });
  return new Problem({
    code: 'capture-foreign',
    text:
      unknownLines > 0
        ? `${name} is not a capture or a query log`
        : `${name} contains nothing that can be read`,
    hint: 'Supported input: pcap, pcapng, dnstap, CoreDNS query logs, and CoreDNS metrics.',
    remedy: 'To take a capture: tcpdump -i any -s 0 -w dns.pcap port 53',
  });
}

function clientsOf(observed: Observations): readonly ShownClient[] {
  const { listed } = busiestClients(observed, CLIENTS_MAX);
  return listed.map(({ address, queries, lost, lookups, resolver }) => ({
    ...{ address, queries, lost, lookups },
    resolver: resolverText(resolver),
  }));
}
