import { VIRTUAL_NODE_LABEL } from "../api/keys.ts";
import type { Stored, Toleration } from "../api/kubernetes.ts";
import type { ResourceFlavor } from "../api/kueue.ts";
import { VIRTUAL_NODE_KIND } from "../api/virtual-node.ts";
import { type MemberLabels, specInMember } from "../pods/virtual-node-terms.ts";
import type { Candidate } from "./candidate.ts";

/** The labels and tolerations that a ResourceFlavor adds to its pods. */
export interface Flavor {
  readonly name: string;
  readonly nodeLabels: Readonly<Record<string, string>>;
  readonly tolerations: readonly Toleration[];
}

export function flavorOf({ metadata, spec }: Stored<ResourceFlavor>): Flavor {
  return { name: metadata.name, nodeLabels: spec?.nodeLabels ?? {}, tolerations: spec?.tolerations ?? [] };
}

/** Reports whether pods of the flavor go to members: it has a label of virtual nodes. Members' labels outlast their loss. */
export function selectsMembers(
  { nodeLabels }: Flavor,
  clusters: readonly { readonly labels: Readonly<Record<string, string>> }[],
): boolean {
  return Object.entries(nodeLabels).some(([key, value]) => {
    if (key === VIRTUAL_NODE_LABEL || VIRTUAL_NODE_KIND[key] === value) return true;
    return clusters.some(({ labels }) => labels[key] === value);
  });
}

/** Returns the labels that nodes of the member need for the flavor's pods. Undefined: the virtual node is not what it selects. */
export function labelsOfNodes(
  { nodeLabels }: Flavor,
  member: MemberLabels,
): Readonly<Record<string, string>> | undefined {
  const { spec, refusal } = specInMember(member, { containers: [], nodeSelector: { ...nodeLabels } });
  return refusal === undefined ? (spec.nodeSelector ?? {}) : undefined;
}

/** Reports whether pods of the flavor find nodes in the member, as far as its nodes are known. */
export function hasNodesFor(flavor: Flavor, candidate: Pick<Candidate, keyof MemberLabels | "nodesFor">): boolean {
  const nodeSelector = labelsOfNodes(flavor, candidate);
  if (nodeSelector === undefined) return false;
  const { tolerations } = flavor;
  const kind = JSON.stringify([nodeSelector, tolerations]);
  const fit = candidate.nodesFor?.({ kind, nodeSelector, tolerations, requests: {} });
  // A member without nodes, and one whose nodes all take no pods now, are told as such.
  return fit === undefined || fit.nodes === 0 || fit.tolerated > 0;
}
