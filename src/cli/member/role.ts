import { Failure } from "../failure.ts";
import { loadManifests, type Manifest } from "../manifests/load.ts";

/** The ClusterRole of the member-side manifests: the rights that a host needs in a member. */
export async function loadMemberRole(folder: string): Promise<Manifest> {
  const role = (await loadManifests(folder)).find(({ kind }) => kind === "ClusterRole");
  if (role !== undefined) return role;
  throw new Failure("failure", {
    object: folder,
    problem: "holds no ClusterRole",
    remedy: "install the package again",
  });
}
