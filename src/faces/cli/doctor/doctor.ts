/** `ndots doctor`: diagnoses DNS faults from captures, logs, counters and running clusters. */
import { readFileSync } from 'node:fs';
import { didYouMean, problemsIn, type Problem } from '../../../server/base/problem.ts';
import { collectMemory } from '../../../server/runtime/memory-policy.ts';
import {
  diagnoseCluster,
  mergedDiagnosis,
  type Diagnosis,
} from '../../../tools/doctor/diagnosis.ts';
import type { Observations } from '../../../tools/doctor/observe/observations.ts';
import type { Finding, FindingKind } from '../../../tools/doctor/findings/finding.ts';
import { findingKinds } from '../../../tools/doctor/findings/table.ts';
import type { Reading } from '../../../tools/capture/read/reading.ts';
import { Redaction } from '../../../tools/capture/redaction.ts';
import { diagnoseWithParts, type Part } from '../../../tools/doctor/part-diagnosis.ts';
import { captureHead } from '../../../tools/doctor/report/capture-head.ts';
import {
  captureVerdict,
  verdictDetails,
  type VerdictDetails,
} from '../../../tools/doctor/report/capture-verdict.ts';
import {
  clusterDocument,
  clusterHead,
  clusterVerdict,
  lackingOf,
} from '../../../tools/doctor/report/cluster-report.ts';
import { hiddenText } from '../../../tools/doctor/report/hidden-text.ts';
import { isWithoutDns, withoutDnsHints } from '../../../tools/doctor/report/no-queries.ts';
import { busiestClients, shownFinding } from '../../../tools/doctor/report/shown.ts';
import { whoOf, type Who } from '../../../tools/doctor/report/who.ts';
import type { AddressOwners } from '../../../tools/pods/address-owners.ts';
import type { ClusterFacts } from '../../../tools/doctor/cluster/facts.ts';
import { rbacManifest } from '../../../tools/doctor/cluster/rbac.ts';
import {
  addressNamingOf,
  addressOwners,
  shownOwners,
  type AddressNaming,
} from '../capture/capture-names.ts';
import { clientDocuments, clientRows } from '../capture/client-rows.ts';
import { EXIT, wantsColour, type Command, type Io } from '../command.ts';
import { observe, writeEvidence } from './doctor-capture.ts';
import { examineCluster, notReadText } from './doctor-cluster.ts';
import { parseDoctorOptions, type DoctorOptions } from './doctor-options.ts';
import { diagnosisText } from './doctor-text.ts';
import { comesOnce } from '../named-file.ts';
import { usage } from '../option-values.ts';
import { beside, pageFor, setMarkdown, wrap, type Page } from '../page.ts';

const grades = { info: 0, warning: 1, critical: 2, never: 3 } as const;

export const doctor: Command = {
  name: 'doctor',
  async run(words, io) {
    const options = parseDoctorOptions(words);
    for (const code of [...options.only, ...options.skip])
      if (!findingKinds.some((kind) => kind.code.startsWith(code))) throw noFinding(code);
    if (options.explain !== null) return explain(options.explain, options, io);
    if (options.rbac) {
      io.out(rbacManifest(options.namespace));
      return EXIT.ok;
    }
    const packets =
      options.files.length > 0 || options.device !== null ? await read(options, io) : null;
    if (packets === 'nothing') return EXIT.failed;
    const facts = options.living ? await clusterFacts(options, packets !== null, io) : null;
    const found = [
      ...(packets === null ? [] : [await diagnosePackets(packets, options, io)]),
      ...(facts === null || 'why' in facts
        ? []
        : [diagnoseCluster(facts, (kind) => isWanted(kind, options))]),
    ].reduce(mergedDiagnosis);
    print(found, packets, facts, options, io);
    // Written after the report, so the report exists even if this file cannot be written.
    if (options.evidence !== null) writeEvidence(options, found);
    const worst = Math.max(-1, ...found.findings.map(({ severity }) => grades[severity]));
    if (worst >= grades[options.failOn]) return EXIT.no;
    // An unreadable input might have contained a finding.
    const unread = (packets !== null && packets.failed > 0) || (facts !== null && 'why' in facts);
    return unread ? EXIT.failed : EXIT.ok;
  },
};

interface NoCluster {
  readonly why: string;
}

