import { existsSync, rmSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { noteRights } from "../rights/used.ts";
import type { ControlRequest } from "./control-protocol.ts";
import type { Cluster, ClusterInfo, Clusters, ClustersInfo, FaultProxyHandle, Plane, PlaneHandle } from "./types.ts";

/** Sends one request to the keeper and waits until it is done. */
function ask(socket: string, body: ControlRequest): Promise<void> {
  return new Promise((resolve, reject) => {
    const outgoing = request({ socketPath: socket, method: "POST", path: "/", agent: false }, (incoming) => {
      let text = "";
      incoming.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
      incoming.on("error", reject);
      incoming.on("end", () => {
        if (incoming.statusCode === 200) resolve();
        else reject(new Error(text));
      });
    });
    outgoing.on("error", reject);
    outgoing.end(JSON.stringify(body));
  });
}

/** Reports whether a keeper listens on this socket; a killed one leaves the file behind. */
export function keeperAnswers(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = connect(socket);
    connection.once("error", () => resolve(false));
    connection.once("connect", () => {
      connection.destroy();
      resolve(true);
    });
  });
}

function planeHandle(socket: string, cluster: string, plane: Plane): PlaneHandle {
  const tell = (verb: "stop" | "kill" | "start" | "restart" | "freeze" | "thaw"): Promise<void> =>
    ask(socket, { action: "plane", cluster, plane, verb });
  return {
    stop: (signal) => tell(signal === "SIGKILL" ? "kill" : "stop"),
    start: () => tell("start"),
    restart: () => tell("restart"),
    freeze: () => tell("freeze"),
    thaw: () => tell("thaw"),
  };
}

function proxyHandle(socket: string, cluster: string): FaultProxyHandle {
  const set = (mode: Extract<ControlRequest, { action: "proxy" }>["mode"]): Promise<void> =>
    ask(socket, { action: "proxy", cluster, mode });
  return {
    cut: () => set({ kind: "cut" }),
    blackhole: () => set({ kind: "blackhole" }),
    slow: (ms) => set({ kind: "slow", ms }),
    deaf: (direction = "answers") => set({ kind: "deaf", direction }),
    reset: () => set({ kind: "reset" }),
    heal: () => set({ kind: "forward" }),
  };
}

function clusterOf(socket: string, info: ClusterInfo): Cluster {
  return {
    ...info,
    apiServer: planeHandle(socket, info.name, "kube-apiserver"),
    etcd: planeHandle(socket, info.name, "etcd"),
    controllerManager: planeHandle(socket, info.name, "kube-controller-manager"),
    scheduler: planeHandle(socket, info.name, "kube-scheduler"),
    kwok: planeHandle(socket, info.name, "kwok"),
    node: planeHandle(socket, info.name, "node"),
    proxy: proxyHandle(socket, info.name),
    mend: () => ask(socket, { action: "mend", cluster: info.name }),
  };
}

/** Handles for running clusters, of this or another process. */
export function clustersOf(info: ClustersInfo): Clusters {
  const all = info.clusters.map((cluster) => clusterOf(info.socket, cluster));
  const stop = async (): Promise<void> => {
    if (!existsSync(info.socket)) return;
    await noteRights(info.clusters);
    if (await keeperAnswers(info.socket)) await ask(info.socket, { action: "down" });
    else rmSync(info.directory, { recursive: true, force: true });
  };
  return {
    info,
    all,
    get: (name) => {
      const cluster = all.find((candidate) => candidate.name === name);
      if (cluster === undefined) {
        throw new Error(`No cluster is named ${name}; there are ${all.map((other) => other.name).join(", ")}.`);
      }
      return cluster;
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
