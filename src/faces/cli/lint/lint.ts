/** `ndots lint`: finds errors in Corefiles and related objects. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { whyFailed } from '../../../server/base/why-failed.ts';
import { FILE_MAX, readFileText, readGivenBytes } from '../../../server/base/read-file.ts';
import { atLeast, cannotLint, type LintFinding } from '../../../tools/lint/finding.ts';
import { gather, type GatheredFiles, type GivenFile } from '../../../tools/lint/gather.ts';
import { lint as runLint, nearestCode, type LintReport } from '../../../tools/lint/lint.ts';
import type { LintRule } from '../../../tools/lint/lint-rule.ts';
import { askLive, type LiveRule } from '../../../tools/lint/live/live-rule.ts';
import { systemWorld } from './live-world.ts';
import { secureRandom } from '../../../server/base/random.ts';
import { systemProbeNetwork } from '../../../tools/probe/system-network.ts';
import { liveLookup } from '../check/check-lookup.ts';
import { ownServers } from '../check/check-plan.ts';
import { EXIT, wantsColour, type Command, type Io } from '../command.ts';
import { clusterFiles } from './lint-cluster.ts';
import { fixedTexts, showChanges, writeChanges } from './lint-fix.ts';
import { holdsText, printFindings } from './lint-formats.ts';
import { parseLintOptions, type LintOptions } from './lint-options.ts';
import { lintRules as rules } from './lint-rules.ts';
import { lintedPlugins } from './linted-plugins.ts';
import { newestBefore } from '../../../tools/lint/target.ts';
import { usage } from '../option-values.ts';
import { beside, setMarkdown } from '../page.ts';

export const lint: Command = { name: 'lint', run };

async function run(words: readonly string[], io: Io): Promise<number> {
  const options = parseLintOptions(words);
  for (const code of [
    ...options.ignore,
    ...options.only,
    ...options.severity.map((each) => each.code),
  ])
    knownRule(code);
  if (options.explain !== null) return explain(options.explain, options, io);
  if (options.rules) {
    const listed = rules.toSorted(byCode);
    io.out(
      options.output === 'json'
        ? `${JSON.stringify(listed.map(ruleDocument), null, 2)}\n`
        : `${listed.flatMap((rule) => ruleLines(rule, io)).join('\n')}\n`,
    );
    return EXIT.ok;
  }
  const newest = newestBefore(options.target);
  if (newest !== null)
    io.err(
      `ndots lint: the newest known release is ${newest}, so the target is checked as that release\n`,
    );
  const given = await gatherAll(options, io);
  let report = await lintFiles(given, options, io);
  if (options.fix || options.diff) {
    const changes = fixedTexts(report.findings, given.files);
    io.out(showChanges(changes, wantsColour(options, io)));
    if (options.fix) {
      writeChanges(changes);
      const mended = new Map(changes.map(({ file, after }) => [file, after]));
      const files = given.files.map((each) => ({
        ...each,
        text: mended.get(each.file) ?? each.text,
      }));
      report = await lintFiles({ ...given, files }, options, io);
    }
  }
  const { output } = options;
  const style = { colour: wantsColour(options, io), program: io.program, columns: io.columns };
  io.out(printFindings(output, report, style));
  const { failOn } = options;
  const fails =
    failOn !== 'never' && report.findings.some((each) => atLeast(each.severity, failOn));
  return fails ? EXIT.no : EXIT.ok;
}

async function lintFiles(given: GatheredFiles, options: LintOptions, io: Io): Promise<LintReport> {
  const { only, ignore, severity, target } = options;
  const chosen = rules.filter(
    (rule) =>
      (options.live || !isLive(rule)) &&
      (only.length === 0 || only.includes(rule.code)) &&
      !ignore.includes(rule.code),
  );
  const running = options.running === null ? null : readNamed(options.running);
  const report = await runLint({
    given,
    plugins: lintedPlugins,
    rules: chosen,
    known: rules,
    progress: (text) => io.progress(text),
    target,
    running,
    ...(options.live && {
      live: (subject) => askLive(chosen.filter(isLive), subject, liveWorld(options)),
    }),
  });
  if (report.files.length === 0 && report.findings.length === 0)
    throw cannotLint('lint-nothing', 'there is nothing to lint in the input', {
      ...(report.notJudged.length > 0 && { hint: report.notJudged.map(holdsText).join('\n  ') }),
      remedy: 'Give a Corefile, or YAML that contains one: ndots lint --help',
    });
  const levels = new Map(severity.map((each) => [each.code, each.severity]));
  const levelled = (finding: LintFinding): LintFinding => ({
    ...finding,
    severity: levels.get(finding.code) ?? finding.severity,
  });
  const counts = ({ code }: LintFinding): boolean =>
    !ignore.includes(code) && (only.length === 0 || only.includes(code));
  return { ...report, findings: report.findings.filter(counts).map(levelled) };
}

function isLive(rule: LintRule): rule is LiveRule {
  return 'ask' in rule;
}

const TRIES = 2;

function liveWorld({ timeoutMs }: LintOptions): ReturnType<typeof systemWorld> {
  const network = systemProbeNetwork(secureRandom, liveLookup(timeoutMs));
  return systemWorld({ network, random: secureRandom, timeoutMs, tries: TRIES }, ownServers());
}

async function gatherAll(options: LintOptions, io: Io): Promise<GatheredFiles> {
  const named = options.paths.filter((path) => path !== '-');
  const usual = options.paths.length === 0 && !options.cluster;
  if (usual && !existsSync('Corefile'))
    throw cannotLint('lint-nothing', 'there is no Corefile in this directory', {
      remedy: 'Give a file or a directory, - for standard input, or --cluster.',
    });
  const found = gather(usual ? ['Corefile'] : named);
  const files: GivenFile[] = [...found.files];
  if (options.paths.includes('-')) {
    const text = await io.stdin('configuration', FILE_MAX.manifest);
    // Empty input, for example from a failed command in a pipe, must not pass as valid.
    if (text.trim() === '')
      throw cannotLint('lint-nothing', 'standard input is empty', {
        remedy: 'Check the output of the command before the pipe.',
      });
    files.push({ file: 'stdin', text, named: true });
  }
  if (options.cluster) files.push(...(await clusterFiles(options, io)));
  return { ...found, files };
}

function readNamed(file: string): GivenFile {
  try {
    return { file, text: readGivenBytes(file, FILE_MAX.manifest).toString('utf8'), named: true };
  } catch (error) {
    throw cannotLint('lint-unreadable', `cannot read ${file}: ${whyFailed(error)}`, {
      cause: error,
    });
  }
}

function knownRule(code: string): LintRule {
  const found = rules.find((rule) => rule.code === code);
  if (found !== undefined) return found;
  const meant = nearestCode(code, rules);
  throw usage(
    `there is no rule "${code}"`,
    meant === null ? 'ndots lint --rules lists them.' : `Did you mean ${meant}?`,
  );
}

function explain(code: string, { output }: LintOptions, io: Io): number {
  const rule = knownRule(code);
  const file = fileURLToPath(new URL(`../../../../docs/rules/${rule.code}.md`, import.meta.url));
  try {
    const page = readFileText(file, FILE_MAX.small);
    io.out(
      output === 'json'
        ? `${JSON.stringify({ ...ruleDocument(rule), page }, null, 2)}\n`
        : setMarkdown(page, io),
    );
  } catch (error) {
    throw cannotLint('lint-unreadable', `the page for ${rule.code} is not installed here`, {
      hint: `${rule.code}: ${rule.summary}`,
      cause: error,
    });
  }
  return EXIT.ok;
}

function byCode(a: LintRule, b: LintRule): number {
  return a.code < b.code ? -1 : 1;
}

function ruleDocument({ code, severity, summary }: LintRule): object {
  return { code, severity, summary };
}

function ruleLines({ code, severity, summary }: LintRule, io: Io): string[] {
  const left = `${code}  ${severity.padEnd(7)}  `;
  return beside(left, summary, left.length, io);
}
