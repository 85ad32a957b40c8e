import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RCODE, TYPE } from '../../../server/wire/iana.ts';
import { soa } from '../../../../test/kit/content-stories.ts';
import { findingOf, given, others, type Given } from '../../../../test/kit/given-answers.ts';
import { examine } from '../../../../test/kit/story.ts';

/** Lookups with two search domains and as written. @param isThere below the first domain */
const walks = (stem: string, isThere = false): Given[] =>
  Array.from({ length: 5 }, (_, nth) =>
    (isThere
      ? ['shop.svc.cluster.local.']
      : ['shop.svc.cluster.local.', 'svc.cluster.local.', '']
    ).map((domain, step): Given => {
      const query = { atMs: nth * 4000 + step, name: `${stem}${domain}` };
      const authority = [soa(domain === '' ? 'root-zone.' : 'cluster.local.')];
      return isThere
        ? { ...query, address: '10.96.3.7' }
        : { ...query, reply: { rcode: RCODE.NXDOMAIN, authority } };
    }),
  ).flat();

test('a few lookups of a misspelled namespace are reported; names that are found or optional are not', async () => {
  const found = await findingOf('ND2008', [...others(20), ...walks('auth.platfrom.')]);
  assert.equal(found?.severity, 'warning');
  assert.match(found.seen.join(' '), /auth\.platfrom\. \(5 lookups\)/);
  assert.match(
    found.prove,
    /^run ndots query auth\.platfrom\.shop\.svc\.cluster\.local\. @10\.96\.0\.10, then the same for auth\.platfrom\.svc\.cluster\.local\., auth\.platfrom\.; all return NXDOMAIN$/,
  );
  const well = [...others(20), ...walks('db.', true), ...walks('_ta-4f66.')];
  assert.equal(await findingOf('ND2008', well), undefined);
});

/** NXDOMAIN, several times. */
const denied = (name: string, fromMs = 0): Given[] =>
  Array.from({ length: 5 }, (_, nth) => ({
    atMs: fromMs + nth * 3000,
    name,
    reply: { rcode: RCODE.NXDOMAIN, authority: [soa('cluster.local.')] },
  }));

test('a port in a host name is named, with the name that is found', async () => {
  const redis = 'redis.cache.svc.cluster.local';
  const all = [...others(20), ...others(5, `${redis}.`), ...walks(`${redis}:6379.`)];
  const found = await findingOf('ND2008', all);
  assert.match(found?.title ?? '', /contains a port/);
  assert.match(found!.fix.join(' '), /redis\.cache\.svc\.cluster\.local\./);
  assert.match(
    found!.seen.join(' '),
    /contains an address for redis\.cache\.svc\.cluster\.local\.$/,
  );
});

test('a port in a host name is named after a few queries, even if only search domains were tried', async () => {
  for (const wrong of ['postgres.data.svc.cluster.local:5432.', 'http://postgres:5432/data.']) {
    const some = walks(wrong).slice(0, 3);
    const found = await findingOf('ND2008', some);
    assert.match(found?.title ?? '', /contains a port/, wrong);
    assert.equal(found!.severity, 'warning');
    assert.ok(found!.seen.join(' ').includes(`${wrong} (`));
    const appended = walks(wrong).filter(({ name }) => name !== wrong);
    const all = [...others(20), ...appended];
    assert.match((await findingOf('ND2008', all))?.title ?? '', /contains a port/);
  }
});

test('an SRV name of a port that a Service does not have is reported, with the name of its port', async () => {
  const service = 'web.shop.svc.cluster.local.';
  const srv = (name: string): Given[] => denied(name).map((each) => ({ ...each, type: 'SRV' }));
  const right = srv(`_http-web._tcp.${service}`).map((each): Given => ({
    ...each,
    client: '10.244.1.9',
    reply: {
      answer: [
        {
          ...{ name: each.name, type: TYPE.SRV, class: 1, ttl: 30 },
          data: { priority: 0, weight: 100, port: 8080, target: service },
        },
      ],
    },
  }));
  const all = [...others(20), ...others(5, service), ...srv(`_http._tcp.${service}`)];
  const alone = await findingOf('ND2008', all);
  assert.match(alone?.title ?? '', /SRV record for a port name/);
  assert.match(
    alone!.fix[0]!,
    /Compare _http\._tcp with the name and protocol of each port of web\.shop/,
  );
  const found = await findingOf('ND2008', [...all, ...right]);
  assert.match(found!.fix[0]!, /^Query _http-web\._tcp\.web\.shop\.svc\.cluster\.local\. /);
  const { findings } = await examine(given([...others(20), ...right]));
  assert.deepEqual(findings, []);
});

