import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  issueAuthority,
  issueClient,
  issueServing,
  readRequest,
  requestClient,
} from "../../../src/certificates/issue.ts";
import type { Dial } from "../../../src/kube/client.ts";
import { realClock } from "../../../src/runtime/clock.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import type { DialTarget } from "../../../src/tunnel/dialled.ts";
import { Hub } from "../../../src/tunnel/hub.ts";
import { serveDial } from "./dial-socket.ts";

/** A hub in this process, and an agent in another. */
export interface HubAndAgent extends AsyncDisposable {
  readonly dial: Dial;
  /** Unix socket by which other processes dial, with HTTP CONNECT. */
  readonly socket: string;
  readonly agentPid: number;
}

const CLUSTER = "west";
const LIFETIME_MS = 86_400_000;

/** Starts both and waits until they are connected. */
export async function startHubAndAgent(target: DialTarget): Promise<HubAndAgent> {
  const validity = { now: Date.now(), lifetimeMs: LIFETIME_MS };
  const authority = await issueAuthority("hub", validity);
  const serving = await issueServing(authority, ["127.0.0.1"], validity);
  const { request, key } = await requestClient();
  const { publicKey = "" } = readRequest(request) ?? {};
  const cert = issueClient(authority, publicKey, { name: CLUSTER, uid: "1" }, validity);
  const hub = new Hub(
    { ...serving, authorities: authority.cert },
    {
      refusal: () => undefined,
      homeApiRefusal: () => undefined,
      relayRefusal: () => undefined,
      onFacts: () => {},
      certify: () => Promise.reject(new Error("this hub issues no certificate")),
      authorities: () => authority.cert,
      wantsCredentials: () => false,
      onCredentials: () => {},
    },
    { onChange: () => {}, clock: realClock, log: createLogger({ level: "error" }) },
  );
  const port = await hub.listen("127.0.0.1", 0);
  const settings = { server: `https://127.0.0.1:${port}`, identity: { ca: authority.cert, cert, key }, target };
  const agent = fork(join(import.meta.dirname, "agent-process.ts"), [JSON.stringify(settings)]);
  await once(agent, "message");
  const dial: Dial = (signal) => hub.dial(CLUSTER, signal);
  const directory = mkdtempSync(join(tmpdir(), "legation-hub-"));
  const socket = join(directory, "hub.sock");
  const server = await serveDial(socket, dial);
  return {
    dial,
    socket,
    agentPid: agent.pid ?? 0,
    [Symbol.asyncDispose]: async () => {
      server.close();
      agent.kill();
      await hub.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
