/** Configuration files for a node's programs. */
import { KUBERNETES_VERSION } from './node-programs.ts';

/** The address of both the node and its API server. */
export const NODE_ADDRESS = '172.30.0.1';
/** The address of the node's DNS server, which is outside the cluster. */
export const UPSTREAM_ADDRESS = '172.30.0.53';
/** The cluster DNS service's address. */
export const DNS_ADDRESS = '10.96.0.10';
/** The node's search domains, which are appended to the cluster's in pods. */
export const NODE_SEARCH: readonly string[] = ['corp.example', 'lab.example'];

export type ProxyMode = 'iptables' | 'nftables';

export const kubeadmConfig = (mode: ProxyMode): string => `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: ${NODE_ADDRESS}, bindPort: 6443}
nodeRegistration:
  name: node1
  criSocket: unix:///run/containerd/containerd.sock
  imagePullPolicy: IfNotPresent
  taints: []
  kubeletExtraArgs:
    - {name: node-ip, value: ${NODE_ADDRESS}}
    - {name: hostname-override, value: node1}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: ${KUBERNETES_VERSION}
clusterName: node
networking: {podSubnet: 10.244.0.0/16, serviceSubnet: 10.96.0.0/16}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
resolvConf: /etc/resolv.conf
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
localStorageCapacityIsolation: false
---
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: ${mode}
# The limit is one of the machine, which a network namespace cannot set.
conntrack: {maxPerCore: 0}
`;

/** @param sandbox the image for pods' first containers */
export const containerdConfig = (sandbox: string): string => `version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${sandbox}"
  # Without CAP_SYS_RESOURCE a process cannot lower the score that it got.
  restrict_oom_score_adj = true
  disable_hugetlb_controller = true
  tolerate_missing_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
`;

/** The pod network: a bridge with addresses in 10.244.0.0/16. */
export const cniConfig: string = JSON.stringify({
  cniVersion: '1.0.0',
  name: 'pods',
  plugins: [
    {
      type: 'bridge',
      bridge: 'cni0',
      isGateway: true,
      ipMasq: true,
      hairpinMode: true,
      ipam: {
        type: 'host-local',
        ranges: [[{ subnet: '10.244.0.0/16' }]],
        routes: [{ dst: '0.0.0.0/0' }],
      },
    },
    { type: 'portmap', capabilities: { portMappings: true } },
  ],
});

/** The DNS server outside the cluster. Names in example.com exist, and others do not. */
export const upstreamCorefile: string = `.:53 {
    bind ${UPSTREAM_ADDRESS}
    template IN A example.com {
        answer "{{ .Name }} 60 IN A 192.0.2.80"
    }
    template IN AAAA example.com {
        rcode NOERROR
        authority "example.com. 60 IN SOA ns.example.com. h.example.com. 1 60 60 60 60"
    }
    template ANY ANY {
        rcode NXDOMAIN
        authority ". 60 IN SOA a. b. 1 60 60 60 60"
    }
}
`;
