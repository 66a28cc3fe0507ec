import { existsSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { KubeObject } from "../../../src/api/kubernetes.ts";
import { delegatedTypeObjects } from "../../../src/cli/install/types.ts";
import { agentObjects } from "../../../src/cli/join/agent-objects.ts";
import { accessAccountObjects, typeObjects } from "../../../src/cli/join/grant-access.ts";
import { loadManifests, type Manifest } from "../../../src/cli/shared/manifests.ts";
import type { Resource } from "../../../src/kube/resources.ts";
import { MANIFESTS } from "../harness/installed.ts";
import { widgets } from "../legation/widgets.ts";
import { type Account, describeRight } from "./used.ts";

/** Reports whether a role is for people, so that no account of Legation has it. */
function isForPeople(kind: string, name: string): boolean {
  if (kind === "ClusterRole" && name === "legation-access") return true;
  return name === "legation-viewer" || name.startsWith("legation-authors");
}

const ACCOUNT = { hostId: "host", hostName: "host", cluster: "west" };

/** Types whose objects and definitions tests give to members, as `legation join --types --definitions` grants them there. */
const TYPES: readonly Resource<KubeObject>[] = [widgets];

const rulesSchema = z.looseObject({
  kind: z.enum(["Role", "ClusterRole"]),
  metadata: z.looseObject({ name: z.string(), namespace: z.string().optional() }),
  rules: z.array(
    z.strictObject({
      apiGroups: z.array(z.string()).default([""]),
      resources: z.array(z.string()).default([]),
      resourceNames: z.array(z.string()).optional(),
      nonResourceURLs: z.array(z.string()).default([]),
      verbs: z.array(z.string()),
    }),
  ),
});

/** Every right that the manifests, `join --agent` and `join --access` give Legation's accounts, each as `describeRight` puts it. */
export async function grantedRights(folder: string = MANIFESTS): Promise<string[]> {
  return [...new Set((await grants(folder)).map(({ right }) => right))].sort();
}

/** Returns the rights that hold for objects of every name. */
export async function rightsToAnyName(): Promise<string[]> {
  return (await grants(MANIFESTS)).filter(({ named }) => !named).map(({ right }) => right);
}

async function grants(folder: string): Promise<readonly Grant[]> {
  const ofJoin = [
    ...agentObjects(ACCOUNT, {
      image: "",
      hub: "",
      authorities: "",
      token: "",
      homeApi: true,
      access: true,
    }),
    ...accessAccountObjects(ACCOUNT, "constrained"),
  ];
  const parts = ["", "member", join("member", "mcs.yaml"), "access", "relay", "mcs"];
  const folders = parts.map((part) => join(folder, part)).filter((each) => existsSync(each));
  return grantsOf([...(await Promise.all(folders.map(loadManifests))).flat(), ...ofJoin]);
}

/** Returns the rights that an operator adds for the types that tests give to members, by manifest or by the commands. */
export async function rightsOfTypes(): Promise<string[]> {
  const loaded = await loadManifests(join(MANIFESTS, "delegated-types", "rbac.yaml"));
  const ofCommands = [
    ...TYPES.flatMap((type) => delegatedTypeObjects(type, { definition: "Follow" })),
    ...typeObjects({ types: TYPES, definitions: true }, ACCOUNT),
  ];
  return [...new Set(grantsOf([...loaded, ...ofCommands]).map(({ right }) => right))].sort();
}

interface Grant {
  readonly right: string;
  readonly named: boolean;
}

function grantsOf(manifests: readonly Manifest[]): readonly Grant[] {
  return manifests.flatMap((manifest) => {
    const parsed = rulesSchema.safeParse(manifest);
    if (!parsed.success || isForPeople(parsed.data.kind, parsed.data.metadata.name)) return [];
    const { metadata, rules } = parsed.data;
    const account: Account = metadata.name.startsWith("legation-controller")
      ? "controller"
      : metadata.name === "legation-webhook"
        ? "webhook"
        : metadata.name.startsWith("legation-agent-")
          ? "agent"
          : metadata.name.startsWith("legation-access")
            ? "access"
            : metadata.name === "legation-relay"
              ? "relay"
              : "host";
    const namespace = metadata.namespace ?? "";
    return rules.flatMap(({ apiGroups, resources, resourceNames, nonResourceURLs, verbs: all }) => {
      // Audit logs show the request of an impersonated user, not the right to impersonate.
      const verbs = all.filter((verb) => !verb.startsWith("impersonate"));
      const rights = [
        ...verbs.flatMap((verb) => nonResourceURLs.map((url) => `${account}: ${verb} ${url}`)),
        ...apiGroups.flatMap((group) =>
          resources.flatMap((each) => {
            const [resource = "", subresource] = each.split("/");
            return verbs.map((verb) => describeRight({ account, verb, group, resource, subresource, namespace }));
          }),
        ),
      ];
      return rights.map((right) => ({ right, named: resourceNames !== undefined }));
    });
  });
}

/** Reports whether the use of a right shows that the granted one is needed: a ClusterRole's right is used in any namespace. */
export function covers(granted: string, used: string): boolean {
  return used === granted || (!granted.includes(" in ") && used.replace(/ in \S+$/, "") === granted);
}
