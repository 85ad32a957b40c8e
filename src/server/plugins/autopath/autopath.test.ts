import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { VirtualClock } from '../../base/virtual-clock.ts';
import { RCODE, rcodeName, TYPE, typeName } from '../../wire/iana.ts';
import type { Message } from '../../wire/message.ts';
import { printData } from '../../wire/print.ts';
import { scriptedNetwork, type Answer, type Asked } from '../../../../test/kit/upstream.ts';
import { makeWorld, type World } from '../../../../test/kit/world.ts';

const directory = mkdtempSync(join(tmpdir(), 'ndots-autopath-'));
after(() => rmSync(directory, { recursive: true }));

const objects = [
  ...['default', 'shop', 'com', 'host'].map((name) => ({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name },
  })),
  ...['backend.shop', 'web.default', 'mail.com'].map((place, index) => {
    const [name, namespace] = place.split('.');
    return {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace },
      spec: { clusterIP: `10.96.1.${index + 1}`, ports: [{ name: 'http', port: 80 }] },
    };
  }),
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'db', namespace: 'default' },
    spec: { clusterIP: 'None', ports: [{ name: 'sql', port: 5432 }] },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'ext', namespace: 'shop' },
    spec: { type: 'ExternalName', externalName: 'printer.corp.example' },
  },
  {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'client', namespace: 'default' },
    spec: { containers: [] },
    status: { phase: 'Running', podIP: '10.244.0.9', podIPs: [{ ip: '10.244.0.9' }] },
  },
];
writeFileSync(
  join(directory, 'objects.json'),
  JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }),
);
writeFileSync(
  join(directory, 'resolv.conf'),
  'nameserver 192.0.2.1\nsearch corp.example example.net\noptions ndots:5\n',
);

const soa = 'example. 60 SOA ns.example. h.example. 1 1 1 1 60';

function internet({ name, type }: Asked): Answer {
  if (name === 'www.example.org.') {
    return type === TYPE.A ? { answer: ['@ 77 A 198.51.100.7'] } : { authority: [soa] };
  }
  if (name === 'alias.example.org.') {
    return { answer: ['@ 31 CNAME www.example.org.', 'www.example.org. 77 A 198.51.100.7'] };
  }
  if (name === 'node-1.compute.internal.') return { answer: ['@ 60 A 192.0.2.61'] };
  if (name === 'refused.example.org.compute.internal.') return { rcode: 'REFUSED' };
  if (name === 'refused.example.org.') return { answer: ['@ 60 A 198.51.100.8'] };
  if (name === 'servfail.example.org.') return { rcode: 'SERVFAIL' };
  if (name === 'hangs.example.org.') return { fail: 'timeout' };
  if (name === 'printer.example.net.') return { answer: ['@ 60 A 192.0.2.9'] };
  return { rcode: 'NXDOMAIN', authority: [soa] };
}

async function serve(
  autopath: string,
  kubernetes = 'pods verified',
  forward = '',
): Promise<World & { readonly asked: readonly Asked[] }> {
  const clock = new VirtualClock();
  const network = scriptedNetwork(clock, internet);
  const world = await makeWorld(
    `.:53 {
      errors
      ${autopath}
      kubernetes cluster.local in-addr.arpa {
        manifests ${directory}
        ${kubernetes}
      }
      forward . 192.0.2.53 {
        ${forward}
      }
    }`,
    { clock, network, directory },
  );
  return { ...world, asked: network.asked };
}

function say({ rcode, answer, authority }: Message): string {
  const records = answer.map(
    ({ name, ttl, type, data }) => `${name} ${ttl} ${typeName(type)} ${printData(type, data)}`,
  );
  const soas = authority.length > 0 ? ['SOA'] : [];
  return [rcodeName(rcode), ...records, ...soas].join(' | ');
}

const suffix = 'default.svc.cluster.local.';
const byName = 'autopath @name {\n search compute.internal\n}';
const byClient = 'autopath @kubernetes {\n search compute.internal\n}';

