/**
 * `ndots trace NAME`: shows every query that a client would send for a name, the reason for each, and the result the
 * application gets.
 */
import { writeFileSync } from 'node:fs';
import { whyFailed } from '../../../server/base/why-failed.ts';
import { systemClock } from '../../../server/base/clock.ts';
import { isIP } from '../../../server/base/ip.ts';
import { Problem } from '../../../server/base/problem.ts';
import { secureRandom, seededRandom } from '../../../server/base/random.ts';
import { emptyScript, type Script } from '../../../tools/resolver/answers-file.ts';
import { findCheaper } from '../../../tools/resolver/cheaper.ts';
import type { Client, Settings } from '../../../tools/resolver/client.ts';
import { makeReport, type TraceDocument } from '../../../tools/resolver/trace-document.ts';
import {
  planLookup,
  runLookup,
  type LookupPlan,
  type LookupRun,
  type StartServer,
} from '../../../tools/resolver/run-lookup.ts';
import { clientsNamed } from '../client-choice.ts';
import { EXIT, wantsColour, type Command, type Io } from '../command.ts';
import { LiveNetwork, rehearse } from '../live-network.ts';
import { addressHint, checkedName } from './trace-name.ts';
import { parseTraceOptions, type TraceVerbOptions } from './trace-options.ts';
import { readText } from '../named-file.ts';
import { parseScript } from './trace-script.ts';
import { gatherSettings, sendsNothing } from './trace-settings.ts';
import { printComparison } from './trace-comparison.ts';
import { dig } from './trace-dig.ts';
import { html } from './trace-html.ts';
import { printTrace } from './trace-text.ts';

export const trace: Command = { name: 'trace', run };

const liveLimitMs = 60_000;
const plannedLimitMs = 600_000;

async function run(words: readonly string[], io: Io): Promise<number> {
  return traceName(parseTraceOptions(words), io);
}

async function traceName(options: TraceVerbOptions, io: Io): Promise<number> {
  if (options.replay !== null) return show(readSaved(options.replay), options, io);
  const name = checkedName(options.name);
  if (isIP(name) !== 0) io.err(`ndots trace: ${addressHint(name)}\n`);
  const chosen = clientsNamed(options.clients);
  const { settings, notes, from, assumed } = await gatherSettings(options, io);
  for (const note of notes) io.err(`ndots trace: ${note}\n`);
  if (from !== null && !sendsNothing(options))
    io.err(
      `ndots trace: using the settings of ${from}; the queries are sent from this machine (--plan sends none)\n`,
    );
  const script = await readScript(options);
  const planned = sendsNothing(options);
  // The pod search has already printed warnings about manifests, but the Corefile may add more.
  const told = notes.map((note) => note.split('\n')[0] ?? '');
  const tell = (text: string): void => {
    const isOld =
      options.corefile === null
        ? options.manifests !== null && from !== null
        : told.some((line) => text.includes(line));
    if (!isOld) io.err(`ndots trace: ${text}\n`);
  };
  const start = await serverStarter(options, script, settings, io, tell);
  if (!planned && settings.resolvConf === null) {
    throw new Problem({
      code: 'no-resolv-conf',
      text: 'there is no /etc/resolv.conf with servers',
      remedy: 'Give a server (@10.96.0.10) or --resolv-conf FILE, or use --plan to send nothing.',
    });
  }
  const limitMs = options.timeoutMs ?? (planned ? plannedLimitMs : liveLimitMs);
  const documents: TraceDocument[] = [];
  for (const client of chosen) {
    const startedAt = planned ? null : new Date(systemClock.wall()).toISOString();
    const plan = planFor(client, name, options, settings, limitMs);
    const again = (other: LookupPlan): Promise<LookupRun> =>
      planLookup(other, script, seededRandom(1), start);
    const done = planned ? await again(plan) : await lookLive(plan, options);
    const cheaper = planned && !done.cut ? await findCheaper(done, again) : [];
    documents.push(makeReport(done, cheaper, { startedAt, from, assumed }));
  }
  return show(documents, options, io);
}

/**
 * With `--corefile` or `--manifests`, queries are answered by a server in this process. It is loaded only if needed,
 * because it is a complete ndots serve.
 * @param tell receives warnings about the Corefile and the objects
 */
