import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { FaultProxy } from "../fault-proxy.ts";
import { acquireNow, type Lock } from "../lock.ts";
import { PlaneProcess } from "../plane-process.ts";
import type { ServiceNetwork } from "../types.ts";
import type { NodeBinaries } from "./binaries.ts";
import {
  type Addresses,
  addressesOf,
  cniConfig,
  containerdConfig,
  isJoined,
  kubeletConfig,
  NODE_IMAGES,
  type NodeFiles,
  POD_RANGE,
  SLOTS,
} from "./config.ts";
import { writeBusyboxImage } from "./image.ts";
import { doorScript, nodeCommand, nodeScript } from "./script.ts";
import { writeServiceNetwork } from "./service-network.ts";

// Service and pod addresses of all slots: what is not linked must not leave the machine.
const RANGES = ["10.96.0.0/12", POD_RANGE];
const NODE_READY_MS = 120_000;
const CGROUPS = "/sys/fs/cgroup";

const taken = new Map<number, Lock>();

function slotLock(slot: number): string {
  return join(tmpdir(), `legation-slot-${slot}.lock`);
}

/** Takes a free slot for a cluster of this process. */
export function takeAddresses(): Addresses {
  for (let slot = 0; slot < SLOTS; slot += 1) {
    const addresses = addressesOf(slot);
    // The kernel takes a link away some time after the node, its addresses first.
    if (taken.has(slot) || exists(join("/sys/class/net", addresses.link))) continue;
    // Another process may be about to make the same link.
    const lock = acquireNow(slotLock(slot));
    if (lock === undefined) continue;
    taken.set(slot, lock);
    return addresses;
  }
  throw new Error(`There is room for ${SLOTS} clusters with real nodes on one machine, and all is taken.`);
}

/** Gives back all slots of this process, whose clusters have ended. */
export function releaseAddresses(): void {
  for (const lock of taken.values()) lock.release();
  taken.clear();
}

// kubelets, containerd and API servers watch files, a kubelet each log that is followed; many machines allow a user
// 128 watchers.
const WATCHERS = "/proc/sys/fs/inotify/max_user_instances";
const WATCHERS_NEEDED = 8192;

/** Lets the machine's processes watch enough files for several clusters. */
export function allowWatchers(): void {
  if (Number(readFileSync(WATCHERS, "utf8")) < WATCHERS_NEEDED) writeFileSync(WATCHERS, `${WATCHERS_NEEDED}`);
}

/** Makes the machine pass packets on from one cluster's pods to another's, where their networks are joined. */
export function forwardPackets(networks: readonly (ServiceNetwork | undefined)[]): void {
  if (networks.some(isJoined)) writeFileSync("/proc/sys/net/ipv4/ip_forward", "1");
  if (networks.includes("dual-stack")) writeFileSync("/proc/sys/net/ipv6/conf/all/forwarding", "1");
}

/** Makes the machine refuse what pods send to addresses that no cluster has. */
export function closeRoutes(): void {
  for (const range of RANGES) spawnSync("ip", ["route", "replace", "unreachable", range]);
}

/** Takes `closeRoutes` back, unless another process has clusters with real nodes. */
export function openRoutes(): void {
  if (taken.size === 0) return;
  for (let slot = 0; slot < SLOTS; slot += 1) {
    if (taken.has(slot)) continue;
    const lock = acquireNow(slotLock(slot));
    if (lock === undefined) return;
    lock.release();
  }
  for (const range of RANGES) spawnSync("ip", ["route", "delete", "unreachable", range]);
}

/** The settings of a node, or of a gateway to the API server only. */
export interface RealNodeSpec {
  readonly cluster: string;
  readonly clusterDirectory: string;
  readonly nodeName: string;
  readonly addresses: Addresses;
  readonly apiPort: number;
  /** Archives of images beside the one that every node has. */
  readonly images: readonly string[];
  /** Processors that the kubelet counts; undefined for the machine's. */
  readonly cores: number | undefined;
  readonly serviceNetwork: ServiceNetwork | undefined;
  /** Absent: no node, only the service address of the API server for the pods of other clusters. */
  readonly binaries?: NodeBinaries;
  /** Reports whether the node is Ready. */
  readonly nodeReady: () => Promise<boolean>;
}

/** A process that is the node, and the API server's service address. */
export interface RealNode {
  readonly process: PlaneProcess;
  readonly door: FaultProxy;
  /** Removes what the kernel does not remove by itself. */
  readonly cleanUp: () => Promise<void>;
}

function writeNode(files: NodeFiles): string {
  const { directory } = files;
  for (const folder of ["cni", "logs", "volume-plugins"]) mkdirSync(join(directory, folder), { recursive: true });
  writeFileSync(join(directory, "containerd.toml"), containerdConfig(files));
  writeFileSync(join(directory, "cni", "10-pods.conflist"), cniConfig(files));
  writeFileSync(join(directory, "kubelet.json"), kubeletConfig(files));
  writeServiceNetwork(files);
  writeBusyboxImage(join(directory, "image.tar"), files.binaries.busybox, NODE_IMAGES);
  return nodeScript(files);
}

function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** Removes a cgroup and those under it; false while processes are in it. */
function removeCgroup(path: string): boolean {
  try {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      if (entry.isDirectory()) removeCgroup(join(path, entry.name));
    }
    rmdirSync(path);
  } catch {
    // Still in use, or gone meanwhile.
  }
  return !exists(path);
}

/** The kernel ends a node's processes, but leaves their cgroups, under version 1 in one tree per controller. */
async function removeCgroups(cgroup: string): Promise<void> {
  const trees = [CGROUPS, ...readdirSync(CGROUPS).map((entry) => join(CGROUPS, entry))];
  let left = trees.map((tree) => join(tree, cgroup)).filter(exists);
  for (let attempt = 0; attempt < 50 && left.length > 0; attempt += 1) {
    left = left.filter((path) => !removeCgroup(path));
    if (left.length > 0) await sleep(50);
  }
}

/** Describes a cluster's real node, or its door, without starting it. */
export function describeRealNode(spec: RealNodeSpec): RealNode {
  const { clusterDirectory, addresses, binaries, nodeName, images, cores, serviceNetwork } = spec;
  const directory = join(clusterDirectory, "node");
  mkdirSync(directory, { recursive: true });
  const script =
    binaries === undefined
      ? doorScript(addresses)
      : writeNode({ directory, clusterDirectory, nodeName, addresses, binaries, images, cores, serviceNetwork });
  const scriptFile = join(directory, "node.sh");
  writeFileSync(scriptFile, script);
  const door = new FaultProxy(443, spec.apiPort, addresses.api);
  const node = new PlaneProcess({
    name: `${spec.cluster}'s node`,
    command: "unshare",
    args: nodeCommand(scriptFile),
    logFile: join(clusterDirectory, "node.log"),
    ready: async () => {
      try {
        await door.listen();
      } catch {
        // The script has not brought the address yet.
        return false;
      }
      return binaries === undefined || (await spec.nodeReady());
    },
    readyTimeoutMs: NODE_READY_MS,
  });
  return { process: node, door, cleanUp: () => removeCgroups(addresses.cgroup) };
}
