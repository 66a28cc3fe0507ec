import { z } from "zod";
import type { KubeObject } from "../../api/kubernetes.ts";
import type { Resource } from "../../kube/resources.ts";
import type { Discovery } from "./discovery.ts";
import { Failure } from "./failure.ts";
import { some } from "./output.ts";

/** A resource as a user names it: plural and group. The core group is empty. */
export interface TypeName {
  readonly plural: string;
  readonly group: string;
}

/** Verbs that copies need in a member. */
export const COPY_VERBS: readonly string[] = ["list", "watch", "create", "patch", "delete"];
/** Verbs that the controller needs for whole objects on the host. */
export const SOURCE_VERBS: readonly string[] = ["list", "watch", "patch"];

/** Parses `jobs.batch,configmaps`. Every type is written out: a wildcard would include types that give rights. */
export const typeList: z.ZodType<readonly TypeName[], string> = z.string().transform((text, context) => {
  const types = new Map<string, TypeName>();
  for (const item of text.split(",").map((part) => part.trim())) {
    if (item === "") continue;
    const [, plural, group = ""] = /^([a-z0-9][-a-z0-9]*)(?:\.([-.a-z0-9]+))?$/.exec(item) ?? [];
    const problem = item.includes("*")
      ? "is a wildcard; name each type"
      : "is not a plural with its group; write e.g. jobs.batch, or configmaps of the core group";
    if (plural === undefined) context.addIssue({ code: "custom", message: `${JSON.stringify(item)} ${problem}` });
    else types.set(item, { plural, group });
  }
  return [...types.values()];
});

/** Formats a resource: `pods`, `deployments.apps`. */
export function kindName({ group, plural }: TypeName): string {
  return group === "" ? plural : `${plural}.${group}`;
}

/** Returns the named resources. Rejects with `Failure` for one that the server does not serve with these verbs. */
export async function findTypes(
  discovery: Pick<Discovery, "all">,
  names: readonly TypeName[],
  { cluster, verbs }: { readonly cluster: string; readonly verbs: readonly string[] },
): Promise<readonly Resource<KubeObject>[]> {
  if (names.length === 0) return [];
  const { served } = await discovery.all();
  return names.map((name) => {
    const found = served.find(({ resource }) => kindName(resource) === kindName(name));
    const object = `${cluster}: ${kindName(name)}`;
    if (found === undefined) {
      const remedy = instead(
        name,
        served.map(({ resource }) => resource),
      );
      throw new Failure("refused", { object, problem: "the API server does not serve this type", remedy });
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
