import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  issueAuthority,
  issueClient,
  issueServing,
  readRequest,
  requestClient,
} from "../../../src/certificates/issue.ts";
import { ensureBuilt, type GoPrograms, moduleFolder, moduleIn } from "../../support/clusters/build.ts";
import { PlaneProcess } from "../../support/clusters/plane-process.ts";
import { freePort } from "../../support/clusters/ports.ts";

const COMMANDS = "sigs.k8s.io/apiserver-network-proxy/cmd";
const PROGRAMS: GoPrograms = {
  ...moduleIn(moduleFolder("../../bench/tunnel/konnectivity")),
  name: "konnectivity",
  packages: { "proxy-server": `${COMMANDS}/server`, "proxy-agent": `${COMMANDS}/agent` },
  ldflags: "-s -w",
  isStatic: true,
};
const READY_MS = 30_000;

/** A konnectivity server and agent on this machine. */
export interface Konnectivity extends AsyncDisposable {
  /** Unix socket that takes HTTP CONNECT. */
  readonly socket: string;
  readonly pids: readonly number[];
}

/** Builds konnectivity unless it is cached, and starts a server and an agent with mutual TLS between them. */
export async function startKonnectivity(onProgress: (line: string) => void): Promise<Konnectivity> {
  const folder = await ensureBuilt(PROGRAMS, Object.keys(PROGRAMS.packages), onProgress);
  const directory = mkdtempSync(join(tmpdir(), "konnectivity-"));
  const [agentPort, serverHealth, serverAdmin] = [await freePort(), await freePort(), await freePort()];
  const [agentHealth, agentAdmin] = [await freePort(), await freePort()];
  const files = await writeCertificates(directory);
  const socket = join(directory, "server.sock");
  const server = new PlaneProcess({
    name: "konnectivity-server",
    command: join(folder, "proxy-server"),
    args: [
      "--mode=http-connect",
      `--uds-name=${socket}`,
      "--server-port=0",
      "--agent-bind-address=127.0.0.1",
      `--agent-port=${agentPort}`,
      "--health-bind-address=127.0.0.1",
      `--health-port=${serverHealth}`,
      `--admin-port=${serverAdmin}`,
      `--cluster-cert=${files.serverCert}`,
      `--cluster-key=${files.serverKey}`,
      `--cluster-ca-cert=${files.ca}`,
      "--server-count=1",
    ],
    logFile: join(directory, "server.log"),
    // Konnectivity's server is ready with an agent, and healthy before.
    ready: () => answers(serverHealth, "/healthz"),
    readyTimeoutMs: READY_MS,
  });
  const agent = new PlaneProcess({
    name: "konnectivity-agent",
    command: join(folder, "proxy-agent"),
    args: [
      "--proxy-server-host=127.0.0.1",
      `--proxy-server-port=${agentPort}`,
      "--health-server-host=127.0.0.1",
      `--health-server-port=${agentHealth}`,
      `--admin-server-port=${agentAdmin}`,
      `--ca-cert=${files.ca}`,
      `--agent-cert=${files.agentCert}`,
      `--agent-key=${files.agentKey}`,
    ],
    logFile: join(directory, "agent.log"),
    // Konnectivity's agent is ready once it is connected to the server.
    ready: () => answers(agentHealth, "/readyz"),
    readyTimeoutMs: READY_MS,
  });
  const stop = async (): Promise<void> => {
    await Promise.all([agent.stop("SIGKILL"), server.stop("SIGKILL")]);
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    await server.start();
    await agent.start();
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    socket,
    pids: [server, agent].flatMap(({ pid }) => (pid === undefined ? [] : [pid])),
    [Symbol.asyncDispose]: stop,
  };
}

/** Writes keys and certificates. Returns the paths. */
async function writeCertificates(
  directory: string,
): Promise<Record<"ca" | "serverCert" | "serverKey" | "agentCert" | "agentKey", string>> {
  const validity = { now: Date.now(), lifetimeMs: 86_400_000 };
  const authority = await issueAuthority("konnectivity", validity);
  const serving = await issueServing(authority, ["127.0.0.1"], validity);
  const { request: signing, key } = await requestClient();
  const { publicKey = "" } = readRequest(signing) ?? {};
  const texts = {
    ca: authority.cert,
    serverCert: serving.cert,
    serverKey: serving.key,
    agentCert: issueClient(authority, publicKey, { name: "agent", uid: "1" }, validity),
    agentKey: key,
  };
  const write = (name: keyof typeof texts): string => {
    const path = join(directory, `${name}.pem`);
    writeFileSync(path, texts[name], { mode: 0o600 });
    return path;
  };
  return {
    ca: write("ca"),
    serverCert: write("serverCert"),
    serverKey: write("serverKey"),
    agentCert: write("agentCert"),
    agentKey: write("agentKey"),
  };
}

/** Reports whether a path answers with 200. */
function answers(port: number, path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const asking = request({ host: "127.0.0.1", port, path, timeout: 1_000, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    asking.once("error", () => resolve(false));
    asking.once("timeout", () => asking.destroy());
    asking.end();
  });
}
