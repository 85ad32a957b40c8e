#!/bin/sh
# Runs the kubelet like a service manager: starts it once kubeadm has written its files, and restarts it when it exits.
#   kubelet.sh PROGRAM
state=/var/lib/kubelet configs=/etc/kubernetes
while :; do
  if [ -f $state/config.yaml ] && { [ -f $configs/kubelet.conf ] || [ -f $configs/bootstrap-kubelet.conf ]; }; then
    KUBELET_KUBEADM_ARGS=
    [ ! -f $state/kubeadm-flags.env ] || . $state/kubeadm-flags.env
    # The flags must be split into words.
    # shellcheck disable=SC2086
    "$1" --bootstrap-kubeconfig=$configs/bootstrap-kubelet.conf --kubeconfig=$configs/kubelet.conf --config=$state/config.yaml $KUBELET_KUBEADM_ARGS
  fi
  sleep 1
done
