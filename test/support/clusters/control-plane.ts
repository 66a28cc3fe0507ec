import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ApiAccess } from "./api-request.ts";
import type { Binaries } from "./binaries.ts";
import { writeCredentials, writePki } from "./credentials.ts";
import { describePlanes, nodeReady, type Planes } from "./describe.ts";
import { FaultProxy } from "./fault-proxy.ts";
import { AUDIT_POLICY, type ClusterFiles } from "./flags.ts";
import type { NodeBinaries } from "./node/binaries.ts";
import type { Addresses } from "./node/config.ts";
import { describeRealNode, type RealNode } from "./node/real-node.ts";
import { createServiceNetwork } from "./node/service-network.ts";
import { createKwokNodes } from "./nodes.ts";
import { freePort } from "./ports.ts";
import { kwokStages } from "./stages.ts";
import type { ClusterInfo, ClusterOptions } from "./types.ts";

/** The running parts of one cluster. */
export interface ClusterParts {
  readonly planes: Planes;
  readonly proxy: FaultProxy;
  /** The real node, or only the API server's service address. */
  readonly realNode?: RealNode;
}

/** The keeper's record of a running cluster. */
export interface ControlPlane extends ClusterParts {
  readonly info: ClusterInfo;
}

/** The parameters of one cluster's start. */
export interface ControlPlaneSpec {
  readonly name: string;
  /** Slot of the service addresses. */
  readonly slot: number;
  readonly directory: string;
  readonly binaries: Binaries;
  readonly options: ClusterOptions;
  /** Present when any cluster beside this one has a real node, so that its pods reach this API server. */
  readonly addresses?: Addresses;
  readonly nodeBinaries?: NodeBinaries;
  readonly onProgress: (line: string) => void;
  /** Called before anything starts, so that it can be ended after any failure. */
  readonly onStart: (starting: ClusterParts) => void;
}

const PORT_ATTEMPTS = 4;

/** Starts one cluster and waits until pods can be made in it. */
export async function startControlPlane(spec: ControlPlaneSpec): Promise<ControlPlane> {
  const { name, directory } = spec;
  mkdirSync(directory, { recursive: true });
  const caData = await writePki(directory, name, spec.slot);
  writeFileSync(join(directory, "audit-policy.yaml"), AUDIT_POLICY);
  writeFileSync(join(directory, "kwok-stages.yaml"), kwokStages(spec.binaries.kwokStages));
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await startOnFreePorts(spec, caData);
    } catch (error) {
      const portTaken = error instanceof Error && /address already in use|EADDRINUSE/.test(error.message);
      if (!portTaken || attempt === PORT_ATTEMPTS) throw error;
      spec.onProgress(`${name}: a port was taken by someone else; trying others`);
      removeTraces(directory);
    }
  }
}

function removeTraces(directory: string): void {
  rmSync(join(directory, "etcd"), { recursive: true, force: true });
  for (const file of readdirSync(directory)) if (file.endsWith(".log")) rmSync(join(directory, file));
}

function describeNode(spec: ControlPlaneSpec, files: ClusterFiles, access: ApiAccess): RealNode | undefined {
  const { name, addresses, nodeBinaries } = spec;
  if (addresses === undefined) return undefined;
  const nodeName = realNodeName(name, spec.options);
  return describeRealNode({
    cluster: name,
    clusterDirectory: files.directory,
    nodeName,
    addresses,
    apiPort: files.apiPort,
    images: spec.options.images ?? [],
    cores: spec.options.realNodeCores,
    serviceNetwork: spec.options.serviceNetwork,
    ...(spec.options.realNode === true && nodeBinaries !== undefined ? { binaries: nodeBinaries } : {}),
    nodeReady: () => nodeReady(access, nodeName),
  });
}

function realNodeName(cluster: string, options: ClusterOptions): string {
  return options.realNodeName ?? `${cluster}-real`;
}

async function startOnFreePorts(spec: ControlPlaneSpec, caData: string): Promise<ControlPlane> {
  const { name, directory, options, addresses } = spec;
  const begin = performance.now();
  const say = (what: string): void =>
    spec.onProgress(`${name}: ${what} after ${((performance.now() - begin) / 1000).toFixed(1)} s`);
  const files = { directory, slot: spec.slot, etcdPort: await freePort(), apiPort: await freePort() };
  const proxy = new FaultProxy(await freePort(), files.apiPort);
  const server = `https://127.0.0.1:${files.apiPort}`;
  const proxiedServer = `https://127.0.0.1:${proxy.port}`;
  const node = addresses && { name: realNodeName(name, options), server: `https://${addresses.api}` };
  const token = writeCredentials(files, { name, caData, proxiedServer, ...(node && { node }) });
  const access = { server, caData, token };
  const planes = describePlanes(name, spec.binaries, files, access, options);
  const realNode = describeNode(spec, files, access);
  const parts = { planes, proxy, ...(realNode && { realNode }) };
  spec.onStart(parts);
  try {
    await proxy.listen();
    await Promise.all([planes.etcd.start(), planes["kube-apiserver"].start()]);
    say("API server ready");
    if (addresses !== undefined && options.serviceNetwork !== undefined) await createServiceNetwork(access, addresses);
    const kinds = options.nodes ?? (options.realNode === true ? [] : [{}]);
    const fakeNodes = async (): Promise<void> => {
      await createKwokNodes(access, name, kinds);
      await planes.kwok.start();
    };
    await Promise.all([
      planes["kube-controller-manager"].start(),
      planes["kube-scheduler"].start(),
      realNode?.process.start(),
      ...(kinds.length === 0 ? [] : [fakeNodes()]),
    ]);
    say("ready for pods");
  } catch (error) {
    await stopControlPlane(parts);
    throw error;
  }
  const info = {
    name,
    directory,
    server,
    proxiedServer,
    caData,
    caFile: join(directory, "pki", "ca.crt"),
    token,
    kubeconfig: join(directory, "kubeconfig"),
    proxiedKubeconfig: join(directory, "proxied.kubeconfig"),
    auditLog: join(directory, "audit.log"),
  };
  return { info, ...parts };
}

/** Undoes every fault: the proxy forwards, and what was started once runs. */
export async function mendControlPlane({ planes, proxy, realNode }: ClusterParts): Promise<void> {
  await proxy.set({ kind: "forward" });
  const { etcd, "kube-apiserver": apiServer, ...others } = planes;
  await etcd.start();
  await apiServer.start();
  const processes = [...Object.values(others), ...(realNode === undefined ? [] : [realNode.process])];
  await Promise.all(processes.filter((process) => process.wanted).map((process) => process.start()));
}

/** Ends all of a cluster at once; its data is not worth a graceful end. */
export async function stopControlPlane({ planes, proxy, realNode }: ClusterParts): Promise<void> {
  const processes = [...Object.values(planes), ...(realNode === undefined ? [] : [realNode.process])];
  await Promise.all([proxy.close(), realNode?.door.close(), ...processes.map((process) => process.stop("SIGKILL"))]);
  await realNode?.cleanUp();
}
