import type { AnyObject } from "../../../src/api/delegated-type.ts";
import {
  CLUSTER_SELECTOR_ANNOTATION,
  CLUSTERS_ANNOTATION,
  OVERRIDES_ANNOTATION,
  PREFERENCES_ANNOTATION,
  WHOLE_KEY,
} from "../../../src/api/keys.ts";
import type { KubeObject } from "../../../src/api/kubernetes.ts";
import { delegatedTypes } from "../../../src/api/resources.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { apiVersionOf, type Resource } from "../../../src/kube/resources.ts";

const GROUP = "chaos.example.com";

export type Kind = "ConfigMap" | "Widget" | "Engine";

const configMaps: Resource<AnyObject> = {
  group: "",
  version: "v1",
  plural: "configmaps",
  kind: "ConfigMap",
  namespaced: true,
};
const custom = { group: GROUP, version: "v1", namespaced: true } as const;
const widgets: Resource<AnyObject> = { ...custom, plural: "widgets", kind: "Widget" };
const engines: Resource<AnyObject> = { ...custom, plural: "engines", kind: "Engine" };

/** Types of which members get whole objects. An Engine goes to one member; the parts of a Widget can be divided. */
export const KINDS: Readonly<Record<Kind, Resource<AnyObject>>> = {
  ConfigMap: configMaps,
  Widget: widgets,
  Engine: engines,
};

/** Kinds whose definition members may lack. */
export const CUSTOM_KINDS = ["Widget", "Engine"] as const;

/** Label of Clusters that objects select. */
export const OPEN_LABEL = "chaos-open";
/** The field that clients of members take over, with the authors' and their value. */
export const TAKEN = { field: "taken", ours: "ours", theirs: "theirs" } as const;

/** The label of a delivery tool that applies objects on the host, and prunes in members. */
export const APPLIED_BY = { "applyset.kubernetes.io/part-of": "applyset-of-chaos-v1" } as const;

const SPECS: Readonly<Record<Kind, object>> = {
  ConfigMap: {},
  Widget: { replicas: "/spec/parts", sum: ["readyReplicas"] },
  Engine: { exclusive: true, drift: "Report" },
};

/** Reports whether fields of a kind that clients of members take over stay so. Those of the others are put back. */
export function keepsTaken(kind: Kind): boolean {
  return kind === "Engine";
}

/** Name of a kind's DelegatedType and definition. */
export function typeName(kind: Kind): string {
  const { plural, group } = KINDS[kind];
  return group === "" ? plural : `${plural}.${group}`;
}

/** Returns the definition of a custom kind, which takes any fields. */
export function definitionOf(kind: Kind): object {
  const { plural, group } = KINDS[kind];
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: typeName(kind) },
    spec: {
      group,
      scope: "Namespaced",
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
        },
      ],
    },
  };
}

/** Creates a kind's DelegatedType. Rejects with KubeError. */
export async function createType(host: ClusterClient, kind: Kind): Promise<void> {
  const { group, plural } = KINDS[kind];
  const spec = { ...(group === "" ? {} : { group }), version: "v1", kind, plural, ...SPECS[kind] };
  const apiVersion = apiVersionOf(delegatedTypes);
  await host.create(delegatedTypes, { apiVersion, kind: "DelegatedType", metadata: { name: typeName(kind) }, spec });
}

/** The parts of an object that deeds change. */
export interface Content {
  readonly version: number;
  readonly parts?: number;
}

/** Returns an object with its author's annotations. Each change has another version. */
export function whole(
  kind: Kind,
  { name, content, annotations = {} }: { name: string; content: Content; annotations?: Record<string, string> },
): KubeObject & AnyObject {
  return {
    apiVersion: apiVersionOf(KINDS[kind]),
    kind,
    metadata: { name, labels: APPLIED_BY, annotations: { [WHOLE_KEY]: "true", ...annotations } },
    ...contentOf(kind, content),
  };
}

/** Returns the fields that hold the content. */
export function contentOf(kind: Kind, { version, parts = 4 }: Content): AnyObject {
  const { field, ours } = TAKEN;
  const common = { color: "red", region: "none", [field]: ours };
  if (kind === "ConfigMap") return { data: { version: String(version), ...common } };
  return { spec: { version, parts, ...common } };
}

/** Returns the fields of an object that copies are compared by. */
export function fieldsOf(kind: Kind, object: AnyObject): Readonly<Record<string, unknown>> {
  const fields = kind === "ConfigMap" ? object.data : object.spec;
  return typeof fields === "object" && fields !== null ? { ...fields } : {};
}

/** The top-level field with the content. */
export function contentField(kind: Kind): "data" | "spec" {
  return kind === "ConfigMap" ? "data" : "spec";
}

/** Returns annotations that place an object: in all members, in one, by a label, divided, or with an override. */
export function placementBy(kind: Kind, dice: number): Record<string, string> {
  const chosen = Math.floor(dice * 6);
  switch (chosen) {
    case 0:
      return { [CLUSTERS_ANNOTATION]: "west" };
    case 1:
      return { [CLUSTERS_ANNOTATION]: "east" };
    case 2:
      return { [CLUSTER_SELECTOR_ANNOTATION]: `${OPEN_LABEL}=true` };
    case 3: {
      if (kind !== "Widget") return {};
      const clusters = { west: { weight: 1 + (Math.floor(dice * 60) % 3) }, east: { weight: 1 } };
      return { [PREFERENCES_ANNOTATION]: JSON.stringify({ clusters }) };
    }
    case 4: {
      const patch = [{ op: "replace", path: `/${contentField(kind)}/region`, value: "west" }];
      return { [OVERRIDES_ANNOTATION]: JSON.stringify([{ clusters: ["west"], patch }]) };
    }
    default:
      return {};
  }
}

/** The annotations that `placementBy` writes. */
export const PLACEMENT_KEYS: readonly string[] = [
  CLUSTERS_ANNOTATION,
  CLUSTER_SELECTOR_ANNOTATION,
  PREFERENCES_ANNOTATION,
  OVERRIDES_ANNOTATION,
];
