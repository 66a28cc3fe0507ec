import { AGGREGATE_TO_HOST_LABEL } from "../../../src/api/keys.ts";
import type { Cluster } from "../clusters/types.ts";
import { kubectl } from "../harness/kubectl.ts";
import { eventually } from "../harness/wait.ts";
import { legation } from "./cli.ts";

const GATHERED = "legation-controller-types";

/** A host and its members, named as joined. */
export interface JoinedClusters {
  readonly host: Cluster;
  readonly members: Readonly<Record<string, Cluster>>;
}

/** Allows types in host and members by the commands. All clusters serve them, or with `--definitions` the host. */
export async function allowTypes(
  types: readonly string[],
  { host, members }: JoinedClusters,
  flags: readonly "--definitions"[] = [],
): Promise<void> {
  const given = [`--kubeconfig=${host.kubeconfig}`, `--types=${types.join(",")}`, ...flags];
  for (const [name, { kubeconfig }] of Object.entries(members)) {
    await legation(["join", name, `--member-kubeconfig=${kubeconfig}`, ...given]);
  }
  await legation(["install", ...given]);
  // A controller of the host gathers roles.
  const areGathered = async (): Promise<boolean> => {
    const role = await kubectl(host, ["get", "clusterrole", GATHERED, "-o", "json"]);
    return types.every((type) => role.includes(`"${type.split(".", 1)[0]}"`));
  };
  await eventually(areGathered, { what: `the controller's rights on ${types.join(", ")}` });
}

/** Takes the types back from host and members. Their definitions stay. */
export async function forbidTypes(types: readonly string[], { host, members }: JoinedClusters): Promise<void> {
  for (const type of types) {
    const roles = ["controller", "authors"].map((who) => `clusterrole/legation-${who}-${type}`);
    await kubectl(host, ["delete", "--ignore-not-found", `delegatedtype/${type}`]);
    await kubectl(host, ["delete", "--ignore-not-found", ...roles]);
  }
  for (const member of Object.values(members)) {
    const roles = await kubectl(member, ["get", "clusterroles", "-l", AGGREGATE_TO_HOST_LABEL, "-o", "name"]);
    const ofTypes = roles.split("\n").filter((role) => types.some((type) => role.includes(type)));
    if (ofTypes.length > 0) await kubectl(member, ["delete", ...ofTypes]);
  }
}
