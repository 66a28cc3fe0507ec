import { z } from "zod";
import { SYSTEM_NAMESPACE } from "../../api/keys.ts";
import { requestToken } from "../../controllers/member-token/token.ts";
import { isKubeError } from "../../kube/errors.ts";
import { realClock } from "../../runtime/clock.ts";
import { createLogger, type Logger } from "../../telemetry/logger.ts";
import { Metrics } from "../../telemetry/metrics.ts";
import { Agent } from "../../tunnel/agent.ts";
import { hostOfAddress } from "../../tunnel/hub-address.ts";
import type { MemberCredentials } from "../../tunnel/messages.ts";
import { flag, type Subcommand } from "../shared/command.ts";
import { type GlobalInput, listenAddress, withGlobals } from "../shared/input.ts";
import { type ListenAddress, serveHealthAt } from "../shared/listening.ts";
import type { Connection } from "../shared/session.ts";
import { ensureCertificate, hubClient } from "./certificate.ts";
import { AgentState } from "./state.ts";

interface AgentInput extends GlobalInput {
  readonly secret: string;
  readonly healthListen?: ListenAddress | undefined;
  readonly logLevel: "debug" | "info" | "warn" | "error";
}

const RETRY_MS = 5_000;
const LOOK_EVERY_MS = 6 * 60 * 60_000;

/** `legation agent` */
export const agentCommand: Subcommand<AgentInput> = {
  description:
    "Runs in a member that its host cannot reach: it connects to the host's controller, which reaches the member's API server " +
    "through it, and nothing else. `legation join --agent` prints the manifest that runs it. Writes its log as JSON lines to " +
    "standard output.",
  flags: [
    flag("--secret <name>", "Secret in legation-system with the hub's address and the agent's certificate (required)"),
    flag("--health-listen <address>", "where /livez, /readyz and /metrics listen (default: nowhere)"),
    flag("--log-level <level>", "debug, info, warn or error (default: info)"),
  ],
  examples: [["agent --secret legation-agent-1f0c2a9b", "in the member, with its service account"]],
  input: withGlobals({
    secret: z.string({ error: "is missing; write --secret NAME" }).min(1),
    healthListen: listenAddress.optional(),
    logLevel: z.enum(["debug", "info", "warn", "error"]).default("info"),
  }),
  run: async (options, session) => {
    const { env, signal } = session;
    const log = createLogger({ level: options.logLevel });
    const member = await session.connect(options, "member");
    const state = await AgentState.read(member.client, options.secret, signal);
    const hub = hubClient(state, env, "legation-agent");
    const { host, port } = new URL(member.server);
    const agent = new Agent({
      hub,
      target: { host: hostOfAddress(host), port: Number(port || 443) },
      credentials: (ending) => credentialsOf(member, state.current.account, ending),
      onAuthorities: (authorities) => {
        if (authorities === state.current.authorities) return;
        state
          .store({ authorities }, signal)
          .catch((err: unknown) => log.warn({ err }, "the hub's authorities were not stored"));
      },
      clock: realClock,
      log,
    });
    const notReady = (): string | undefined => (agent.connected ? undefined : "not connected to the hub");
    const health = await serveHealthAt("--health-listen", options.healthListen, new Metrics(), notReady);
    try {
      await untilCertified(() => ensureCertificate(state, hub, { now: Date.now(), signal }), signal, log);
      const renewing = keepCertified(() => ensureCertificate(state, hub, { now: Date.now(), signal }), signal, log);
      await agent.run(signal);
      await renewing;
    } finally {
      await hub.close();
      await health?.close();
    }
  },
};

/** Tries until there is a certificate, since the hub may come later than the agent. */
async function untilCertified(ensure: () => Promise<void>, signal: AbortSignal, log: Logger): Promise<void> {
  while (!signal.aborted) {
    try {
      return await ensure();
    } catch (error) {
      if (signal.aborted) return;
      log.error({ reason: isKubeError(error) ? error.detail : String(error) }, "no certificate from the hub");
      await realClock.sleep(RETRY_MS * (1 + Math.random()), signal).catch(() => {});
    }
  }
}

/** Renews the certificate when due, until the signal fires. The connection that is open stays. */
async function keepCertified(ensure: () => Promise<void>, signal: AbortSignal, log: Logger): Promise<void> {
  while (!signal.aborted) {
    await realClock.sleep(LOOK_EVERY_MS, signal).catch(() => {});
    if (!signal.aborted) await untilCertified(ensure, signal, log);
  }
}

async function credentialsOf(
  { client, server, certificateAuthority = "" }: Connection,
  account: string,
  signal: AbortSignal,
): Promise<MemberCredentials> {
  const { token, expires } = await requestToken(client, { namespace: SYSTEM_NAMESPACE, name: account }, signal);
  return { server: new URL(server).origin, certificateAuthority, token, expires };
}
