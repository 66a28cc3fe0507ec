import { setTimeout as sleep } from "node:timers/promises";
import { apiRequest } from "../support/clusters/api-request.ts";
import { FaultProxy } from "../support/clusters/fault-proxy.ts";
import { freePort } from "../support/clusters/ports.ts";
import type { Cluster } from "../support/clusters/types.ts";
import type { RunningAgent } from "../support/legation/agent.ts";

/** Faults of a member's agent, and of its way to the hub. */
export const AGENT_FAULTS = [
  "agent killed",
  "agent paused",
  "agent's connections reset",
  "agent cut off",
  "agent's network silent",
  "agent's network silent until the member is lost",
  "hub's answers to the agent lost",
  "agent's requests lost",
  "agent's network slow",
] as const;

export type AgentFault = (typeof AGENT_FAULTS)[number];

const AGENT_FAULT_NAMES: ReadonlySet<string> = new Set(AGENT_FAULTS);

export function isAgentFault(fault: string): fault is AgentFault {
  return AGENT_FAULT_NAMES.has(fault);
}

/** A member's agent, and its way to the hub. */
export interface AgentScene {
  readonly agent: () => RunningAgent | undefined;
  readonly link: FaultProxy;
}

// An API server takes no loopback address as an endpoint: only the port is used.
const HUB_SERVICE = "legation-hub";
const ENDPOINT = { POD_IP: "10.1.2.3" };

/** Flags and variables of a controller that may serve the hub. */
export async function hubFlags(): Promise<string[]> {
  return [`--hub-listen=0.0.0.0:${await freePort()}`, `--hub-service=${HUB_SERVICE}`];
}

export const hubEnvironment: Readonly<Record<string, string>> = ENDPOINT;

/** Opens an agent's way to the hub, which leads to the leader as the hub's Service does. */
export async function openLink(host: Cluster): Promise<FaultProxy> {
  const path = `/apis/discovery.k8s.io/v1/namespaces/legation-system/endpointslices/${HUB_SERVICE}`;
  let known: number | undefined;
  const leader = async (): Promise<number | undefined> => {
    try {
      const { status, text } = await apiRequest(host, "GET", path);
      if (status === 200) known = (JSON.parse(text) as { ports?: { port?: number }[] }).ports?.[0]?.port;
    } catch {
      // A Service keeps its endpoints while the API server is away.
    }
    return known;
  };
  const link = new FaultProxy(await freePort(), leader);
  await link.listen();
  return link;
}

/** Breaks an agent or its way to the hub, and mends it after `lastsMs`, or once the member is lost. */
export async function injectAgentFault(
  { agent, link }: AgentScene,
  fault: AgentFault,
  { lastsMs, lost }: { readonly lastsMs: number; readonly lost: () => Promise<void> },
): Promise<void> {
  const running = agent();
  if (running === undefined) throw new Error("the member has no agent now");
  const during = async (mode: Parameters<FaultProxy["set"]>[0], until: () => Promise<unknown>): Promise<void> => {
    await link.set(mode);
    await until();
    await link.set({ kind: "forward" });
  };
  const passed = (): Promise<void> => sleep(lastsMs);
  switch (fault) {
    case "agent killed":
      await running.stop("SIGKILL");
      await passed();
      return running.start();
    case "agent paused":
      await running.freeze();
      await passed();
      return running.thaw();
    case "agent's connections reset":
      return link.reset();
    case "agent cut off":
      return during({ kind: "cut" }, passed);
    case "agent's network silent":
      return during({ kind: "blackhole" }, passed);
    case "agent's network silent until the member is lost":
      return during({ kind: "blackhole" }, lost);
    case "hub's answers to the agent lost":
      return during({ kind: "deaf", direction: "answers" }, passed);
    case "agent's requests lost":
      return during({ kind: "deaf", direction: "requests" }, passed);
    case "agent's network slow":
      return during({ kind: "slow", ms: 200 }, passed);
  }
}

/** Takes all faults of an agent back. */
export async function mendAgent({ agent, link }: AgentScene): Promise<void> {
  await link.set({ kind: "forward" });
  await agent()?.start();
}
