/**
 * Renders the console's HTML document. It includes the current numbers, so the page is useful before its script runs or
 * if scripts are disabled.
 */
import { escape } from '../../../server/base/html.ts';
import type { PrivacyLevel } from '../../../tools/watch/view-privacy.ts';
import type { NowView } from '../../../tools/watch/view.ts';
import { nowFigures } from '../../console/now-figures.ts';

export interface ConsolePageParts {
  readonly now: NowView;
  /** Description of the traffic source, for people. */
  readonly source: string;
  readonly privacy: PrivacyLevel;
  /** True if the server can query caches. */
  readonly hasCaches: boolean;
  /** Dashboard URL with `{from}` and `{to}`, or empty if there is none. */
  readonly grafana: string;
  /** Cluster names, with the selected one first. */
  readonly clusters: readonly string[];
}

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
<noscript><p>Without scripts, this page does not update, so reload it.</p></noscript>
</main>
</div>
</body>
</html>
`;
}
