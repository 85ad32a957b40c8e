/** Renders stories as a page without scripts. Each act has a packet ladder with the expected and observed facts. */
import { printElapsed } from '../../../server/base/elapsed.ts';
import type { PacketRow } from '../../../tools/lab/capture.ts';
import { isAsTold, type Act, type StoryOutcome } from '../../../tools/lab/story.ts';
import { escape, htmlPage } from '../../../server/base/html.ts';
import { traceStyle } from '../trace/trace-style.ts';

/** Limit of packets on a page. */
const PACKETS_MAX = 400;

const style = `
.ladder{display:grid;grid-template-columns:5.5em 1fr;gap:0 .8em;margin:.6em 0}
.ladder .at{text-align:right;font-variant-numeric:tabular-nums}
.ladder .packet{border-left:2px solid currentColor;border-right:2px solid currentColor;padding:.15em .6em;overflow-wrap:anywhere}
.ladder .query::after{content:" →"}.ladder .reply{text-align:right;opacity:.75}.ladder .reply::before{content:"← "}
.facts td:first-child{width:1.5em}`;

export function labHtml(outcomes: readonly StoryOutcome[]): string {
  const title =
    outcomes.length === 1
      ? `${outcomes[0]!.story.name}: ${outcomes[0]!.story.title}`
      : `${outcomes.length} stories`;
  const list = outcomes.map(
    (outcome) =>
      `<li class="${isAsTold(outcome) ? 'good' : 'bad'}">${isAsTold(outcome) ? '✓' : '✗'} <a href="#${outcome.story.name}">${escape(outcome.story.name)}</a> ${escape(outcome.story.title)}</li>`,
  );
  return htmlPage(
    title,
    traceStyle + style,
    `<h1>${escape(title)}</h1>
${outcomes.length > 1 ? `<ul>${list.join('')}</ul>` : ''}
${outcomes.map(section).join('\n')}`,
  );
}

function section(outcome: StoryOutcome): string {
  const { story, how, server, acts, tookMs } = outcome;
  const told = isAsTold(outcome);
  const played =
    how === 'real' ? `Played in namespaces; ${server} answered` : 'A model, in virtual time';
  return `<section id="${escape(story.name)}">
<h2>${escape(story.name)} <small>${escape(story.title)}</small></h2>
<p class="dim">${escape(story.source)}. ${escape(played)}; ${escape(printElapsed(tookMs))}.</p>
<p class="${told ? 'good' : 'bad'}"><strong>${told ? '✓ as documented' : '✗ not as documented'}</strong></p>
<p><b>Given</b></p><ul>${story.preconditions.map((text) => `<li>${escape(text)}</li>`).join('')}</ul>
<p><b>When</b> ${escape(story.trigger)}</p>
${acts.map(actSection).join('\n')}
</section>`;
}

function actSection(act: Act): string {
  const facts = act.facts.map(
    ({ what, expected, found, holds }) =>
      `<tr><td class="${holds ? 'good' : 'bad'}">${holds ? '✓' : '✗'}</td><td>${escape(what)}</td><td>${escape(found)}</td><td class="dim">${escape(expected)}</td></tr>`,
  );
  return `<h3>${act.kind === 'flaw' ? 'With the flaw' : 'With the cure'}: ${escape(act.title)}</h3>
<p><code>${escape(act.command)}</code></p>
${ladder(act.packets)}
<div class="scroll"><table class="facts"><tr><th></th><th>what</th><th>seen</th><th>as documented</th></tr>${facts.join('')}</table></div>`;
}

function ladder(packets: readonly PacketRow[]): string {
  if (packets.length === 0) return '';
  const rows = packets
    .slice(0, PACKETS_MAX)
    .map(
      ({ atMs, from, to, text, isOut }) =>
        `<span class="at dim">${escape(printElapsed(atMs))}</span><span class="packet ${isOut ? 'query' : 'reply'}" title="${escape(`${from} > ${to}`)}">${escape(text)}</span>`,
    );
  return `<div class="ladder">${rows.join('')}</div>`;
}
