import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { type ApiAccess, apiRequest } from "./api-request.ts";
import type { Binaries } from "./binaries.ts";
import { writeCredentials, writePki } from "./credentials.ts";
import { FaultProxy } from "./fault-proxy.ts";
import {
  AUDIT_POLICY,
  apiServerFlags,
  type ClusterFiles,
  controllerManagerFlags,
  etcdFlags,
  kwokFlags,
  schedulerFlags,
} from "./flags.ts";
import { createKwokNodes } from "./nodes.ts";
import { PlaneProcess } from "./plane-process.ts";
import { freePort } from "./ports.ts";
import { kwokStages } from "./stages.ts";
import type { ClusterInfo, ClusterOptions, Plane } from "./types.ts";

/** What the keeper holds of one running cluster. */
export interface ControlPlane {
  readonly info: ClusterInfo;
  readonly planes: Readonly<Record<Plane, PlaneProcess>>;
  readonly proxy: FaultProxy;
}

/** What is needed to start one cluster. */
export interface ControlPlaneSpec {
  readonly name: string;
  readonly index: number;
  readonly directory: string;
  readonly binaries: Binaries;
  readonly options: ClusterOptions;
  readonly onProgress: (line: string) => void;
  /** Called before anything starts, so that it can be ended whatever happens next. */
  readonly onStart: (starting: Pick<ControlPlane, "planes" | "proxy">) => void;
}

// A loaded machine of two cores starts three API servers in about ten seconds.
const READY_MS = 120_000;
const PORT_ATTEMPTS = 4;

async function answers(
  access: ApiAccess,
  path: string,
  accept: (text: string) => boolean = () => true,
): Promise<boolean> {
  try {
    const answer = await apiRequest(access, "GET", path);
    return answer.status === 200 && accept(answer.text);
  } catch {
    return false;
  }
}

const nodeList = z.object({
  items: z.array(
    z.object({
      status: z.object({ conditions: z.array(z.object({ type: z.string(), status: z.string() })).default([]) }),
    }),
  ),
});

function allNodesReady(text: string): boolean {
  const { items } = nodeList.parse(JSON.parse(text));
  return items.every(({ status }) =>
    status.conditions.some(({ type, status }) => type === "Ready" && status === "True"),
  );
}

/** Starts one cluster and waits until pods can be made in it. */
export async function startControlPlane(spec: ControlPlaneSpec): Promise<ControlPlane> {
  const { name, directory } = spec;
  mkdirSync(directory, { recursive: true });
  const caData = await writePki(directory, name);
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

/** The processes of one cluster, not started yet. */
function describePlanes(spec: ControlPlaneSpec, files: ClusterFiles, access: ApiAccess): ControlPlane["planes"] {
  const { directory, binaries, options } = spec;
  const plane = (name: Plane, args: readonly string[], ready: () => Promise<boolean>): PlaneProcess =>
    new PlaneProcess({
      name: `${spec.name}'s ${name}`,
      command: binaries[name],
      args,
      logFile: join(directory, `${name}.log`),
      ready,
      readyTimeoutMs: READY_MS,
    });
  const always = (): Promise<boolean> => Promise.resolve(true);
  const defaultAccount = "/api/v1/namespaces/default/serviceaccounts/default";
  return {
    // The API server waits for etcd by itself.
    etcd: plane("etcd", etcdFlags(files), always),
    "kube-apiserver": plane("kube-apiserver", apiServerFlags(files, options), () => answers(access, "/readyz")),
    // Pods are refused until the controller manager has made the account they run as.
    "kube-controller-manager": plane("kube-controller-manager", controllerManagerFlags(files, options), () =>
      answers(access, defaultAccount),
    ),
    "kube-scheduler": plane("kube-scheduler", schedulerFlags(files, options), always),
    kwok: plane("kwok", kwokFlags(files, options), () => answers(access, "/api/v1/nodes", allNodesReady)),
  };
}

async function startOnFreePorts(spec: ControlPlaneSpec, caData: string): Promise<ControlPlane> {
  const { name, directory, options } = spec;
  const begin = performance.now();
  const say = (what: string): void =>
    spec.onProgress(`${name}: ${what} after ${((performance.now() - begin) / 1000).toFixed(1)} s`);
  const files = { directory, index: spec.index, etcdPort: await freePort(), apiPort: await freePort() };
  const proxy = new FaultProxy(await freePort(), files.apiPort);
  const server = `https://127.0.0.1:${files.apiPort}`;
  const proxiedServer = `https://127.0.0.1:${proxy.port}`;
  const token = writeCredentials(files, name, caData, proxiedServer);
  const access = { server, caData, token };
  const planes = describePlanes(spec, files, access);
  spec.onStart({ planes, proxy });
  try {
    await proxy.listen();
    await Promise.all([planes.etcd.start(), planes["kube-apiserver"].start()]);
    say("API server ready");
    const kinds = options.nodes ?? [{}];
    const fakeNodes = async (): Promise<void> => {
      await createKwokNodes(access, name, kinds);
      await planes.kwok.start();
    };
    await Promise.all([
      planes["kube-controller-manager"].start(),
      planes["kube-scheduler"].start(),
      ...(kinds.length === 0 ? [] : [fakeNodes()]),
    ]);
    say("ready for pods");
  } catch (error) {
    await stopControlPlane({ planes, proxy });
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
  return { info, planes, proxy };
}

/** Ends all of a cluster at once; its data is not worth a graceful end. */
export async function stopControlPlane({ planes, proxy }: Pick<ControlPlane, "planes" | "proxy">): Promise<void> {
  await Promise.all([proxy.close(), ...Object.values(planes).map((plane) => plane.stop("SIGKILL"))]);
}