for (const [form, corefile] of [
  ['by name', byName],
  ['by client', byClient],
] as const) {
  describe(`a search path known ${form}`, () => {
    test('leads to a service in another namespace', async () => {
      const world = await serve(corefile);
      assert.equal(
        say(await world.ask(`backend.shop.${suffix} A`)),
        `NOERROR | backend.shop.${suffix} 5 CNAME backend.shop.svc.cluster.local. | backend.shop.svc.cluster.local. 5 A 10.96.1.1`,
      );
      assert.equal(world.asked.length, 0);
    });

    test('sends nothing upstream when no more queries may wait', async () => {
      const world = await serve(corefile);
      const reply = await world.ask(`www.example.org.${suffix} A`, { mayWait: false });
      assert.equal(reply.rcode, RCODE.REFUSED);
      assert.equal(world.asked.length, 0);
    });

    test('is REFUSED, not NXDOMAIN, when the upstreams have reached their query limit', async () => {
      const world = await serve(corefile, 'pods verified', 'max_concurrent 1');
      const names = ['www.example.org', 'alias.example.org'].map((name) => `${name}.${suffix} A`);
      const replies = await Promise.all(names.map((name) => world.ask(name)));
      assert.deepEqual(
        replies.map(({ rcode }) => rcodeName(rcode)),
        ['NOERROR', 'REFUSED'],
      );
    });

    test("leads to the name as written, with the first record's TTL on the alias", async () => {
      const world = await serve(corefile);
      assert.equal(
        say(await world.ask(`alias.example.org.${suffix} A`)),
        `NOERROR | alias.example.org.${suffix} 31 CNAME alias.example.org. | ` +
          'alias.example.org. 31 CNAME www.example.org. | www.example.org. 77 A 198.51.100.7',
      );
    });

    test("tries the cluster's domains, then the additional ones, then the name as written", async () => {
      const world = await serve(corefile);
      await world.ask(`www.example.org.${suffix} A`);
      assert.deepEqual(
        world.asked.map(({ name }) => name),
        ['www.example.org.compute.internal.', 'www.example.org.'],
      );
      assert.equal(say(await world.ask(`node-1.${suffix} A`)).includes('192.0.2.61'), true);
    });

    test('ends at a name that exists without the type, with NODATA for the queried name', async () => {
      const world = await serve(corefile);
      const reply = await world.ask(`www.example.org.${suffix} AAAA`);
      assert.equal(say(reply), 'NOERROR | SOA');
      assert.equal(reply.question[0]?.name, `www.example.org.${suffix}`);
    });

    test('returns the first reply unchanged if no candidate exists', async () => {
      const world = await serve(corefile);
      const reply = await world.ask(`nothing.example.org.${suffix} A`);
      assert.equal(say(reply), 'NXDOMAIN | SOA');
      assert.equal(reply.authority[0]?.name, 'cluster.local.');
    });

    test('skips a refused candidate', async () => {
      const world = await serve(corefile);
      assert.match(
        say(await world.ask(`refused.example.org.${suffix} A`)),
        /^NOERROR.*198\.51\.100\.8$/,
      );
    });

    test('is never NXDOMAIN when a candidate could not be resolved', async () => {
      const world = await serve(corefile);
      assert.equal(
        rcodeName((await world.ask(`servfail.example.org.${suffix} A`)).rcode),
        'SERVFAIL',
      );
      assert.equal(rcodeName((await world.ask(`hangs.example.org.${suffix} A`)).rcode), 'SERVFAIL');
    });

    test("preserves the client's spelling", async () => {
      const world = await serve(corefile);
      const name = 'WWW.Example.ORG.dEfault.Svc.cLuster.lOcal.';
      const { question, answer } = await world.ask(`${name} A`);
      assert.deepEqual([question[0]?.name, answer[0]?.name], [name, name]);
    });

    test('does not affect names that exist', async () => {
      const world = await serve(corefile);
      assert.equal(
        say(await world.ask(`web.${suffix} A`)),
        `NOERROR | web.${suffix} 5 A 10.96.1.2`,
      );
      assert.equal(say(await world.ask(`web.${suffix} AAAA`)), 'NOERROR | SOA');
      assert.equal(
        say(await world.ask('www.example.org. A')),
        'NOERROR | www.example.org. 77 A 198.51.100.7',
      );
    });

    test('is not searched for the search domain itself', async () => {
      const world = await serve(corefile);
      assert.equal(say(await world.ask(`${suffix} A`)), 'NOERROR | SOA');
    });

    test('is not searched for its other domains', async () => {
      const world = await serve(corefile);
      assert.equal(say(await world.ask('www.example.org.svc.cluster.local. A')), 'NXDOMAIN | SOA');
      assert.equal(say(await world.ask('www.example.org.cluster.local. A')), 'NXDOMAIN | SOA');
      assert.equal(world.asked.length, 0);
    });

    test('skips candidates whose names would be too long', async () => {
      const world = await serve(corefile);
      const label = 'x'.repeat(62);
      const name = `${[label, label, label, 'x'.repeat(37)].join('.')}.${suffix}`;
      assert.equal(rcodeName((await world.ask(`${name} A`)).rcode), 'NXDOMAIN');
    });

    test('counts completed queries', async () => {
      const world = await serve(corefile);
      await world.ask(`www.example.org.${suffix} A`);
      await world.ask(`nothing.example.org.${suffix} A`);
      assert.match(world.metrics(), /^coredns_autopath_success_total\{server="dns:\/\/:53"\} 1$/m);
    });
  });
}