/** @param hasMore true if the report says anything else */
async function clusterFacts(
  options: DoctorOptions,
  hasMore: boolean,
  io: Io,
): Promise<ClusterFacts | NoCluster> {
  try {
    return await examineCluster(options, io);
  } catch (error) {
    const problems = problemsIn(error);
    if (!hasMore || problems === null || io.signal.aborted) throw error;
    return { why: `the cluster: ${problems.map(inOneLine).join('; ')}` };
  }
}

function inOneLine({ message, hint, remedy }: Problem): string {
  return [message, hint, remedy].filter((part) => part !== null).join('. ');
}

interface Packets {
  /** Number of unreadable files. */
  readonly failed: number;
  readonly reading: Reading;
  readonly observed: Observations;
  /** Copied before the details are freed, or null if they have not been. */
  details: VerdictDetails | null;
  readonly owners: AddressOwners;
  readonly naming: AddressNaming;
  /** Redacts names and addresses on request. */
  readonly hide: (text: string) => string;
}

const asItIs = (text: string): string => text;

async function read(options: DoctorOptions, io: Io): Promise<Packets | 'nothing'> {
  // For a running cluster, the pods are available anyway.
  const cluster = options.cluster || (options.living && options.manifests === null);
  const note = (text: string): void => io.err(`ndots doctor: ${text}\n`);
  const owners = await addressOwners({ ...options, cluster }, io, note).catch((error: unknown) => {
    // The cluster examination reports a missing cluster.
    if (!options.living || problemsIn(error) === null) throw error;
    return new Map<string, never>();
  });
  const { reading, observed: looks, failed } = await observe(options, io);
  const observed = looks[0]!;
  const inputs = options.device === null ? options.files.length : 1;
  if (failed === inputs) return 'nothing';
  if (isWithoutDns(reading, observed)) {
    io.err('ndots doctor: no query and no known counter was found\n');
    for (const line of withoutDnsHints(reading, observed)) io.err(`  ${line}\n`);
    return 'nothing';
  }
  const { redactKey } = options;
  const redaction = redactKey === null ? null : new Redaction(redactKey);
  const hide = redaction === null ? asItIs : hiddenText(observed, redaction);
  const naming = addressNamingOf(owners, redaction);
  return {
    ...{ failed, reading, observed, details: null, naming, hide },
    owners: shownOwners(owners, redaction),
  };
}

async function diagnosePackets(
  packets: Packets,
  options: DoctorOptions,
  io: Io,
): Promise<Diagnosis> {
  const { observed } = packets;
  const isThere = options.device === null && !options.files.some(comesOnce);
  // Remarks about the capture were already printed during the first pass.
  const quiet = { ...io, err: () => undefined };
  const again = async (parts: readonly Part[]): Promise<readonly Observations[]> => {
    packets.details = verdictDetails(observed);
    // Details were only needed for the findings.
    observed.forgetDetails();
    // Otherwise, the memory of both passes would add up.
    collectMemory();
    return (await observe(options, quiet, parts, observed.domains)).observed;
  };
  return diagnoseWithParts(observed, isThere ? again : null, (kind: FindingKind) =>
    isWanted(kind, options),
  );
}

const nobody: Who = { clients: 0, nodes: 0, groups: [], resolvers: [] };

function print(
  found: Diagnosis,
  packets: Packets | null,
  examined: ClusterFacts | NoCluster | null,
  options: DoctorOptions,
  io: Io,
): void {
  const facts = examined === null || 'why' in examined ? null : examined;
  const notRead = examined === null ? [] : 'why' in examined ? [examined.why] : lackingOf(examined);
  const who = (finding: Finding): Who =>
    packets === null ? nobody : whoOf(finding, packets.observed, packets.owners);
  const hide = packets?.hide ?? asItIs;
  if (options.output === 'json') {
    const lacks = examined !== null && 'why' in examined ? notRead : [];
    io.out(`${json(found, packets, facts, lacks, who)}\n`);
    return;
  }
  const page = pageFor({ colour: wantsColour(options, io), wide: false, columns: io.columns });
  const heads = [
    ...(packets === null
      ? []
      : [captureHead(packets.reading, packets.observed, found, packets.owners)]),
    ...(facts === null ? [] : [clusterHead(facts, found)]),
  ];
  const lines = heads.flatMap((head) => head.split('\n')).flatMap((line) => wrap(line, '', page));
  io.out(`${lines.join('\n')}\n\n`);
  const well =
    options.only.length + options.skip.length > 0
      ? 'Nothing critical among the selected findings (--only, --skip); others may be critical.'
      : [
          ...(packets === null
            ? []
            : [captureVerdict(packets.observed, found, packets.details ?? undefined)]),
          ...(facts === null ? [] : [clusterVerdict(facts, found)]),
        ].join(' ');
  const isSelected = options.only.length > 0;
  io.out(diagnosisText(found, who, page, hide, well, options.ruledOut, isSelected));
  if (packets !== null) io.out(clientsText(packets, page));
  io.out(notReadText(notRead, page));
}

