/** CF01: directives and properties that do not exist in the target. */
import { nearest, type Place } from '../../server/base/problem.ts';
import type { Directive } from '../../server/corefile/corefile-tree.ts';
import { readingFindings } from './reading.lint.ts';
import {
  coreDirectives,
  coreProperties,
  hostUpstreamsSince,
  newestCore,
  nodeCacheDirectives,
  successors,
  valuesOfNdots,
  type Lifetime,
} from './releases.ts';
import type { LintRule, Tell } from './lint-rule.ts';
import { addressOf, isResolvConf, targetsOf } from './upstreams.ts';
import type { LintedCorefile, Subject } from './subject.ts';
import { isBefore, isOfCore, type LintTarget } from './target.ts';

/** Plugins that are not part of CoreDNS, with an alternative for each. */
type External = Readonly<Record<string, string>>;

/**
 * Builds rule CF01.
 * @param external plugins that are not part of CoreDNS
 */
export function releaseRule(external: External): LintRule {
  return {
    code: 'CF01',
    severity: 'error',
    summary: 'a directive or property that the target does not have',
    find(subject, tell) {
      for (const corefile of subject.corefiles) {
        tellReading(corefile, external, subject, tell);
        // If ndots does not support it either, it is reported only once.
        const unknown = new Set(corefile.problems.map(({ place }) => keyOf(place)));
        const once: Tell = (told) => {
          if (!('place' in told.at) || !unknown.has(keyOf(told.at.place))) tell(told);
        };
        for (const { block } of corefile.blocks)
          for (const directive of block.directives) judge(directive, corefile, subject, once);
      }
    },
  };
}

function keyOf(place: Place | null): string {
  return place === null ? '' : `${place.file}:${place.line}:${place.column}`;
}

/** Reports directives that are unknown or have an outdated name. */
function tellReading(
  corefile: LintedCorefile,
  external: External,
  { target }: Subject,
  tell: Tell,
): void {
  for (const { told, problem, isWarning } of readingFindings(corefile)) {
    const word = /Unknown directive '([^']+)'/.exec(problem.message)?.[1] ?? '';
    const ofCore = isOfCore(target);
    if (word === '' && isWarning && ofCore) continue; // The table of releases knows better.
    if (word !== '' && Object.hasOwn(coreDirectives, word)) {
      if (ofCore && lives(coreDirectives[word]!, target.version)) continue;
      tell({
        ...told,
        hint: whenText(word, coreDirectives[word]!),
        remedy: successors[word] ?? told.remedy ?? null,
      });
      continue;
    }
    const isExternal = Object.hasOwn(external, word);
    const near = isExternal || word === '' ? null : nearest(word, Object.keys(coreDirectives));
    tell({
      ...told,
      ...(isWarning ? { severity: 'warning' as const } : {}),
      // CoreDNS can be built with external plugins, and only its owner knows if this one was.
      ...(isExternal && target?.kind !== 'ndots' ? { severity: 'warning' as const } : {}),
      ...(near === null ? {} : { fix: null, hint: told.hint ?? `Did you mean '${near}'?` }),
    });
  }
}

function judge(
  directive: Directive,
  corefile: LintedCorefile,
  { target }: Subject,
  tell: Tell,
): void {
  if (!isOfCore(target)) return;
  const { at } = directive;
  const word = at.text;
  const lifetime = coreDirectives[word];
  if (lifetime === undefined) {
    tell({
      at,
      text: `CoreDNS has no directive '${word}'; only ndots does`,
      remedy: 'Remove it, or serve with ndots.',
    });
    return;
  }
  const inNodeCache =
    (target.kind !== 'node-cache' && corefile.role !== 'node-cache') ||
    nodeCacheDirectives.has(word);
  if (!inNodeCache) {
    tell({
      at,
      text: `node-cache is built without the plugin '${word}'`,
      hint: `Its plugins: ${[...nodeCacheDirectives].join(', ')}.`,
      remedy: "Move the line to the cluster's CoreDNS.",
    });
    return;
  }
  if (!lives(lifetime, target.version)) {
    tell({
      at,
      text: `${nameOf(target)} has no directive '${word}'`,
      hint: whenText(word, lifetime),
      remedy: successors[word] ?? null,
      fix: word === 'proxy' ? { kind: 'word', token: at, text: 'forward' } : null,
    });
    return;
  }
  judgeProperties(directive, target, tell);
  if (word === 'forward') judgeUpstreams(directive, target, tell);
}

/** A host name or a file next to the Corefile, as opposed to an address, a path or a URL. */
const HOST = /^(?:\w+:\/\/)?[a-z0-9-]+(?:\.[a-z0-9-]+)*\.?(?::\d+)?$/i;

function judgeUpstreams(
  directive: Directive,
  target: Exclude<LintTarget, { kind: 'ndots' }>,
  tell: Tell,
): void {
  if (target.version === null || !isBefore(target.version, hostUpstreamsSince)) return;
  for (const to of targetsOf(directive))
    if (addressOf(to) === null && !isResolvConf(to) && HOST.test(to.text) && /[a-z]/i.test(to.text))
      tell({
        at: to,
        text: `forward in ${nameOf(target)} accepts addresses and files, but not the name ${to.text}`,
        hint: `CoreDNS has looked up names since ${hostUpstreamsSince}, but only once, when it reads the Corefile.`,
        remedy: 'Write its address.',
      });
}

function judgeProperties(
  { name, block }: Directive,
  target: Exclude<LintTarget, { kind: 'ndots' }>,
  tell: Tell,
): void {
  const known = coreProperties[name];
  if (known === undefined) return;
  for (const { name: token, args } of block ?? []) {
    const [value] = args;
    if (value !== undefined && valuesOfNdots[name]?.[token.text]?.includes(value.text))
      tell({
        at: value,
        text: `${name} in CoreDNS has no ${token.text} '${value.text}'; only ndots does`,
        remedy: 'Use another one, or serve with ndots.',
      });
    const lifetime = Object.hasOwn(known, token.text) ? known[token.text] : undefined;
    if (lifetime === undefined) {
      tell({
        at: token,
        text: `${name} in CoreDNS has no property '${token.text}'`,
        remedy: 'Remove the line, or serve with ndots.',
      });
    } else if (!lives(lifetime, target.version)) {
      tell({
        at: token,
        text: `${name} in ${nameOf(target)} has no property '${token.text}'`,
        hint: whenText(token.text, lifetime),
        fix: lifetime[1] === undefined ? null : { kind: 'remove', token },
      });
    }
  }
}

function nameOf({ kind, label, version }: Exclude<LintTarget, { kind: 'ndots' }>): string {
  if (version === null) return kind === 'coredns' ? 'CoreDNS' : label;
  const [own = ''] = label.split('@').slice(1);
  const core = `CoreDNS ${version}`;
  return kind === 'coredns' ? core : `node-cache ${own} (${core})`;
}

function lives([since, until]: Lifetime, version: string | null): boolean {
  return (
    version === null ||
    (!isBefore(version, since) && (until === undefined || !isBefore(until, version)))
  );
}

function whenText(word: string, [since, until]: Lifetime): string {
  return until === undefined
    ? `'${word}' has existed since CoreDNS ${since} (as of ${newestCore}).`
    : `'${word}' existed from CoreDNS ${since} to ${until}.`;
}
