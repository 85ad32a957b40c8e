import assert from 'node:assert/strict';
import { request } from 'node:http';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { Lead } from '../../../test/kit/check-lead.ts';
import { CheckApi } from '../../../test/kit/check-api.ts';
import { child, text, type JsonObject } from '../../server/base/json-object.ts';
import { makeLog } from '../../server/base/log.ts';
import type { CheckObject } from './check-object.ts';
import type { ReportAnswer, ReportRequest } from './report-intake.ts';
import { KuberhealthyServer } from './server.ts';
import { statusOfVersion2, statusOfVersion3, type StatusFacts } from './status-documents.ts';

const OWN = '10.1.0.7';
const STRANGER = '10.1.9.9';

for (const version of [2, 3] as const) {
  const [kind, label] =
    version === 3
      ? (['healthchecks', 'kh-run-uuid'] as const)
      : (['khchecks', 'kuberhealthy-run-id'] as const);

  describe(`a report to version ${version}`, () => {
    let api: CheckApi;
    let lead: Lead;
    beforeEach(async () => {
      api = new CheckApi();
      api.put(kind, 'dns', { spec: { runInterval: '1h', timeout: '5m' } } as unknown as JsonObject);
      lead = new Lead(api);
      await lead.begin();
    });
    afterEach(() => lead.end());

    const pod = (): JsonObject => api.all('pods')[0] as JsonObject;
    const run = (): string => text(child(child(pod(), 'metadata'), 'labels'), label);
    /** Sets the pod's status and waits until it is known. */
    async function become(status: object, spec: object = {}): Promise<void> {
      const changed = { ...pod(), status, spec: { ...child(pod(), 'spec'), ...spec } };
      api.put('pods', text(child(pod(), 'metadata'), 'name'), changed as unknown as JsonObject);
      await lead.clock.advance(100);
    }
    async function answer(sent: Promise<ReportAnswer>): Promise<number> {
      await lead.clock.advance(3000);
      return (await sent).status;
    }

    test('with only the uuid is rejected, and changes nothing', async () => {
      await become({ phase: 'Running', podIP: OWN });
      const states = version === 3 ? 'healthchecks' : 'khstates';
      const before = JSON.stringify(api.get(states, 'dns'));
      for (const token of ['', 'x', lead.tokenOf(run()).replace(/.$/, ''), '0'.repeat(36)])
        assert.equal(await answer(lead.reportWith(token, STRANGER, version, run())), 403, token);
      assert.equal(JSON.stringify(api.get(states, 'dns')), before);
    });

    test('without the token is accepted from the address of its pod, of either family', async () => {
      await become({ phase: 'Running', podIP: OWN, podIPs: [{ ip: OWN }, { ip: 'fd00::7' }] });
      for (const from of [OWN, 'fd00::7'])
        assert.equal(
          await answer(lead.reportWith('', from, version, run())),
          from === OWN || version === 2 ? 200 : 400,
        );
    });

    test('that arrives before the address of its pod is known is held', async () => {
      const sent = lead.reportWith('', OWN, version, run());
      await lead.clock.advance(500);
      await become({ phase: 'Running', podIP: OWN });
      assert.equal(await answer(sent), 200);
    });

    test('with the token is accepted from any address, such as for a pod on the host network', async () => {
      await become({ phase: 'Running', podIP: '192.0.2.1' }, { hostNetwork: true });
      assert.equal(await answer(lead.reportWith('', '192.0.2.1', version, run())), 403);
      const token = lead.tokenOf(run());
      assert.equal(await answer(lead.reportWith(token, STRANGER, version, run())), 200);
    });

    test('from a pod with the label of the run but another owner is rejected', async () => {
      await become({ phase: 'Running', podIP: OWN });
      const labels = { [label]: run(), 'kuberhealthy-check-name': 'dns', healthcheck: 'dns' };
      const status = { phase: 'Running', podIP: STRANGER };
      const owner = [{ uid: `uid-${kind}-dns` }];
      const url = { name: 'KH_REPORTING_URL', value: `http://x/check?token=${'1'.repeat(36)}` };
      const spec = { containers: [{ name: 'main', env: [url] }] };
      for (const more of [
        { namespace: 'team' },
        { namespace: 'team', ownerReferences: [{ uid: 'uid-other' }] },
        { namespace: 'other', ownerReferences: owner },
      ])
        api.put('pods', `forged-${JSON.stringify(more).length}`, {
          metadata: { labels, ...more },
          status,
          spec,
        } as unknown as JsonObject);
      await lead.clock.advance(100);
      for (const token of ['', '1'.repeat(36)])
        assert.equal(await answer(lead.reportWith(token, STRANGER, version, run())), 403);
      assert.equal(await answer(lead.reportWith('', OWN, version, run())), 200);
    });

    test('from the address of a pod that has ended is rejected', async () => {
      await become({ phase: 'Succeeded', podIP: OWN });
      assert.equal(await answer(lead.reportWith('', OWN, version, run())), 403);
    });

    test('status pages never contain the token, and the uuid only after the run', async () => {
      await become({ phase: 'Running', podIP: OWN });
      const facts = (): StatusFacts =>
        ({
          checks: [...lead.watch.checks()] as CheckObject[],
          leader: '',
          wall: lead.clock.wall(),
          podOfRun: () => null,
        }) as never;
      const pages = (): string =>
        JSON.stringify([statusOfVersion2(facts()), statusOfVersion3(facts())]);
      const [id, token] = [run(), lead.tokenOf(run())];
      assert.notEqual(token, '');
      assert.ok(!pages().includes(id) && !pages().includes(token), pages());
      assert.equal(await answer(lead.report(version, id)), 200);
      // Version 3 clears the UUID of a finished run.
      assert.equal(pages().includes(id), version === 2);
      assert.ok(!pages().includes(token));
    });
  });
}

test('the address of a report is that of its socket, regardless of headers', async (t) => {
  const seen: { from: string; token: string }[] = [];
  const server = new KuberhealthyServer({
    intake: {
      take: async ({ from, token }: ReportRequest) => {
        seen.push({ from, token });
        return { status: 200, text: '', check: '' };
      },
    },
    log: makeLog(() => undefined),
    clock: new Lead().clock,
  } as never);
  const port = await server.listen('::', 0);
  t.after(() => server.close());
  for (const path of ['/check?token=abc', '/externalCheckStatus'])
    await new Promise<void>((resolve, reject) => {
      const headers = {
        'x-forwarded-for': OWN,
        forwarded: `for=${OWN}`,
        'x-real-ip': OWN,
        'kh-run-uuid': 'x',
        connection: 'close',
      };
      request({ host: '127.0.0.1', port, path, method: 'POST', headers }, (response) => {
        response.resume().on('end', resolve);
      })
        .on('error', reject)
        .end('{}');
    });
  assert.deepEqual(seen, [
    { from: '127.0.0.1', token: 'abc' },
    { from: '127.0.0.1', token: '' },
  ]);
});