async function serverStarter(
  options: TraceVerbOptions,
  script: Script,
  settings: Settings,
  io: Io,
  tell: (text: string) => void,
): Promise<StartServer | undefined> {
  const { corefile, manifests, clusterDomain, plan } = options;
  if (corefile === null && (manifests === null || plan)) return undefined;
  const { corefileFor, corefileOf, traceServer } = await import('./trace-server.ts');
  const given = corefile === null ? null : readText(corefile, 'Corefile');
  return traceServer({
    corefile:
      corefile === null || given === null
        ? corefileFor(manifests ?? '', clusterDomain)
        : corefileOf(corefile, given, manifests),
    script,
    client: settings.host.addresses[0] ?? '10.244.0.10',
    env: io.env,
    tell,
  });
}

function planFor(
  client: Client,
  name: string,
  options: TraceVerbOptions,
  settings: Settings,
  limitMs: number,
): LookupPlan {
  const { families, addrConfig, repeat } = options;
  return { client, name, families, addrConfig, settings, repeat, limitMs };
}

async function lookLive(plan: LookupPlan, options: TraceVerbOptions): Promise<LookupRun> {
  // The clock's timers do not keep the process alive, so this timer does so until the lookup ends.
  const hold = setTimeout(() => {}, plan.limitMs + 1000);
  try {
    await rehearse(plan, secureRandom);
    return await runLookup(
      plan,
      (made) => new LiveNetwork(made, options.port),
      systemClock,
      secureRandom,
      true,
    );
  } finally {
    clearTimeout(hold);
  }
}

async function readScript({ answers }: TraceVerbOptions): Promise<Script> {
  return answers === null ? emptyScript : parseScript(readText(answers, 'answers file'), answers);
}

/** Defaults for fields that older versions did not store. */
const later = { batch: 0, serverPort: 53, sourcePort: null, waitedMs: null, reply: null } as const;

function readSaved(file: string): TraceDocument[] {
  let value: unknown;
  try {
    value = JSON.parse(readText(file, 'saved trace'));
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Problem({
      code: 'bad-trace',
      text: `${file}: this is not JSON, so it is not a trace saved by ndots`,
      remedy: 'ndots trace NAME --save FILE writes it.',
      cause: error,
    });
  }
  const list =
    (value as { kind?: string; items?: unknown[] }).kind === 'TraceList'
      ? (value as { items: unknown[] }).items
      : [value];
  for (const item of list) {
    const { apiVersion, kind } = (item ?? {}) as { apiVersion?: string; kind?: string };
    if (apiVersion !== 'ndots.dev/v1' || kind !== 'Trace') {
      throw new Problem({
        code: 'bad-trace',
        text: `${file}: this is not a trace saved by ndots (apiVersion ndots.dev/v1, kind Trace)`,
      });
    }
  }
  return (list as TraceDocument[]).map((document) => ({
    ...Object.assign({ startedAt: null, from: null, assumed: null }, document),
    queries: document.queries.map((query) => Object.assign({ ...later, wireId: query.id }, query)),
  }));
}

function show(documents: readonly TraceDocument[], options: TraceVerbOptions, io: Io): number {
  const json = `${JSON.stringify(documents.length === 1 ? documents[0] : { apiVersion: 'ndots.dev/v1', kind: 'TraceList', items: documents }, null, 2)}\n`;
  if (options.save !== null) {
    try {
      writeFileSync(options.save, json);
    } catch (error) {
      throw new Problem({
        code: 'unwritable-file',
        text: `${options.save}: cannot be written: ${whyFailed(error)}`,
        cause: error,
      });
    }
  }
  const many = documents.length > 1;
  const { output } = options;
  const text = {
    colour: wantsColour(options, io),
    wide: output === 'wide',
    columns: io.columns,
  };
  if (output === 'json') io.out(json);
  else if (output === 'text' || output === 'wide') {
    // With many clients, prints only the differences, because each trace would fill a page.
    const brief = many && output === 'text' && (options.compare || options.clients.includes('all'));
    const parts = brief ? [] : documents.map((document) => printTrace(document, text));
    if (many) parts.push(printComparison(documents, text));
    io.out(parts.join('\n'));
  } else if (output === 'html') io.out(html(documents));
  else io.out(documents.map(dig).join('\n'));
  return documents.every((document) => document.result.ok) ? EXIT.ok : EXIT.no;
}
