import { z } from "zod";
import { AGGREGATE_TO_HOST_LABEL } from "../../api/keys.ts";
import type { KubeObject } from "../../api/kubernetes.ts";
import { customResourceDefinitions, kindName, type Resource } from "../../kube/resources.ts";
import { clusterRoles, hostAccountName, hostTypesName } from "../member/access.ts";
import { RBAC_VERSION, role, roleBinding } from "../member/rbac.ts";
import type { Manifest } from "../shared/manifests.ts";
import { COPY_VERBS, DEFINITION_COPY_VERBS, definitionRule } from "../shared/named-types.ts";
import { until } from "../shared/wait.ts";
import type { JoinContext } from "./validate.ts";

// Tells whether the member has devices for claims at all.
const DEVICES = { apiGroups: ["resource.k8s.io"], resources: ["deviceclasses", "resourceslices"], verbs: ["list"] };
/** Rights beside those on copies, by which a host knows whether the member is one for pods that name such objects. */
const PLACEMENT_RULES: Readonly<Record<string, readonly object[]>> = {
  "resourceclaims.resource.k8s.io": [DEVICES],
  "resourceclaimtemplates.resource.k8s.io": [DEVICES],
};

export interface GrantedTypes {
  readonly types: readonly Resource<KubeObject>[];
  /** The host may also create and change the types' CustomResourceDefinitions. */
  readonly definitions: boolean;
}

/** Returns the role that gathers a host's rights on types, its binding, and roles for each type. All have the base role's metadata. */
export function typeObjects(
  { types, definitions }: GrantedTypes,
  { hostId, metadata }: { readonly hostId: string; readonly metadata: Readonly<Record<string, unknown>> },
): readonly Manifest[] {
  const name = hostTypesName(hostId);
  const selects = ["true", hostId].map((value) => ({ matchLabels: { [AGGREGATE_TO_HOST_LABEL]: value } }));
  const labels = z.record(z.string(), z.string()).parse(metadata.labels);
  return [
    // The member's controller manager writes the rules.
    {
      apiVersion: RBAC_VERSION,
      kind: "ClusterRole",
      metadata: { ...metadata, name },
      aggregationRule: { clusterRoleSelectors: selects },
    },
    roleBinding("ClusterRole", { ...metadata, name }, hostAccountName(hostId)),
    ...types.flatMap((type) => {
      const ofType = kindName(type);
      const gatheredRole = (suffix: string, rules: readonly object[]): Manifest => {
        const gathers = { ...labels, [AGGREGATE_TO_HOST_LABEL]: hostId };
        const roleName = `${hostAccountName(hostId)}-${ofType}${suffix}`;
        return role("ClusterRole", { ...metadata, name: roleName, labels: gathers }, rules);
      };
      const objects = gatheredRole("", [
        { apiGroups: [type.group], resources: [type.plural], verbs: [...COPY_VERBS] },
        ...(PLACEMENT_RULES[ofType] ?? []),
      ]);
      // A role of its own stays when the type is granted again without it.
      return definitions ? [objects, gatheredRole("-definition", definitionRules(ofType))] : [objects];
    }),
  ];
}

/** RBAC knows no name when an object is created. An existing definition of another name cannot be changed by `create`. */
function definitionRules(name: string): object[] {
  const { group, plural } = customResourceDefinitions;
  return [{ apiGroups: [group], resources: [plural], verbs: ["create"] }, definitionRule(name, DEFINITION_COPY_VERBS)];
}

const gathered = z.looseObject({
  rules: z.array(z.looseObject({ apiGroups: z.array(z.string()), resources: z.array(z.string()) })).nullish(),
});
const GATHERED_WITHIN_MS = 20_000;

/** Waits until the rights on types are in force, so that the host's controller does not meet a refusal. */
export async function waitForTypes(
  types: readonly Resource<KubeObject>[],
  hostId: string,
  { member: { client }, signal, report }: JoinContext,
): Promise<void> {
  const name = hostTypesName(hostId);
  const areGathered = async (): Promise<boolean> => {
    const rules = gathered.parse(await client.get(clusterRoles, { name }, { signal })).rules ?? [];
    const isGathered = ({ group, plural }: Resource<KubeObject>): boolean =>
      rules.some(({ apiGroups, resources }) => apiGroups.includes(group) && resources.includes(plural));
    return types.every(isGathered);
  };
  if (types.length === 0 || (await until(areGathered, { timeoutMs: GATHERED_WITHIN_MS, signal }))) return;
  report(
    `${client.cluster}: ClusterRole ${name} has not gathered all types yet; the member's controller manager does, and they hold then`,
  );
}