describe('a query of another class or opcode', () => {
  test('is answered as written, without an error or a log line', async () => {
    const world = await serve(byName);
    for (const options of [{ qclass: 3 }, { qclass: 255 }, { flags: 0x2100 }]) {
      assert.equal(
        say(await world.ask(`www.example.org.${suffix} A`, options)),
        'NXDOMAIN | SOA',
        JSON.stringify(options),
      );
    }
    assert.equal(world.asked.length, 0);
    assert.deepEqual(
      world.log.filter((line) => line.includes('ERROR')),
      [],
    );
  });

  test('is not remembered as half of a pair', async () => {
    const world = await serve(byName);
    await world.ask(`www.example.org.${suffix} AAAA`, { qclass: 3 });
    assert.match(say(await world.ask(`www.example.org.${suffix} A`)), /^NOERROR.*198\.51\.100\.7$/);
  });
});

describe('by name', () => {
  test('completes for every client', async () => {
    const world = await serve(byName, 'pods insecure');
    for (const client of ['10.244.0.9', '192.0.2.200', 'fd00::99']) {
      assert.equal(
        rcodeName((await world.ask(`www.example.org.${suffix} A`, { client })).rcode),
        'NOERROR',
      );
    }
  });

  test('a missing namespace does not start a search path', async () => {
    const world = await serve(byName);
    assert.equal(
      say(await world.ask('www.example.org.nowhere.svc.cluster.local. A')),
      'NXDOMAIN | SOA',
    );
    assert.equal(world.asked.length, 0);
  });

  test('possible names in the zone are not completed: a service without endpoints, an endpoint, a port', async () => {
    const world = await serve(byName);
    for (const name of ['db', 'gone.web', 'web-0.db', '_sql._tcp.db', '_no._tcp.web']) {
      assert.equal(say(await world.ask(`${name}.${suffix} A`)), 'NXDOMAIN | SOA', name);
    }
    assert.equal(world.asked.length, 0);
  });

  test('a namespace with a service named like a top-level domain still gets completion for longer names', async () => {
    const world = await serve(byName);
    assert.equal(
      say(await world.ask('www.example.mail.com.svc.cluster.local. A')),
      'NXDOMAIN | SOA',
    );
    assert.equal(world.asked.length, 0, 'may be the port example of the service mail');
    await world.ask('a.b.c.mail.com.svc.cluster.local. A');
    assert.equal(world.asked.length, 2);
  });
});

describe('by client', () => {
  test('unknown clients and clients in another namespace continue their own search', async () => {
    const world = await serve(byClient);
    assert.equal(
      say(await world.ask(`www.example.org.${suffix} A`, { client: '192.0.2.200' })),
      'NXDOMAIN | SOA',
    );
    assert.equal(
      say(await world.ask('www.example.org.shop.svc.cluster.local. A')),
      'NXDOMAIN | SOA',
    );
    assert.equal(world.asked.length, 0);
  });

  test('nothing is completed without "pods verified", which is logged once', async () => {
    const world = await serve(byClient, 'pods insecure');
    assert.equal(say(await world.ask(`www.example.org.${suffix} A`)), 'NXDOMAIN | SOA');
    assert.equal(world.log.filter((line) => line.includes('pods verified')).length, 1);
  });
});

