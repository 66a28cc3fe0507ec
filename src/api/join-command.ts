import type { Cluster } from "./cluster.ts";

/** Returns the command that joins a member once more, by the way on which the host reaches it. */
export function joinCommandOf({ metadata, spec }: Pick<Cluster, "metadata" | "spec">): string {
  return `legation join ${metadata.name} ${spec.agent === undefined ? "--member-kubeconfig FILE" : "--agent"}`;
}
