import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mountedCgroups } from './cgroup-tree.ts';
import { containerOf } from './container.ts';

const id = '0123456789abcdef'.repeat(4);
const uid = '1a2b3c4d-0000-4111-8222-333344445555';

for (const [what, path, runtime, podUid] of [
  [
    'containerd under systemd',
    `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod${uid.replaceAll('-', '_')}.slice/cri-containerd-${id}.scope`,
    'containerd',
    uid,
  ],
  ['cgroupfs', `/kubepods/besteffort/pod${uid}/${id}`, '', uid],
  [
    'CRI-O, with a cgroup of its own inside',
    `/kubepods.slice/kubepods-pod${uid.replaceAll('-', '_')}.slice/crio-${id}.scope/container`,
    'cri-o',
    uid,
  ],
  [
    'a static pod, whose UID is a hash',
    `/kubepods.slice/kubepods-pod${id.slice(0, 32)}.slice/cri-containerd-${id}.scope`,
    'containerd',
    id.slice(0, 32),
  ],
  ['docker', `/system.slice/docker-${id}.scope`, 'docker', ''],
  ['docker with cgroupfs', `/docker/${id}`, '', ''],
  ['podman', `/machine.slice/libpod-${id}.scope/container`, 'podman', ''],
] as const)
  test(`a container of ${what} is known by its path`, () => {
    assert.deepEqual(containerOf(path), { id, runtime, podUid });
  });

for (const path of ['/', '', '/system.slice/sshd.service', `/user.slice/x-${id.slice(1)}.scope`])
  test(`${path === '' ? 'nothing' : path} is not a container`, () => {
    assert.equal(containerOf(path), null);
  });

test('the innermost of nested containers is reported', () => {
  assert.equal(
    containerOf(`/docker/${id}/kubepods/pod${uid}/${'f'.repeat(64)}`)!.id,
    'f'.repeat(64),
  );
});

test('cgroup v2 is found alone, beside v1, or not at all', () => {
  const one = '25 21 0:22 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n';
  const beside = `30 29 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n31 29 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n`;
  assert.equal(mountedCgroups(one), '/sys/fs/cgroup');
  assert.equal(mountedCgroups(beside), '/sys/fs/cgroup/unified');
  assert.equal(mountedCgroups('30 29 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n'), null);
});
