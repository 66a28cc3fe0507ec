/**
 * The process that starts, controls and stops clusters. It stops them on request, on a signal, or when its parent
 * dies in any way, and accepts faults from any process.
 */
import { rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import {
  type ClusterParts,
  type ControlPlane,
  mendControlPlane,
  startControlPlane,
  stopControlPlane,
} from "./control-plane.ts";
import {
  type ControlRequest,
  controlRequest,
  type KeeperOrder,
  type KeeperReport,
  keeperOrder,
  SOCKET_NAME,
} from "./control-protocol.ts";
import { SLOTS } from "./node/config.ts";
import {
  allowWatchers,
  closeRoutes,
  forwardPackets,
  openRoutes,
  releaseAddresses,
  takeAddresses,
} from "./node/real-node.ts";
import type { ClustersInfo } from "./types.ts";

const starting = new Set<ClusterParts>();
const running = new Map<string, ControlPlane>();
let order: KeeperOrder | undefined;
let ending: Promise<void> | undefined;

function report(message: KeeperReport): void {
  if (process.connected) process.send?.(message);
}

function end(): Promise<void> {
  ending ??= (async () => {
    await Promise.all([...starting].map(stopControlPlane));
    openRoutes();
    releaseAddresses();
    if (order !== undefined) rmSync(order.directory, { recursive: true, force: true, maxRetries: 5 });
  })();
  return ending;
}

async function endAndExit(code: number): Promise<never> {
  await end();
  process.exit(code);
}

async function perform(request: Exclude<ControlRequest, { action: "down" }>): Promise<void> {
  const controlPlane = running.get(request.cluster);
  if (controlPlane === undefined) throw new Error(`No cluster is named ${request.cluster}.`);
  if (request.action === "mend") {
    await mendControlPlane(controlPlane);
    return;
  }
  if (request.action === "proxy") {
    if (request.mode.kind === "reset") controlPlane.proxy.reset();
    else await controlPlane.proxy.set(request.mode);
    return;
  }
  const plane = request.plane === "node" ? controlPlane.realNode?.process : controlPlane.planes[request.plane];
  if (plane === undefined) throw new Error(`${request.cluster} has no real node.`);
  switch (request.verb) {
    case "stop":
      await plane.stop("SIGTERM");
      return;
    case "kill":
      await plane.stop("SIGKILL");
      return;
    case "start":
      await plane.start();
      return;
    case "restart":
      await plane.stop("SIGKILL");
      await plane.start();
      return;
    case "freeze":
      await plane.freeze();
      return;
    case "thaw":
      plane.thaw();
      return;
  }
}

function serveControl(socket: string): Promise<void> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", async () => {
      try {
        const asked = controlRequest.parse(JSON.parse(Buffer.concat(chunks).toString("utf8")));
        if (asked.action === "down") {
          await end();
          response.end(() => process.exit(0));
          return;
        }
        await perform(asked);
        response.end();
      } catch (error) {
        response.writeHead(500).end(error instanceof Error ? error.message : String(error));
      }
    });
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(socket, resolve);
  });
}

async function startAll(order: KeeperOrder): Promise<ClustersInfo> {
  const socket = join(order.directory, SOCKET_NAME);
  await serveControl(socket);
  const { nodeBinaries } = order;
  const slots = nodeBinaries === undefined ? [] : order.names.map(() => takeAddresses());
  if (nodeBinaries !== undefined) {
    allowWatchers();
    // After its slots are taken: another process that ends leaves the routes as they are then.
    closeRoutes();
    forwardPackets(Object.values(order.clusters).map(({ serviceNetwork }) => serviceNetwork));
  }
  const started = await Promise.all(
    order.names.map((name, index) => {
      const addresses = slots[index];
      return startControlPlane({
        name,
        slot: addresses?.slot ?? index % SLOTS,
        ...(addresses === undefined ? {} : { addresses }),
        ...(nodeBinaries === undefined ? {} : { nodeBinaries }),
        directory: join(order.directory, name),
        binaries: order.binaries,
        options: order.clusters[name] ?? {},
        onProgress: (line) => report({ type: "progress", line }),
        onStart: (parts) => starting.add(parts),
      });
    }),
  );
  for (const controlPlane of started) running.set(controlPlane.info.name, controlPlane);
  const info: ClustersInfo = {
    directory: order.directory,
    socket,
    keeperPid: process.pid,
    kubectl: order.binaries.kubectl,
    clusters: started.map((controlPlane) => controlPlane.info),
  };
  writeFileSync(join(order.directory, "clusters.json"), `${JSON.stringify(info, undefined, 2)}\n`, { mode: 0o600 });
  return info;
}

for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => void endAndExit(0));
process.on("uncaughtException", (error) => {
  report({ type: "failed", message: error.stack ?? error.message });
  void endAndExit(1);
});
let ready = false;
process.on("disconnect", () => {
  if (order?.detached !== true || !ready) void endAndExit(0);
});
process.once("message", async (message) => {
  try {
    order = keeperOrder.parse(message);
    const info = await startAll(order);
    ready = true;
    report({ type: "ready", info });
  } catch (error) {
    await end();
    report({ type: "failed", message: error instanceof Error ? error.message : String(error) });
    process.exitCode = 1;
    if (process.connected) process.disconnect();
  }
});
