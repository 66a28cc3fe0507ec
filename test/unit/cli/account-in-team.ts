import type { Cluster } from "../../../src/api/cluster.ts";
import type { KubeNode, KubeObject, Namespace } from "../../../src/api/kubernetes.ts";
import { clusters } from "../../../src/api/resources.ts";
import type { Session } from "../../../src/cli/shared/session.ts";
import { namespaces, nodes } from "../../../src/kube/resources.ts";
import { ApiServer } from "../../support/api-server/api-server.ts";
import { clientOf } from "../../support/api-server/client.ts";
import type { ServedResource } from "../../support/api-server/refusal.ts";
import { viewerOf } from "../../support/api-server/rights.ts";
import { connection, type RecordedSession, recordedSession } from "./session.ts";
import { host, namespace } from "./simulation/host.ts";

/** What an account with `view` in namespace `team` may read of all namespaces beside it. */
export const MEMBERS_TOO: readonly string[] = ["clusters", "nodes"];

/** A host in memory, with the members east and west, and a session of an account with rights in namespace `team` alone. */
export function accountInTeam(
  objects: readonly (readonly [ServedResource, KubeObject])[],
  more: readonly string[] = [],
  parts: Partial<Session> = {},
): RecordedSession & { readonly server: ApiServer } {
  const server = new ApiServer("host");
  const state = host({ east: {}, west: {} });
  for (const one of state.clusters) server.put<Cluster>(clusters, one);
  for (const one of state.nodes) server.put<KubeNode>(nodes, one);
  for (const name of ["team", "other"]) server.put<Namespace>(namespaces, namespace(name));
  for (const [resource, object] of objects) server.put(resource, object);
  const client = clientOf(server, { way: viewerOf("team", ...more) });
  const connect = async () => connection(client, { namespace: "team" });
  return { ...recordedSession({ connect, ...parts }), server };
}