describe('a search path from a file', () => {
  test('applies to all clients', async () => {
    const world = await serve('autopath resolv.conf');
    assert.equal(
      say(await world.ask('printer.corp.example. A')),
      'NOERROR | printer.corp.example. 60 CNAME printer.example.net. | printer.example.net. 60 A 192.0.2.9',
    );
    assert.equal(
      say(await world.ask('printer.example.net. A')),
      'NOERROR | printer.example.net. 60 A 192.0.2.9',
    );
  });

  test('skips plugins that do not know a name and do not pass it on', async () => {
    const world = await makeWorld(
      '.:53 {\n errors\n autopath resolv.conf\n hosts {\n 192.0.2.9 printer.example.net\n 192.0.2.8 bare\n }\n}',
      { directory },
    );
    assert.equal(
      say(await world.ask('printer.corp.example. A')),
      'NOERROR | printer.corp.example. 3600 CNAME printer.example.net. | printer.example.net. 3600 A 192.0.2.9',
    );
    assert.match(say(await world.ask('bare.corp.example. A')), /bare\. 3600 A 192\.0\.2\.8$/);
    assert.equal(say(await world.ask('nothing.corp.example. A')), 'SERVFAIL');
    assert.equal(say(await world.ask('nothing.elsewhere. A')), 'SERVFAIL');
    assert.deepEqual(
      world.log.filter((line) => line.includes('ERROR')),
      [],
    );
  });

  test('leads from a name no plugin handles to one in a zone', async () => {
    writeFileSync(
      join(directory, 'db.home'),
      '@ 60 SOA ns host 7 7200 3600 86400 60\n@ NS ns\nns A 192.0.2.1\n',
    );
    writeFileSync(join(directory, 'two.conf'), 'search example.net home.example\n');
    const world = await makeWorld(
      'home.example:53 example.net:53 {\n autopath two.conf\n file db.home home.example\n}',
      { directory },
    );
    assert.equal(
      say(await world.ask('ns.example.net. A')),
      'NOERROR | ns.example.net. 60 CNAME ns.home.example. | ns.home.example. 60 A 192.0.2.1 | SOA',
    );
    assert.equal(say(await world.ask('nothing.example.net. A')), 'REFUSED');
  });

  test("is searched again for an ExternalName's target, and then continues", async () => {
    const world = await serve('autopath resolv.conf');
    assert.equal(
      say(await world.ask('ext.shop.svc.cluster.local.corp.example. A')),
      'NOERROR | ext.shop.svc.cluster.local.corp.example. 5 CNAME ext.shop.svc.cluster.local. | ' +
        'ext.shop.svc.cluster.local. 5 CNAME printer.corp.example. | ' +
        'printer.corp.example. 60 CNAME printer.example.net. | printer.example.net. 60 A 192.0.2.9',
    );
  });

  test('must be readable', async () => {
    await assert.rejects(
      serve('autopath missing.conf'),
      /plugin\/autopath: failed to parse "missing.conf"/,
    );
  });
});

describe('another plugin as the source', () => {
  test('is rejected if it cannot provide a search path', async () => {
    await assert.rejects(
      serve('autopath @forward'),
      /forward does not implement the AutoPather interface/,
    );
  });

  test('completes nothing and logs a warning if it is missing', async () => {
    const world = await serve('autopath @etcd');
    assert.equal(say(await world.ask(`www.example.org.${suffix} A`)), 'NXDOMAIN | SOA');
    assert.ok(world.log.some((line) => line.includes('"@etcd" needs the etcd plugin')));
  });

  test('works with erratic, which has the same search domains for all clients', async () => {
    writeFileSync(
      join(directory, 'db.root'),
      '@ 60 SOA ns host 1 2 3 4 5\ngoogle.com. 60 A 192.0.2.7\nmail.b.example.org. 60 A 192.0.2.8\n',
    );
    const world = await makeWorld('. {\n autopath @erratic\n file db.root .\n erratic\n}', {
      directory,
    });
    assert.equal(
      say(await world.ask('google.com.a.example.org. A')),
      'NOERROR | google.com.a.example.org. 60 CNAME google.com. | google.com. 60 A 192.0.2.7',
    );
    assert.equal(
      say(await world.ask('mail.a.example.org. A')),
      'NOERROR | mail.a.example.org. 60 CNAME mail.b.example.org. | mail.b.example.org. 60 A 192.0.2.8',
    );
    assert.equal(say(await world.ask('google.com. A')), 'NOERROR | google.com. 60 A 192.0.2.7');
    await world.close();
  });
});

describe('in a server block for the cluster zone only', () => {
  const corefile = (others: string): string => `cluster.local {
    autopath @name {
      search compute.internal
    }
    kubernetes {
      manifests ${directory}
    }
  }
  ${others}`;

  test('resolves external names through other blocks', async () => {
    const clock = new VirtualClock();
    const network = scriptedNetwork(clock, internet);
    const world = await makeWorld(corefile('. {\n forward . 192.0.2.53\n}'), {
      clock,
      network,
      directory,
    });
    assert.match(say(await world.ask(`www.example.org.${suffix} A`)), /198\.51\.100\.7$/);
  });

  for (const others of ['', '. {\n forward . 192.0.2.99\n}'])
    test(`what the block itself forwards is asked for there${others === '' ? '' : ', whatever other blocks do'}`, async () => {
      const clock = new VirtualClock();
      const network = scriptedNetwork(clock, internet);
      const own = corefile(others).replace(
        '    kubernetes',
        '    forward . 192.0.2.53\n    kubernetes',
      );
      const world = await makeWorld(own, { clock, network, directory });
      assert.match(say(await world.ask(`www.example.org.${suffix} A`)), /198\.51\.100\.7$/);
      assert.deepEqual([...new Set(network.asked.map(({ to }) => to))], ['192.0.2.53:53']);
    });

  test('the client continues its own search if this server does not serve those names', async () => {
    const world = await makeWorld(corefile(''), { directory });
    assert.equal(say(await world.ask(`www.example.org.${suffix} A`)), 'NXDOMAIN | SOA');
  });
});
