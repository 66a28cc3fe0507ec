import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { issueSelfSigned } from "../../../src/certificates/issue.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { nodes, pods, serviceAccounts } from "../../../src/kube/resources.ts";
import { ensureBuilt, type GoPrograms, moduleFolder, moduleIn } from "../../support/clusters/build.ts";
import { PlaneProcess } from "../../support/clusters/plane-process.ts";
import { freePort } from "../../support/clusters/ports.ts";
import { eventually } from "../../support/harness/wait.ts";

const FOLDER = moduleFolder("../../bench/tunnel/node");
const PROGRAM: GoPrograms = {
  ...moduleIn(FOLDER),
  name: "bench-node",
  packages: { node: "." },
  ldflags: "-s -w",
  isStatic: true,
  pins: () => ["go.mod", "go.sum", "main.go"].map((file) => readFileSync(join(FOLDER, file), "utf8")),
};
const NAME = "streams";

/** A node of a real API server whose commands write bytes and start no process. */
export interface ExecNode extends AsyncDisposable {
  readonly name: string;
  readonly pid: number;
  /** Returns path and query of an exec that writes so many bytes over so many milliseconds; 0: as fast as it can. */
  readonly execPath: (bytes: number, overMs: number) => string;
}

/** Starts a node program, and creates its Node and a pod on it. */
export async function startExecNode(
  client: ClusterClient,
  namespace: string,
  onProgress: (line: string) => void,
): Promise<ExecNode> {
  const folder = await ensureBuilt(PROGRAM, Object.keys(PROGRAM.packages), onProgress);
  const directory = mkdtempSync(join(tmpdir(), "bench-node-"));
  const [certFile, keyFile] = [join(directory, "tls.crt"), join(directory, "tls.key")];
  const { cert, key } = await issueSelfSigned(["127.0.0.1"], { now: Date.now(), lifetimeMs: 86_400_000 });
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key, { mode: 0o600 });
  const port = await freePort();
  const program = new PlaneProcess({
    name: "node",
    command: join(folder, "node"),
    args: [`--listen=127.0.0.1:${port}`, `--cert=${certFile}`, `--key=${keyFile}`],
    logFile: join(directory, "node.log"),
    ready: () => listens(port),
    readyTimeoutMs: 10_000,
  });
  const stop = async (): Promise<void> => {
    await program.stop("SIGKILL");
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    await program.start();
    await client.create(nodes, { metadata: { name: NAME } });
    const status = {
      addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
      daemonEndpoints: { kubeletEndpoint: { Port: port } },
    };
    await client.patch(nodes, { name: NAME }, { type: "merge", body: { status } }, { subresource: "status" });
    // The controller manager creates the account that the pod needs.
    await eventually(() => client.find(serviceAccounts, { namespace, name: "default" }), { what: "an account" });
    await client.create(pods, {
      metadata: { namespace, name: NAME },
      spec: { nodeName: NAME, containers: [{ name: "main", image: "none" }], tolerations: [{ operator: "Exists" }] },
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    name: NAME,
    pid: program.pid ?? 0,
    execPath: (bytes, overMs) => {
      const query = `container=main&stdout=true&command=${bytes}&command=${overMs}`;
      return `/api/v1/namespaces/${namespace}/pods/${NAME}/exec?${query}`;
    },
    [Symbol.asyncDispose]: stop,
  };
}

/** Reports whether a loopback port takes connections. */
function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
