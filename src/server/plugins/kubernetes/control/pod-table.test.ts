import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseAddress } from '../../../base/ip.ts';
import type { Pod } from '../../../kube/store/objects.ts';
import type { NamespaceNumbers } from '../contract/namespace-table.ts';
import { ClientTable } from '../worker/client-table.ts';
import { clusterRecords } from './cluster-records.ts';
import { PodTable, type PodRecord } from './pod-table.ts';

const { of } = clusterRecords({ podNames: false, outside: false });

const pod = (place: string, ip: string | string[], more: Partial<Pod> = {}): Pod => {
  const [name, namespace] = place.split('.');
  return {
    kind: 'Pod',
    namespace: namespace!,
    name: name!,
    ips: Array.isArray(ip) ? ip : [ip],
    phase: 'Running',
    hostNetwork: false,
    terminating: false,
    ...more,
  };
};

class Watcher {
  readonly pods: PodTable;
  readonly #numbers = new Map<string, number>();
  readonly clients = new ClientTable();
  readonly #namespaces: NamespaceNumbers = {
    of: (name) => {
      if (!this.#numbers.has(name)) this.#numbers.set(name, this.#numbers.size + 1);
      return this.#numbers.get(name)!;
    },
    hold: () => undefined,
    release: () => undefined,
  };

  constructor(named = false) {
    this.pods = new PodTable(named);
  }

