/** Queries of one type that fail regardless of their name. */
import { rcodeName, TYPE, typeName } from '../../../server/wire/iana.ts';
import { TYPE_CUT } from '../../capture/pair/message-head.ts';
import { addOutcomes, isFailure, noOutcomes, wrong } from '../observe/outcomes.ts';
import { isLost, latencyOf } from '../../capture/pair/seen-exchange.ts';
import { upstreams } from '../observe/roles.ts';
import { keysOf, listed, share } from '../texts.ts';
import {
  LONG_WAIT_MS,
  MANY_ERRORS,
  MIN_CASES,
  MOST,
  SPARED_SHARE,
} from '../thresholds/evidence.ts';
import { excluded, unknown, type FindingKind } from './finding.ts';

/** Other findings cover these. */
const others: ReadonlySet<number> = new Set([TYPE.A, TYPE.AAAA, TYPE.PTR, TYPE_CUT]);

/** HTTPS, SRV, TXT … get no reply or an error, while A is answered. */
export const failingType: FindingKind = {
  code: 'ND3025',
  title: 'Queries of one type fail, while others are answered',
  name: 'a type that fails',
  inCapture(observed, claims) {
    const { types, names, domains } = observed;
    const a = types.get(TYPE.A);
    if (a === undefined || a.asked < MANY_ERRORS) return unknown('too few A queries');
    if (wrong(a) > SPARED_SHARE * a.asked) return excluded('A queries fail as well');
    for (const [type, whole] of types.entries) {
      if (others.has(type) || wrong(whole) < MANY_ERRORS) continue;
      const all = names.list.filter((view) => view.type === type && !claims.names.has(view.name));
      // A DNS pod answers cluster names itself, even if its upstream fails.
      const outside = all.filter(({ name }) => !domains.isOfCluster(name));
      const sums = noOutcomes();
      for (const view of outside) addOutcomes(sums, view.outcomes);
      const isOutside = wrong(whole) < MOST * whole.asked;
      const outcomes = isOutside ? sums : whole;
      const views = isOutside ? outside : all;
      const { asked, lost } = outcomes;
      const bad = wrong(outcomes);
      if (bad < MANY_ERRORS || bad < MOST * asked) continue;
      const withA = views.filter(({ name }) => (names.get(name, TYPE.A)?.outcomes.found ?? 0) > 0);
      const isAnswered = views.some((view) => view.outcomes.found + view.outcomes.nodata > 0);
      if (withA.length < 2 && (views.length < MIN_CASES || isAnswered)) continue;
      const losses = claims.open.filter((loss) => loss.type === type);
      if (losses.length < MOST * lost) continue;
      claims.take(losses);
      const failed = observed.affectedExchanges(
        (each) => each.type === type && (isFailure(each) || isLost(each)),
      );
      // A queries for the same names are answered, so nothing else is wrong with them.
      for (const { name } of withA) claims.names.add(name);
      const called = typeName(type);
      const errors = keysOf(failed.filter(isFailure), ({ rcode }) => rcodeName(rcode));
      const error = errors.length === 1 ? errors[0]! : 'an error';
      const late = failed.filter((each) => (latencyOf(each) ?? 0) >= LONG_WAIT_MS).length;
      const hit = losses.length > 0 ? losses : failed;
      const behind = upstreams(observed);
      const servers = keysOf(hit, ({ server }) => server.address);
      // The upstream that the server waits for is the cause.
      const server = servers.find((each) => behind.has(each)) ?? servers[0] ?? 'SERVER';
      return {
        title: `${called} queries fail, while others are answered`,
        severity: 'critical',
        confidence: 0.9,
        seen: [
          `${share(bad, asked)} ${called} queries to ${server} got ${lost >= bad - lost ? 'no reply' : error}. They are for ${listed(views.map(({ name }) => name))}`,
          late > 0 &&
            `${late} of these errors came after a second or more, because the server waited for an upstream that does not answer ${called} queries.`,
          isOutside && `${called} queries for cluster names are answered.`,
          `Of the A queries, ${share(wrong(a), a.asked)} failed.`,
        ],
        why: `Something between here and the servers for these names drops or refuses this type. It may be a firewall or proxy that knows only common types, or an old server. Programs that wait for ${called} (browsers, service meshes and curl for HTTPS; database and directory clients for SRV) are slow or fail.`,
        fix: [
          `Configure the firewall or the upstream to allow ${called} queries. A server without such a record should answer NODATA.`,
          `Until then, answer them in the cluster with template IN ${called} . { rcode NOERROR } in the Corefile.`,
        ],
        prove: `run ndots query ${hit[0]?.name ?? 'NAME'} ${called} @${server}, then the same with A`,
        disproved: `the same server answers ${called} for another client`,
        exchanges: hit,
      };
    }
    return excluded('no type fails while others are answered');
  },
};
