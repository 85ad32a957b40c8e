#!/bin/sh
# A node's first process. Sets up the node's own files, control groups and network, and reaps processes that exit.
#   first-process.sh NODE_DIRECTORY NODE_ADDRESS UPSTREAM_ADDRESS HIERARCHY[=OPTION]...
# Runs in new mount, network, process, control group, IPC and host name namespaces. Changes nothing outside NODE_DIRECTORY.
set -eu
dir=$1 address=$2 upstream=$3
shift 3

hostname node1
# Copies of mounts would keep other network namespaces alive.
for each in /run/netns/*; do umount "$each" 2>/dev/null || true; done
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /sys/fs/cgroup 2>/dev/null || true
for each; do
  at=/sys/fs/cgroup/${each%%:*} option=${each#*:}
  [ -d "$at" ] || mkdir "$at"
  # Programs look up controllers that share a hierarchy under each name.
  case $option in
    *,*) for name in $(echo "$option" | tr , ' '); do ln -s "${each%%:*}" "/sys/fs/cgroup/$name"; done ;;
  esac
  if [ "$option" = '' ]; then mount -t cgroup2 cgroup2 "$at"; else mount -t cgroup -o "$option" cgroup "$at"; fi
done

# kubeadm, kubelet, containerd and the CNI plugins write to the node's directory.
for place in /etc /var /opt /usr/libexec; do
  mkdir -p "$dir/upper$place" "$dir/work$place"
  mount -t overlay overlay -o "lowerdir=$place,upperdir=$dir/upper$place,workdir=$dir/work$place" "$place"
done
mount -t tmpfs tmpfs /run
# containerd's snapshots need an upper layer, and an overlay cannot be the upper layer of another overlay.
for place in containerd kubelet; do
  mkdir -p "$dir/$place" "/var/lib/$place"
  mount --bind "$dir/$place" "/var/lib/$place"
done
# In memory, because this etcd does not have to survive a reboot.
mkdir -p /var/lib/etcd
mount -t tmpfs tmpfs /var/lib/etcd
rm -rf /etc/kubernetes /etc/cni/net.d
mkdir -p /etc/kubernetes/manifests /etc/cni/net.d /opt/cni/bin
mount --make-rshared /

# The kubelet sets these for the whole machine; here, it writes to files instead.
for name in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
  [ -e "/proc/sys/$name" ] || continue
  mkdir -p "/run/node/sysctl/${name%/*}"
  cat "/proc/sys/$name" > "/run/node/sysctl/$name"
  mount --bind "/run/node/sysctl/$name" "/proc/sys/$name"
done

ip link set lo up
ip link add node0 type bridge
ip address add "$address/24" dev node0
ip address add "$upstream/24" dev node0
ip link set node0 up
# A default route for programs that look for one (kubeadm, the CNI plugins). It leads nowhere.
ip link add nowhere type bridge
ip address add 172.31.0.1/24 dev nowhere
ip link set nowhere up
ip route add default via 172.31.0.2 dev nowhere
echo 1 > /proc/sys/net/ipv4/ip_forward
[ ! -e /proc/sys/net/bridge/bridge-nf-call-iptables ] || echo 1 > /proc/sys/net/bridge/bridge-nf-call-iptables

rm -f /etc/resolv.conf
printf 'search corp.example lab.example\nnameserver %s\n' "$upstream" > /etc/resolv.conf
printf '127.0.0.1 localhost\n%s node1\n' "$address" > /etc/hosts

echo ready
while :; do
  sleep 3600 &
  wait || true
done
