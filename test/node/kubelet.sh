#!/bin/sh
# Runs the kubelet as a service manager does: from the time kubeadm has written its files, and again when it ends.
#   kubelet.sh PROGRAM
state=/var/lib/kubelet configs=/etc/kubernetes
while :; do
  if [ -f $state/config.yaml ] && { [ -f $configs/kubelet.conf ] || [ -f $configs/bootstrap-kubelet.conf ]; }; then
    KUBELET_KUBEADM_ARGS=
    [ ! -f $state/kubeadm-flags.env ] || . $state/kubeadm-flags.env
    # The flags are words.
    # shellcheck disable=SC2086
    "$1" --bootstrap-kubeconfig=$configs/bootstrap-kubelet.conf --kubeconfig=$configs/kubelet.conf --config=$state/config.yaml $KUBELET_KUBEADM_ARGS
  fi
  sleep 1
done
