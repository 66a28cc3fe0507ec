import { join } from "node:path";
import { z } from "zod";
import { loadManifests } from "../../../src/cli/shared/manifests.ts";
import { MANIFESTS } from "../harness/installed.ts";
import { type Account, describeRight } from "./used.ts";

/** Roles for people, which no account of Legation has. */
const FOR_PEOPLE: ReadonlySet<string> = new Set(["legation-authors", "legation-viewer"]);

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

/** Every right that the manifests give Legation's accounts, each as `describeRight` puts it. */
export async function grantedRights(folder: string = MANIFESTS): Promise<string[]> {
  return [...new Set((await grants(folder)).map(({ right }) => right))].sort();
}

/** Returns the rights that hold for objects of every name. */
export async function rightsToAnyName(): Promise<string[]> {
  return (await grants(MANIFESTS)).filter(({ named }) => !named).map(({ right }) => right);
}

async function grants(folder: string): Promise<{ readonly right: string; readonly named: boolean }[]> {
  const manifests = [...(await loadManifests(folder)), ...(await loadManifests(join(folder, "member")))];
  return manifests.flatMap((manifest) => {
    const parsed = rulesSchema.safeParse(manifest);
    if (!parsed.success || FOR_PEOPLE.has(parsed.data.metadata.name)) return [];
    const { metadata, rules } = parsed.data;
    const account: Account =
      metadata.name === "legation-controller"
        ? "controller"
        : metadata.name === "legation-webhook"
          ? "webhook"
          : "host";
    const namespace = metadata.namespace ?? "";
    return rules.flatMap(({ apiGroups, resources, resourceNames, nonResourceURLs, verbs }) => {
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
