import { onTestFinished } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import type { Secret, Stored } from "../../../../src/api/kubernetes.ts";
import { ALL_NAMESPACES, type Shard } from "../../../../src/api/shards.ts";
import { firstAuthorities } from "../../../../src/controllers/agents/authority.ts";
import { AgentController } from "../../../../src/controllers/agents/controller.ts";
import { sha256 } from "../../../../src/controllers/agents/credentials.ts";
import type { ControllerEvents } from "../../../../src/controllers/events.ts";
import { Events } from "../../../../src/runtime/event-bus.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import type { Hub } from "../../../../src/tunnel/hub.ts";
import { answerOf, fieldsOf } from "../../../support/builders/answers.ts";
import { cluster } from "../../../support/builders/member.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";

export const DAY_MS: number = 24 * 60 * 60_000;
export const now: number = Date.UTC(2026, 0, 1);
export const hubSecret: Promise<Secret> = firstAuthorities("hub.example.org:8132", now);
export const TOKEN = "right";

export function clusterNamed(name: string, spec: Partial<Cluster["spec"]> = { agent: {} }): Stored<Cluster> {
  return cluster(name, { spec: { credentialsSecret: { name: `member-${name}` }, ...spec } });
}

export function memberSecret(name: string, annotations: Record<string, string> = {}): Stored<Secret> {
  return answerOf({
    metadata: {
      namespace: "legation-system",
      name: `member-${name}`,
      resourceVersion: "7",
      annotations: {
        "legation.dev/agent-token-sha256": sha256(TOKEN),
        "legation.dev/agent-token-expires": new Date(now + 60_000).toISOString(),
        "legation.dev/token-expires": new Date(now).toISOString(),
        ...annotations,
      },
    },
  });
}

/** A host with agents, and what its controller does. */
export interface AgentsScene {
  readonly controller: AgentController;
  readonly clock: FakeClock;
  readonly events: Events<ControllerEvents>;
  readonly patches: readonly { readonly name: string; readonly body: Partial<Secret> }[];
  /** Secrets of members, by name. */
  readonly secrets: Map<string, Stored<Secret>>;
  readonly accessSecrets: ReadonlyMap<string, Secret>;
  /** Certificates under which the hub served. */
  readonly served: readonly string[];
  /** Clusters whose agents were asked for credentials, and the accounts of these. */
  readonly asked: readonly string[];
  readonly accounts: string[];
  readonly rechecked: readonly string[];
  readonly forgotten: readonly string[];
  /** What the agent tells of itself. */
  readonly told: { homeAddress?: string };
  /** When certificates expire that were issued to connected agents, by Cluster. */
  readonly renewed: Map<string, number | undefined>;
  readonly endpoints: readonly string[];
  readonly closed: { readonly count: number };
}

/** A host with these Clusters, of which the test sees the patches. */
export async function controllerOf(
  clusters: readonly Stored<Cluster>[],
  {
    patch,
    open,
    shard = ALL_NAMESPACES,
  }: {
    readonly patch?: (body: object) => Promise<void>;
    readonly open?: (hub: Hub) => Promise<Hub>;
    readonly shard?: Shard;
  } = {},
): Promise<AgentsScene> {
  const clock = new FakeClock(now);
  const patches: { readonly name: string; readonly body: Partial<Secret> }[] = [];
  const secrets = new Map(clusters.map(({ metadata: { name } }) => [`member-${name}`, memberSecret(name)]));
  const asked: string[] = [];
  const accounts: string[] = [];
  const accessSecrets = new Map<string, Secret>();
  const rechecked: string[] = [];
  const renewed = new Map<string, number | undefined>();
  const forgotten: string[] = [];
  const told: { homeAddress?: string } = {};
  const events = new Events<ControllerEvents>();
  const closed = { count: 0 };
  const renewedWith: string[] = [];
  const hub: Partial<Hub> = {
    askForCredentials: (name, account) => {
      asked.push(name);
      accounts.push(account);
    },
    recheck: (name) => rechecked.push(name),
    noteCertificate: (name, expires) => void renewed.set(name, expires),
    forget: (name) => forgotten.push(name),
    agent: () => ({ since: now, certificateExpires: undefined, version: "1.2.3", ...told }),
    renew: ({ cert }) => renewedWith.push(cert),
    close: async () => {
      closed.count += 1;
    },
  };
  const endpoints: string[] = [];
  const host = fakeClient({
    find: async (_resource, { name }) => accessSecrets.get(name),
    patch: async (_resource, { namespace, name }, sent) => {
      const body: Partial<Secret> = fieldsOf(sent);
      await patch?.(body);
      if (namespace === "legation-access") {
        accessSecrets.set(name, answerOf(body));
        return {};
      }
      if (body.kind === "EndpointSlice") endpoints.push(name);
      else patches.push({ name, body });
      const before = secrets.get(name);
      if (before === undefined) return {};
      const annotations = { ...before.metadata.annotations, ...body.metadata?.annotations };
      secrets.set(name, {
        ...before,
        data: { ...before.data, ...body.data },
        metadata: { ...before.metadata, annotations },
      });
      return {};
    },
  });
  const secretOfHub = answerOf<Secret>(await hubSecret);
  const registry = {
    cluster: (name: string) => clusters.find(({ metadata }) => metadata.name === name),
    clusters: () => [...clusters],
    secret: ({ spec }: Stored<Cluster>) => secrets.get(spec.credentialsSecret.name),
    systemSecret: () => secretOfHub,
    member: () => undefined,
  };
  const controller = new AgentController({
    shard,
    host,
    hostId: "host-id",
    registry,
    events,
    hub: {
      open: async ({ cert }) => {
        renewedWith.push(cert);
        return (await open?.(hub as Hub)) ?? (hub as Hub);
      },
      endpoint: { service: "legation-hub", address: "10.0.0.1", port: 8132 },
      address: "10.0.0.1:8132",
    },
    clock,
    log: createLogger({ level: "silent" }),
  });
  onTestFinished(() => controller.stop());
  return {
    controller,
    clock,
    patches,
    secrets,
    accessSecrets,
    served: renewedWith,
    asked,
    accounts,
    rechecked,
    forgotten,
    told,
    renewed,
    events,
    endpoints,
    closed,
  };
}