/** Limit on listed clients, both in text and in JSON. */
const CLIENTS = { text: 10, json: 1000 };
/** Limit on packets per finding in the JSON document. */
const FRAMES_MAX = 100;

function clientsText(packets: Packets, page: Page): string {
  const clients = busiestClients(packets.observed, CLIENTS.text);
  if (clients.listed.length === 0) return '';
  const narrower = { paint: page.paint, columns: page.columns - 2 };
  const rows = clientRows(clients, packets.naming, narrower).map((row) => `  ${row}`);
  return `${[page.paint.strong('Clients, busiest first'), ...rows].join('\n')}\n\n`;
}

/** Addresses are not redacted here, because redaction applies to the whole document later. */
function clientsOf(packets: Packets): ReturnType<typeof clientDocuments> {
  const naming: AddressNaming = (address) => ({ ...packets.naming(address), address });
  return clientDocuments(busiestClients(packets.observed, CLIENTS.json), naming);
}

function isWanted({ code }: { readonly code: string }, { only, skip }: DoctorOptions): boolean {
  const matches = (list: readonly string[]): boolean => list.some((each) => code.startsWith(each));
  return (only.length === 0 || matches(only)) && !matches(skip);
}

function json(
  { findings, excluded, unknown }: Diagnosis,
  packets: Packets | null,
  facts: ClusterFacts | null,
  notRead: readonly string[],
  who: (finding: Finding) => Who,
): string {
  const document = {
    kind: 'Diagnosis',
    ...(packets !== null && { totals: totalsOf(packets) }),
    ...(facts !== null && { cluster: clusterDocument(facts) }),
    findings: findings.map((finding) => shownFinding(finding, who(finding), FRAMES_MAX)),
    not: excluded,
    unknown,
    clients: packets === null ? [] : clientsOf(packets),
    remarks: packets?.reading.remarks.list ?? [],
    notRead,
  };
  const hide = packets?.hide ?? asItIs;
  const hidden = (_key: string, value: unknown): unknown =>
    typeof value === 'string' ? hide(value) : value;
  return JSON.stringify(document, hidden, 2);
}

function totalsOf({ reading: { totals }, observed }: Packets): object {
  return {
    queries: observed.total.asked,
    lost: observed.total.lost,
    lookups: observed.lookups,
    slowLookups: observed.slowLookups,
    clients: observed.clients.size,
    servers: observed.servers.size,
    packets: totals.frames,
    seconds: observed.seconds,
  };
}

/** The section in docs/findings.md that explains a code. */
function section(code: string): string {
  const page = readFileSync(new URL('../../../../docs/findings.md', import.meta.url), 'utf8');
  const start = page.indexOf(`## ${code}`);
  const next = page.indexOf('\n## ', start + 1);
  return start < 0
    ? ''
    : page.slice(page.indexOf('\n', start) + 1, next < 0 ? undefined : next).trim();
}

/** Reports that no code has this prefix. */
function noFinding(given: string): Problem {
  const codes = findingKinds.map(({ code }) => code);
  return usage(
    `there is no finding ${given}`,
    didYouMean(given.toUpperCase(), codes, 'Codes are listed in docs/findings.md'),
  );
}

function explain(given: string, { output }: DoctorOptions, io: Io): number {
  const code = given.toUpperCase();
  const kind = findingKinds.find((each) => each.code === code);
  if (kind === undefined) {
    const below = new Map(
      findingKinds
        .filter((each) => each.code.startsWith(code))
        .map((each) => [each.code, each.title]),
    );
    if (below.size === 0) throw noFinding(given);
    throw usage(
      `there is no finding ${given}`,
      [...below].map(([full, title]) => `${full}  ${title}`).join('\n  '),
    );
  }
  const { title } = kind;
  const page = section(code);
  io.out(
    output === 'json'
      ? `${JSON.stringify({ code, title, page }, null, 2)}\n`
      : `${beside(`${code}  `, title, code.length + 2, io).join('\n')}\n\n${setMarkdown(page, io)}\n`,
  );
  return EXIT.ok;
}