  put(...pods: Pod[]): this {
    for (const one of pods)
      for (const fact of this.pods.put(of(one) as PodRecord))
        this.clients.apply(fact, this.#namespaces);
    return this;
  }

  remove(place: string): this {
    const [name, namespace] = place.split('.');
    for (const fact of this.pods.remove(namespace!, name!))
      this.clients.apply(fact, this.#namespaces);
    return this;
  }

  /** Returns the namespace of the pod that sends from this address, or null. */
  client(text: string): string | null {
    const address = parseAddress(text)!;
    const number = this.clients.client(address, 0, address.length);
    return [...this.#numbers].find(([, id]) => id === number)?.[0] ?? null;
  }

  /** Returns the same, but only if exactly one pod has the address. */
  own(text: string): string | null {
    const address = parseAddress(text)!;
    const number = this.clients.ownClient(address, 0, address.length);
    return [...this.#numbers].find(([, id]) => id === number)?.[0] ?? null;
  }

  has(text: string, namespace: string): boolean {
    const address = parseAddress(text)!;
    return this.clients.pods(address, 0, address.length, this.#numbers.get(namespace) ?? -1) > 0;
  }

  name(text: string): string | null {
    const address = parseAddress(text)!;
    return this.clients.pod(address, 0, address.length)?.pod ?? null;
  }
}

describe('the sender behind an address', () => {
  test('is the namespace of the pod with that address', () => {
    assert.equal(new Watcher().put(pod('a.default', '10.0.0.1')).client('10.0.0.1'), 'default');
  });

  test('is unknown if no pod has it', () => {
    assert.equal(new Watcher().put(pod('a.default', '10.0.0.1')).client('10.0.0.2'), null);
  });

  test('is never a finished pod, regardless of the order', () => {
    const stale = [
      pod('webhook-1.argo-events', '100.104.247.253', { phase: 'Failed' }),
      pod('webhook-2.argo-events', '100.104.247.253', { phase: 'Succeeded' }),
    ];
    const running = pod('testing7.default', '100.104.247.253');
    assert.equal(new Watcher().put(...stale, running).client('100.104.247.253'), 'default');
    assert.equal(new Watcher().put(running, ...stale).client('100.104.247.253'), 'default');
    assert.equal(new Watcher().put(...stale).client('100.104.247.253'), null);
  });

  test('is no longer a pod once it has finished', () => {
    const watcher = new Watcher().put(pod('job.batch', '10.0.0.1'));
    assert.equal(watcher.client('10.0.0.1'), 'batch');
    watcher.put(pod('job.batch', '10.0.0.1', { phase: 'Succeeded' }));
    assert.equal(watcher.client('10.0.0.1'), null);
    assert.equal(watcher.has('10.0.0.1', 'batch'), false);
  });

  test('is a terminating pod only while no other pod has the address', () => {
    const watcher = new Watcher().put(pod('old.default', '10.0.0.1', { terminating: true }));
    assert.equal(watcher.client('10.0.0.1'), 'default');
    watcher.put(pod('new.other', '10.0.0.1'));
    assert.equal(watcher.client('10.0.0.1'), 'other');
    watcher.remove('new.other');
    assert.equal(watcher.client('10.0.0.1'), 'default');
  });

  test('is unknown while two live pods in different namespaces have the address', () => {
    const watcher = new Watcher().put(pod('old.default', '10.0.0.1'), pod('new.other', '10.0.0.1'));
    assert.equal(watcher.client('10.0.0.1'), null);
    watcher.remove('old.default');
    assert.equal(watcher.client('10.0.0.1'), 'other');
  });

  test('on the host network is known only if all its pods are in one namespace', () => {
    const host = { hostNetwork: true };
    const watcher = new Watcher().put(
      pod('proxy.kube-system', '192.0.2.7', host),
      pod('cni.kube-system', '192.0.2.7', host),
    );
    assert.equal(watcher.client('192.0.2.7'), 'kube-system');
    watcher.put(pod('exporter.monitoring', '192.0.2.7', host));
    assert.equal(watcher.client('192.0.2.7'), null);
    watcher.remove('exporter.monitoring');
    assert.equal(watcher.client('192.0.2.7'), 'kube-system');
  });

  test('is not a single pod if a pod on the host network has the address, even alongside others', () => {
    for (const named of [false, true]) {
      const watcher = new Watcher(named).put(
        pod('proxy.kube-system', '192.0.2.7', { hostNetwork: true }),
      );
      assert.deepEqual(
        [watcher.client('192.0.2.7'), watcher.own('192.0.2.7')],
        ['kube-system', null],
      );
      assert.ok(watcher.has('192.0.2.7', 'kube-system'));
      watcher.put(pod('web.kube-system', '192.0.2.7'));
      assert.equal(watcher.own('192.0.2.7'), null);
      watcher.remove('proxy.kube-system');
      assert.equal(watcher.own('192.0.2.7'), 'kube-system');
    }
  });

  test('is known by every address of a dual-stack pod, but only the first one verifies a name', () => {
    const watcher = new Watcher().put(pod('a.default', ['10.0.0.1', 'fd00::1']));
    assert.equal(watcher.client('fd00::1'), 'default');
    assert.equal(watcher.has('10.0.0.1', 'default'), true);
    assert.equal(watcher.has('fd00::1', 'default'), false);
  });

  test('follows a pod to its new address', () => {
    const watcher = new Watcher().put(pod('a.default', '10.0.0.1'), pod('a.default', '10.0.0.2'));
    assert.equal(watcher.client('10.0.0.1'), null);
    assert.equal(watcher.client('10.0.0.2'), 'default');
    assert.equal(watcher.pods.size, 1);
    watcher.remove('a.default');
    assert.deepEqual([watcher.pods.size, watcher.pods.namespaces], [0, 0]);
  });

  test('has a name if names are requested, unless several pods match', () => {
    const watcher = new Watcher(true).put(pod('a.default', '10.0.0.1'));
    assert.equal(watcher.name('10.0.0.1'), 'a');
    watcher.put(pod('b.default', '10.0.0.1'));
    assert.equal(watcher.name('10.0.0.1'), null);
    assert.equal(watcher.client('10.0.0.1'), 'default');
    watcher.remove('a.default');
    assert.equal(watcher.name('10.0.0.1'), 'b');
  });
});

test('all namespaces with a live pod at an address are known', () => {
  const watcher = new Watcher().put(
    pod('a.one', '10.0.0.1'),
    pod('b.two', '10.0.0.1', { terminating: true }),
    pod('c.three', '10.0.0.1', { phase: 'Failed' }),
  );
  assert.deepEqual(
    ['one', 'two', 'three'].map((namespace) => watcher.has('10.0.0.1', namespace)),
    [true, true, false],
  );
});

test('a new worker receives each address once', () => {
  const watcher = new Watcher();
  for (let i = 0; i < 500; i++) watcher.put(pod(`p${i}.default`, `10.0.${i >> 8}.${i & 255}`));
  watcher.put(pod('shared.other', '10.0.0.7')).remove('p9.default');
  const facts = [...watcher.pods.facts()];
  assert.equal(facts.length, 499);
  assert.equal(new Set(facts.map(({ address }) => address)).size, 499);
});
