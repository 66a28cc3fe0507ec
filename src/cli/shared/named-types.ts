import { z } from "zod";
import type { KubeObject } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { customResourceDefinitions, kindName, type Resource } from "../../kube/resources.ts";
import type { Discovery } from "./discovery.ts";
import { Failure } from "./failure.ts";
import { some } from "./output.ts";

/** A resource as a user names it: plural and group. The core group is empty. */
export interface TypeName {
  readonly plural: string;
  readonly group: string;
}

export const COPY_VERBS: readonly string[] = ["list", "watch", "create", "patch", "delete"];
/** Verbs that the controller needs for whole objects on the host. */
export const SOURCE_VERBS: readonly string[] = ["list", "watch", "patch"];
/** Verbs that the controller needs for a definition of the host that follows into members. */
export const DEFINITION_SOURCE_VERBS: readonly string[] = ["list", "watch"];
/** Verbs that copies of a definition need in a member, beside `create`, which knows no names. */
export const DEFINITION_COPY_VERBS: readonly string[] = ["list", "watch", "patch"];

export function definitionRule(name: string, verbs: readonly string[]): object {
  const { group, plural } = customResourceDefinitions;
  return { apiGroups: [group], resources: [plural], resourceNames: [name], verbs: [...verbs] };
}

/** Returns the host's resources of the named types. Rejects with `Failure` for one that no CustomResourceDefinition defines. */
export async function findDefined(
  client: ClusterClient,
  discovery: Pick<Discovery, "all">,
  names: readonly TypeName[],
  { verbs, signal }: { readonly verbs: readonly string[]; readonly signal: AbortSignal },
): Promise<readonly Resource<KubeObject>[]> {
  const { cluster } = client;
  const types = await findTypes(discovery, names, { cluster, verbs });
  for (const name of names.map(kindName)) {
    if ((await client.find(customResourceDefinitions, { name }, { signal })) !== undefined) continue;
    throw new Failure("refused", {
      object: `${cluster}: ${name}`,
      problem: "no CustomResourceDefinition defines this type, so that none can follow into members",
      remedy: "leave out --definitions",
    });
  }
  return types;
}

/** Parses `jobs.batch,configmaps`. Every type is written out: a wildcard would include types that give rights. */
export const typeList: z.ZodType<readonly TypeName[], string> = z.string().transform((text, context) => {
  const types = new Map<string, TypeName>();
  for (const item of text.split(",").map((part) => part.trim())) {
    if (item === "") continue;
    const [, plural, group = ""] = /^([a-z0-9][-a-z0-9]*)(?:\.([-.a-z0-9]+))?$/.exec(item) ?? [];
    const problem = item.includes("*")
      ? "is a wildcard; name each type"
      : "is not a plural with its group; write e.g. jobs.batch, or configmaps of the core group";
    if (plural === undefined) context.addIssue(`${JSON.stringify(item)} ${problem}`);
    else types.set(item, { plural, group });
  }
  return [...types.values()];
});

/** Returns the named resources. Rejects with `Failure` for one that the server does not serve with these verbs. */
export async function findTypes(
  discovery: Pick<Discovery, "all">,
  names: readonly TypeName[],
  { cluster, verbs }: { readonly cluster: string; readonly verbs: readonly string[] },
): Promise<readonly Resource<KubeObject>[]> {
  if (names.length === 0) return [];
  const { types } = await discovery.all();
  return names.map((name) => {
    const found = types.find(({ resource }) => kindName(resource) === kindName(name));
    const object = `${cluster}: ${kindName(name)}`;
    if (found === undefined) {
      const served = types.map(({ resource }) => resource);
      const problem = "the API server does not serve this type";
      throw new Failure("refused", { object, problem, remedy: instead(name, served) });
    }
    const lacking = verbs.filter((verb) => !found.verbs.includes(verb));
    if (lacking.length === 0) return found.resource;
    throw new Failure("refused", {
      object,
      problem: `the API server serves it without ${lacking.join(", ")}, so it cannot be copied`,
      remedy: "leave it out",
    });
  });
}

function instead({ plural, group }: TypeName, served: readonly TypeName[]): string {
  const samePlural = served.filter((each) => each.plural === plural).map(kindName);
  if (samePlural.length > 0) return `write ${samePlural.join(" or ")}`;
  const sameGroup = served.filter((each) => each.group === group).map(kindName);
  const others =
    sameGroup.length === 0 ? "" : `; of ${group === "" ? "the core group" : group} it serves ${some(sameGroup)}`;
  return `install its CustomResourceDefinition there first; \`kubectl api-resources\` lists what it serves${others}`;
}