test('a whole name of the cluster that is never found is reported, with the similar one that is', async () => {
  const all = [...others(20), ...others(5, 'auth.platform.svc.cluster.local.')];
  const found = await findingOf('ND2008', [...all, ...denied('auth.platfrom.svc.cluster.local.')]);
  assert.match(found!.seen.join(' '), /auth\.platfrom\.svc\.cluster\.local\. \(5 lookups\)/);
  assert.match(found!.fix[0]!, /probably meant to be auth\.platform\.svc\.cluster\.local\./);
});

test('single steps of walks are not names that programs mean', async () => {
  const steps = [
    // Each step waits for a lost reply: it looks like a lookup.
    ...denied('redis.cache.shop.svc.cluster.local.'),
    ...others(5, 'redis.cache.svc.cluster.local.'),
    // A capture at one of two DNS pods, without the step that finds the name.
    ...denied('web.svc.cluster.local.', 900),
    ...denied('web.', 902),
  ];
  assert.equal(await findingOf('ND2008', [...others(20), ...steps]), undefined);
});

test('a line feed at the end of a host name is reported with the name that exists without it', async () => {
  const name = 'redis.cache.svc.cluster.local';
  const wrong = denied(`${name}\\010.`).map((each) => ({ ...each, client: '10.244.1.66' }));
  const found = await findingOf('ND2008', [...others(20), ...others(5, `${name}.`), ...wrong]);
  assert.match(found?.title ?? '', /stray character/);
  assert.match(found!.seen.join(' '), /a line feed \(byte 0x0a\) at its end/);
  assert.match(
    found!.seen.join(' '),
    /The name without it exists: redis\.cache\.svc\.cluster\.local\.$/,
  );
});

test('an address that a DNS server queries because it follows an alias is not blamed on a program', async () => {
  const [pod, upstream] = ['10.244.2.28', '192.0.2.53'];
  const alias = 'legacy.shop.svc.cluster.local.';
  const cname = {
    ...{ name: alias, type: TYPE.CNAME, class: 1, ttl: 5 },
    data: { target: '10.8.3.4.' },
  };
  const beyond = denied('10.8.3.4.').map((each) => ({ ...each, client: pod, server: upstream }));
  const asked = denied(alias, -1).map((each) => ({
    ...{ ...each, server: pod },
    reply: { ...each.reply, answer: [cname] },
  }));
  const all = others(20).map((each) => ({ ...each, server: pod }));
  const { findings } = await examine(given([...all, ...asked, ...beyond]));
  assert.deepEqual(
    findings.filter(({ severity }) => severity !== 'info').map(({ code }) => code),
    ['ND4032'],
  );
  const alone = await findingOf('ND2008', [...all, ...beyond, ...beyond]);
  assert.match(alone?.title ?? '', /^A DNS server looks up an IP address/);
  assert.doesNotMatch(alone!.why, /not at fault/);
});

test('a headless Service without endpoints exists, although the search path continues to NXDOMAIN', async () => {
  const steps = ['orders.svc.cluster.local.', 'svc.cluster.local.', 'cluster.local.', ''];
  const lookups = Array.from({ length: 60 }, (_, nth) =>
    steps.flatMap((domain, at) =>
      (['A', 'AAAA'] as const).map((type): Given => ({
        ...{ atMs: nth * 400 + at * 3, name: `rabbitmq.messaging.${domain}`, type },
        reply: {
          rcode: domain === 'svc.cluster.local.' ? RCODE.NOERROR : RCODE.NXDOMAIN,
          authority: [soa('cluster.local.')],
        },
      })),
    ),
  ).flat();
  const { findings } = await examine(given([...others(20), ...lookups]));
  assert.equal(findings[0]?.code, 'ND8007');
  assert.match(findings[0].title, /^A headless Service has no ready endpoints/);
  assert.equal(
    findings.find(({ code }) => code === 'ND2008'),
    undefined,
  );
});
