/** Single names that disappear, such as a deleted Service, a headless Service without ready pods or a removed record. */
import { TYPE } from '../../../server/wire/iana.ts';
import { comesAndGoes } from '../observe/comes-and-goes.ts';
import { commonService } from '../observe/common-service.ts';
import type { Absence, NameView } from '../observe/name-view.ts';
import { clock, fromTo, listed } from '../texts.ts';
import { GONE_TOGETHER_SHARE, MIN_GONE_DIFFERENT, MIN_GONE_MS } from '../thresholds/errors.ts';
import { MIN_CASES } from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

export const goneName: FindingKind = {
  code: 'ND8010',
  title: 'A name that used to exist is gone',
  name: 'a name that disappears',
  inCapture(observed, claims) {
    const known = observed.names.list.filter(
      ({ type, outcomes }) => type === TYPE.A && outcomes.found > 0,
    );
    if (known.length === 0) return unknown('no name was found in the first place');
    const gone = known.flatMap((view) => {
      const { absence, name } = view;
      const isHere = comesAndGoes(view) || (absence !== null && isGone(view, absence));
      return absence !== null && !claims.names.has(name) && isHere ? [{ view, absence }] : [];
    });
    const names = [...new Set(gone.map(({ view }) => view.name))];
    const isOwn = gone.length > 0 && observed.domains.isOfCluster(names[0]!);
    const common = isOwn ? commonService(names) : null;
    if (gone.length === 0 || (gone.length > MIN_GONE_DIFFERENT && common === null))
      return excluded(
        `${gone.length} of ${known.length} names that were found are missing later in the capture`,
      );
    for (const name of names) claims.names.add(name);
    const returns = gone.some(({ view }) => view.departures >= MIN_CASES);
    const [service = '', namespace = ''] = (common ?? names[0]!).split('.');
    const isNodata = isOwn && gone.every(({ view }) => isOnlyNodata(view));
    const hasPods = common !== null && names.some((name) => name !== common);
    const isHeadless = hasPods || (isNodata && names.length === 1 && !returns);
    if (hasPods) claims.names.add(common);
    return {
      title: isHeadless
        ? `A headless Service has lost its ready endpoints: ${service}.${namespace}`
        : returns
          ? 'A name repeatedly disappears and comes back'
          : this.title,
      severity: returns || isHeadless ? 'critical' : 'warning',
      confidence: 0.85,
      seen: gone.flatMap(({ view, absence }) => [
        ...(view.departures > 1 ? [timesText(view)] : []),
        absenceText(view, absence),
        ...(isNodata ? [NODATA_TEXT] : []),
      ]),
      why: isHeadless
        ? 'A headless Service has only the names and addresses of its ready pods. All of them are gone at the same time, so none of its pods was ready, or its selector no longer matches them. DNS reflects the state of the cluster.'
        : isOwn
          ? returns
            ? 'The Service is repeatedly deleted and created again by a controller or deployment job that competes with another one. Or it is headless, and its pods alternate between ready and unready. DNS reflects the state of the cluster, and all DNS pods agree.'
            : 'The Service was deleted or renamed, or it is headless and none of its pods was ready. DNS reflects the state of the cluster.'
          : 'The record was removed from its authoritative servers, or its zone has changed.',
      fix: isOwn
        ? [
            `Check the Service, its pods and their readiness with kubectl -n ${namespace} get service,endpointslices ${service} and kubectl -n ${namespace} get events.`,
            'To keep a headless Service’s name while its pods start, set publishNotReadyAddresses: true.',
          ]
        : ['Ask the zone’s owner, and query its authoritative servers for comparison.'],
      prove: `ndots query ${gone[0]!.view.name}`,
      disproved: 'another DNS pod has the name at the same time (then the pods disagree)',
      exchanges: observed.affectedExchanges(({ name }) => names.includes(name)),
    };
  },
};

const NODATA_TEXT =
  'These replies are NOERROR without an address (NODATA), so the Service still exists. Only a headless Service without ready endpoints has no address.';

/** True if the replies without an address do not deny the name. */
function isOnlyNodata({ outcomes: { nodata, nxdomain } }: NameView): boolean {
  return nodata > 0 && nxdomain === 0;
}

function timesText({ name, departures, outcomes, servers }: NameView): string {
  const { found, nxdomain, nodata } = outcomes;
  return `${name} disappeared ${departures} times. ${listed([...servers].map(([server]) => server))} answered ${found} times with an address and ${nxdomain + nodata} times without one. The two kinds of answer alternate and never overlap.`;
}

function absenceText(view: NameView, { fromMs, toMs, foundMs, count }: Absence): string {
  const isBack = view.lastFoundMs > toMs;
  return `${view.name} had an address until ${clock(foundMs)} but none in ${count} replies ${isBack ? `${fromTo(fromMs, toMs)}. Later it came back` : `from ${clock(fromMs)} to the end of the capture`}.`;
}

/** True if (nearly) all denials are consecutive and come after the name had been found. */
function isGone(
  { outcomes, departures, lastFoundMs }: NameView,
  { fromMs, toMs, count }: Absence,
): boolean {
  return (
    count >= MIN_CASES &&
    departures === 1 &&
    count >= GONE_TOGETHER_SHARE * (outcomes.nxdomain + outcomes.nodata) &&
    (toMs - fromMs >= MIN_GONE_MS || lastFoundMs < fromMs)
  );
}
