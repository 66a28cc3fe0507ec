import { isIP } from "node:net";
import { z } from "zod";
import { SYSTEM_NAMESPACE } from "../../api/keys.ts";
import { expiresAt } from "../../certificates/validity.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { isKubeError, RETRY_CLASS } from "../../kube/errors.ts";
import { services } from "../../kube/resources.ts";
import { requestToken } from "../../kube/service-account-token.ts";
import { Backoff } from "../../runtime/backoff.ts";
import { realClock } from "../../runtime/clock.ts";
import { createLogger, type Logger } from "../../telemetry/logger.ts";
import { Metrics } from "../../telemetry/metrics.ts";
import { Agent, REFUSED, REFUSED_BACKOFF } from "../../tunnel/agent.ts";
import { HomeApiListener } from "../../tunnel/home-api-listener.ts";
import { hostOfAddress } from "../../tunnel/hub-address.ts";
import type { MemberCredentials } from "../../tunnel/messages.ts";
import { type Equip, equipped, flags } from "../shared/command.ts";
import { flagRules, listenAddress, withGlobals } from "../shared/input.ts";
import { listenAt, serveHealthAt } from "../shared/listening.ts";
import { packageVersion } from "../shared/package-root.ts";
import { LOG_LEVEL_FLAG, logLevel } from "../shared/serving-flags.ts";
import type { Connection } from "../shared/session.ts";
import { AgentState, ensureCertificate, hubClient } from "./state.ts";

const BACKOFF = { initialMs: 5_000, maxMs: 10_000 };
// Costs nothing while the certificate is good, and a clock may be set at any time.
const CHECK_CERTIFICATE_MS = 60_000;

export const command: Equip = equipped({
  description:
    "Runs in a member that its host cannot reach: it connects to the host's controller, which reaches the member's API server " +
    "through it, and nothing else. `legation join --agent` prints the manifest that runs it. Writes its log as JSON lines to " +
    "standard output.",
  flags: [
    ...flags({
      "--secret <name>": "Secret in legation-system with the hub's address and the agent's certificate (required)",
      "--home-api-listen <address>":
        "where pods of the member connect to reach the host's API server through it (default: nowhere)",
      "--home-api-service <name>":
        "Service in legation-system by which they do, whose cluster IP the host is told (with --home-api-listen)",
      "--health-listen <address>": "where /livez, /readyz and /metrics listen (default: nowhere)",
    }),
    LOG_LEVEL_FLAG,
  ],
  examples: {
    "agent --secret legation-agent-1f0c2a9b": "in the member, with its service account",
  },
  input: withGlobals({
    secret: z.string({ error: "is missing; write --secret NAME" }).min(1),
    healthListen: listenAddress.optional(),
    homeApiListen: listenAddress.optional(),
    homeApiService: z.string().min(1).optional(),
    logLevel,
  }).superRefine(flagRules({ needs: { homeApiListen: "homeApiService", homeApiService: "homeApiListen" } })),
  run: async (options, session) => {
    const { env, signal } = session;
    const log = createLogger({ level: options.logLevel });
    const member = await session.connect(options, "member");
    const state = await readState(member.client, options.secret, signal, log);
    const hub = hubClient(state, env, "legation-agent");
    const { host, port } = new URL(member.server);
    const { homeApiListen, homeApiService = "" } = options;
    const listener = homeApiListen === undefined ? undefined : new HomeApiListener({ hub, clock: realClock, log });
    const agent = new Agent({
      hub,
      version: packageVersion(),
      home: listener && { listener, address: (ending) => clusterIpOf(member.client, homeApiService, ending) },
      target: { host: hostOfAddress(host), port: Number(port || 443) },
      credentials: async (which, ending) => {
        const { account, accessAccount } = state.current;
        const name = which === "host" ? account : accessAccount;
        return name === undefined ? undefined : await credentialsOf(member, name, ending);
      },
      onAuthorities: (authorities) => void state.trust(authorities, { clock: realClock, log, signal }),
      clock: realClock,
      log,
    });
    const notReady = (): string | undefined => (agent.connected ? undefined : "not connected to the hub");
    const metrics = new Metrics();
    const health = await serveHealthAt("--health-listen", options.healthListen, metrics, notReady);
    const ensure = async (): Promise<void> => {
      await ensureCertificate(state, hub, { now: Date.now(), signal });
      const { cert } = state.current;
      if (cert !== undefined) metrics.setCertificateExpiry("agent", expiresAt(cert));
    };
    try {
      if (listener !== undefined && homeApiListen !== undefined) {
        await listenAt("--home-api-listen", () => listener.listen(homeApiListen.host, homeApiListen.port));
      }
      await untilCertified(ensure, signal, log);
      const renewing = keepCertified(ensure, signal, log);
      await agent.run(signal);
      await renewing;
    } finally {
      await listener?.close();
      await hub.close();
      await health?.close();
    }
  },
});

/** Tries until the API server answers: a Deployment would start an agent that ended later and later. Rejects with `Failure`. */
async function readState(client: ClusterClient, secret: string, signal: AbortSignal, log: Logger): Promise<AgentState> {
  const backoff = new Backoff(BACKOFF);
  for (;;) {
    try {
      return await AgentState.read(client, secret, signal);
    } catch (error) {
      if (signal.aborted || !isKubeError(error) || RETRY_CLASS[error.code] === "never") throw error;
      log.error({ reason: error.detail }, "the member's API server does not answer");
      await realClock.sleep(backoff.next(), signal);
    }
  }
}

/** Tries until there is a certificate, since the hub may come later than the agent. */
async function untilCertified(ensure: () => Promise<void>, signal: AbortSignal, log: Logger): Promise<void> {
  const failures = new Backoff(BACKOFF);
  const refusals = new Backoff(REFUSED_BACKOFF);
  while (!signal.aborted) {
    try {
      return await ensure();
    } catch (error) {
      if (signal.aborted) return;
      const isRefused = isKubeError(error, "Forbidden");
      const reason = isKubeError(error) ? error.detail : String(error);
      const delayMs = Math.round((isRefused ? refusals : failures).next());
      log.error({ reason, delayMs }, isRefused ? REFUSED : "no certificate from the hub");
      await realClock.sleep(delayMs, signal).catch(() => {});
    }
  }
}

/** Renews the certificate when due, until the signal fires. The connection that is open stays. */
async function keepCertified(ensure: () => Promise<void>, signal: AbortSignal, log: Logger): Promise<void> {
  while (!signal.aborted) {
    await realClock.sleep(CHECK_CERTIFICATE_MS, signal).catch(() => {});
    if (!signal.aborted) await untilCertified(ensure, signal, log);
  }
}

async function clusterIpOf(member: ClusterClient, name: string, signal: AbortSignal): Promise<string> {
  const { spec } = await member.get(services, { namespace: SYSTEM_NAMESPACE, name }, { signal });
  const { clusterIP = "" } = spec ?? {};
  if (isIP(clusterIP) !== 0) return clusterIP;
  throw new Error(`Service ${SYSTEM_NAMESPACE}/${name} has no cluster IP`);
}

async function credentialsOf(
  { client, server, certificateAuthority = "" }: Connection,
  account: string,
  signal: AbortSignal,
): Promise<MemberCredentials> {
  const { token, expires } = await requestToken(client, { namespace: SYSTEM_NAMESPACE, name: account }, signal);
  return { server: new URL(server).origin, certificateAuthority, token, expires };
}
