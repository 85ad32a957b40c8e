/**
 * The document of the console. It shows the numbers of this moment, so the page is of use before
 * its script runs, and where scripts are off.
 */
import { escape } from '../../../server/base/html.ts';
import type { PrivacyLevel } from '../../../tools/watch/view-privacy.ts';
import type { NowView } from '../../../tools/watch/view.ts';
import { nowFigures } from '../../console/now-figures.ts';

/** The facts of the document. */
export interface ConsolePageParts {
  readonly now: NowView;
  /** For people: where the traffic comes from. */
  readonly source: string;
  readonly privacy: PrivacyLevel;
  /** True if servers can be asked for their caches. */
  readonly hasCaches: boolean;
  /** The address of a dashboard, with `{from}` and `{to}`; empty: there is none. */
  readonly grafana: string;
  /** The names of the clusters, the shown one first. */
  readonly clusters: readonly string[];
}

/** The page as HTML. */
export function consolePage(parts: ConsolePageParts): string {
  const { now, source, privacy, hasCaches, grafana, clusters } = parts;
  const figures = nowFigures(now)
    .map(
      ({ label, value, note }) =>
        `<div class="figure"><dt>${escape(label)}</dt><dd>${escape(value)}</dd><dd class="quiet">${escape(note)}</dd></div>`,
    )
    .join('');
  const findings = now.findings
    .map(
      ({ severity, title, subject }) =>
        `<li><span class="badge ${escape(severity)}">${escape(severity)}</span> ${escape(title)} <span class="quiet">${escape(subject)}</span></li>`,
    )
    .join('');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>ndots: ${escape(source)}</title>
<link rel="icon" href="/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/web.css">
<link rel="stylesheet" href="/console.css">
<script type="module" src="/console.js"></script>
</head>
<body>
<div id="page" data-clusters="${escape(JSON.stringify(clusters))}" data-source="${escape(source)}" data-privacy="${privacy}" data-caches="${hasCaches}" data-grafana="${escape(grafana)}">
<header class="bar"><strong>ndots</strong> <span class="quiet">${escape(source)}</span></header>
<main>
<h1>Now</h1>
<dl class="figures">${figures}</dl>
<h2>Findings</h2>
${findings === '' ? '<p class="quiet">None at this moment.</p>' : `<ul>${findings}</ul>`}
<noscript><p>Without scripts this page does not update: reload it.</p></noscript>
</main>
</div>
</body>
</html>
`;
}
