import { CLUSTER_DEFAULTS } from "../api/cluster.ts";
import { SYSTEM_NAMESPACE } from "../api/keys.ts";
import type { ClusterClient } from "../kube/client.ts";
import { secrets } from "../kube/resources.ts";
import type { ControllerOptions } from "../runtime/controller.ts";
import type { Events } from "../runtime/event-bus.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Registry, RegistryEvents } from "./registry.ts";
import { TokenRenewal } from "./token-renewal.ts";

export interface MemberTokensOptions extends ControllerOptions {
  readonly host: ClusterClient;
  readonly registry: Pick<Registry, "cluster" | "secret" | "member">;
  readonly events: Pick<Events<RegistryEvents>, "on">;
  readonly metrics?: Metrics;
}

export function renewMemberTokens(options: MemberTokensOptions): TokenRenewal {
  const { host, registry, events, metrics } = options;
  const renewal = new TokenRenewal({
    ...options,
    name: "member-token",
    find: (name) => {
      const cluster = registry.cluster(name);
      const secret = cluster && registry.secret(cluster);
      if (cluster === undefined || secret === undefined) return undefined;
      const key = cluster.spec.credentialsSecret.key ?? CLUSTER_DEFAULTS.credentialsKey;
      const member = registry.member(name);
      const connect = member?.probed.reachable === true ? () => ({ client: member.client }) : undefined;
      return { secret, key, connect };
    },
    store: async ({ secret, annotations, data }, signal) => {
      const { resourceVersion, name } = secret.metadata;
      const isOurs = Object.keys(annotations).length > 0;
      const body = { metadata: { resourceVersion, ...(isOurs ? { annotations } : {}) }, data };
      await host.patch(secrets, { namespace: SYSTEM_NAMESPACE, name }, { type: "merge", body }, { signal });
    },
    onClaims: (name, claims) => metrics?.members.setCredentialsExpiry(name, claims?.expiresAt),
  });
  events.on("cluster", (name) => renewal.note(name));
  events.on("connection", ({ name }) => renewal.note(name));
  return renewal;
}
