import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The folder of CNI plugins on Debian and most other systems. */
const CNI_FOLDERS = ["/usr/lib/cni", "/opt/cni/bin"];
const BUSYBOX = "/bin/busybox";
const DEBIAN =
  "apt-get install libseccomp-dev pkg-config gcc containernetworking-plugins busybox-static iproute2 util-linux";

/** Folder with the CNI plugins; undefined when they are not installed. */
export function cniPlugins(): string | undefined {
  return CNI_FOLDERS.find((folder) =>
    ["bridge", "host-local", "loopback"].every((plugin) => existsSync(join(folder, plugin))),
  );
}

/** A busybox that needs no libraries, so that it makes an image by itself; undefined when there is none. */
export function staticBusybox(): string | undefined {
  if (!existsSync(BUSYBOX)) return undefined;
  // A dynamic program names its loader in its first page.
  return readFileSync(BUSYBOX).subarray(0, 4096).includes("ld-") ? undefined : BUSYBOX;
}

function runs(command: string, ...args: string[]): boolean {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}

/** Returns why no real node (kubelet, containerd, runc) can run here. */
export function realNodesPossible(): string | undefined {
  if (process.platform !== "linux") return "real nodes need Linux";
  if (process.getuid?.() !== 0) return "real nodes need root";
  if (!existsSync("/sys/fs/cgroup/cgroup.controllers") && !existsSync("/sys/fs/cgroup/memory")) {
    return "real nodes need the memory cgroup, which is not mounted under /sys/fs/cgroup";
  }
  for (const tool of ["unshare", "nsenter", "ip", "setpriv", "pkg-config", "cc"]) {
    if (!runs("sh", "-c", `command -v ${tool}`)) return `real nodes need ${tool} (on Debian: ${DEBIAN})`;
  }
  if (!runs("pkg-config", "--exists", "libseccomp"))
    return `real nodes need libseccomp's headers (on Debian: ${DEBIAN})`;
  if (cniPlugins() === undefined) return `real nodes need the CNI plugins (on Debian: ${DEBIAN})`;
  if (staticBusybox() === undefined) return `real nodes need a static ${BUSYBOX} (on Debian: ${DEBIAN})`;
  const namespaces = ["--mount", "--net", "--pid", "--fork", "--mount-proc", "--propagation", "private"];
  const probe = "mount -t tmpfs tmpfs /run && ip link add type veth && ip link add br0 type bridge";
  if (!runs("unshare", ...namespaces, "sh", "-c", probe)) {
    return "real nodes need mount, network and process namespaces with bridges, which the kernel refuses here";
  }
  const routes = spawnSync("ip", ["route", "show", "root", "10.96.0.0/11"], { encoding: "utf8" }).stdout.split("\n");
  const foreign = routes.find((route) => route !== "" && !/^unreachable | legation\d+ /.test(`${route} `));
  if (foreign !== undefined) {
    return `real nodes need 10.96.0.0/11 for themselves, and this machine has the route "${foreign.trim()}"`;
  }
  return undefined;
}
