import { join } from "node:path";
import { type Addresses, IPV6_RANGES, isJoined, type NodeFiles, POD_RANGE } from "./config.ts";
import { servicePrograms } from "./service-network.ts";

// The kernel ends the node's namespaces with their first process, so no container, mount, bridge or route outlives
// it.
const NAMESPACES = ["--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc"];

/** Arguments of `unshare` that run a script as the first process of a node. */
export function nodeCommand(script: string): string[] {
  return [...NAMESPACES, "--", "sh", "-eu", script];
}

/** Shell that links the machine with a network namespace of its own, and `in_node` to run something in that. */
function network({ api, node, prefixLength, pods, link }: Addresses): string {
  return `mount -t tmpfs tmpfs /run
mkdir /run/netns
ip netns add node
in_node() { nsenter --net=/run/netns/node -- "$@"; }
ip link add ${link} type veth peer name eth0 netns node
ip address add ${api}/${prefixLength} dev ${link}
ip link set ${link} up
ip route add ${pods} via ${node}
in_node ip link set lo up
in_node ip address add ${node}/${prefixLength} dev eth0
in_node ip link set eth0 up
in_node ip route add 10.96.0.0/12 via ${api}
`;
}

/** Shell that gives the link IPv6 addresses as well, with the ways to the pods of all slots. */
function ipv6Network({ link, ipv6 }: Addresses): string {
  return `ip address add ${ipv6.machine}/64 dev ${link} nodad
ip route add ${ipv6.pods} via ${ipv6.node}
in_node ip address add ${ipv6.node}/64 dev eth0 nodad
in_node ip route add ${IPV6_RANGES.pods} via ${ipv6.machine}
`;
}

/** The script of a cluster without real pods, which those of other clusters can still reach by its service address. */
export function doorScript(addresses: Addresses): string {
  return `${network(addresses)}
sleep 2147483647 & wait
`;
}

/**
 * Shell that creates the node's cgroup for the kubelet: in each tree under version 1; under version 2 the root hands
 * its controllers down.
 */
function cgroups({ cgroup }: Addresses): string {
  return `if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  mkdir -p /sys/fs/cgroup${cgroup}
  for parent in /sys/fs/cgroup /sys/fs/cgroup${cgroup}; do
    for controller in $(cat "$parent/cgroup.controllers"); do
      echo "+$controller" >"$parent/cgroup.subtree_control" || true
    done
  done
else
  for tree in /sys/fs/cgroup/*/; do mkdir -p "$tree${cgroup}"; done
fi
`;
}

/** Shell that shows the kubelet so many processors: it counts their folders where no node of memory has any. */
function processors(cores: number | undefined): string {
  if (cores === undefined) return "";
  return `for folder in node cpu; do mount -t tmpfs tmpfs "/sys/devices/system/$folder"; done
for core in $(seq 0 ${cores - 1}); do mkdir "/sys/devices/system/cpu/cpu$core"; done
`;
}

/** The script of a real node: network, containerd, the image, and the kubelet, whose end is the node's. */
export function nodeScript(files: NodeFiles): string {
  const { directory, clusterDirectory, nodeName, addresses, binaries, images, cores, serviceNetwork } = files;
  const archives = [join(directory, "image.tar"), ...images];
  return `${network(addresses)}
${isJoined(serviceNetwork) ? `in_node ip route add ${POD_RANGE} via ${addresses.api}` : ""}
${serviceNetwork === "dual-stack" ? ipv6Network(addresses) : ""}
${cgroups(addresses)}
${processors(cores)}
# Places that containerd and the kubelet insist on.
mount -t tmpfs tmpfs /var/lib
mount -t tmpfs tmpfs /var/log
export PATH="${binaries.containerd}:$PATH"
in_node containerd --config "${join(directory, "containerd.toml")}" &
attempts=0
until ctr --address /run/containerd/containerd.sock version >/dev/null 2>&1; do
  attempts=$((attempts + 1))
  [ "$attempts" -lt 300 ] || { echo "containerd does not answer" >&2; exit 1; }
  sleep 0.1
done
for archive in ${archives.map((archive) => `"${archive}"`).join(" ")}; do
  ctr --address /run/containerd/containerd.sock --namespace k8s.io images import "$archive"
done
${servicePrograms(files)}
in_node "${binaries.kubelet}" \\
  --kubeconfig="${join(clusterDirectory, "kubelet.kubeconfig")}" \\
  --config="${join(directory, "kubelet.json")}" \\
  --root-dir="${join(directory, "kubelet")}" \\
  --cert-dir="${join(directory, "pki")}" \\
  --hostname-override="${nodeName}" \\
  --node-ip="${addresses.node}${serviceNetwork === "dual-stack" ? `,${addresses.ipv6.node}` : ""}" &
kubelet=$!
wait "$kubelet"
`;
}
