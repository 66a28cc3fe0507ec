import { z } from "zod";
import type { ClusterClient, RequestOptions } from "../../kube/client.ts";
import { KubeError } from "../../kube/errors.ts";
import type { ServedType } from "./type-names.ts";

// KEP-3352: all groups in two answers. Kubernetes 1.30 and newer serve v2.
const ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

// A member may send any text: a type's names are printed, and are part of paths.
const NAME = /^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$/;
const GROUP = /^[-.a-z0-9]*$/;

const texts = orEmpty(z.string());
const resource = z.object({
  resource: z.string(),
  responseKind: z.object({ kind: z.string() }),
  scope: z.string(),
  singularResource: z.string().default(""),
  shortNames: texts,
  categories: texts,
  verbs: texts,
});
const version = z.object({ version: z.string(), resources: orEmpty(resource) });
const groupDiscoveryList = z.object({
  kind: z.literal("APIGroupDiscoveryList"),
  // The core group has no name.
  items: orEmpty(z.object({ metadata: z.object({ name: z.string().default("") }), versions: orEmpty(version) })),
});

/** Returns the schema of a list, which Go writes as null when it is empty. */
function orEmpty<Item>(item: z.ZodType<Item>): z.ZodType<Item[]> {
  return z.preprocess((value) => value ?? [], z.array(item));
}

/** Returns the types that can be read, in the order of the API server's preference. Rejects with KubeError. */
export async function readServedTypes(client: ClusterClient, options: RequestOptions): Promise<readonly ServedType[]> {
  const answers = await Promise.all(
    ["/api", "/apis"].map(async (path) => {
      const parsed = groupDiscoveryList.safeParse(
        await client.raw({ method: "GET", path, accept: ACCEPT, ...options }),
      );
      if (parsed.success) return parsed.data.items;
      throw new KubeError("the answer is no aggregated discovery document; Kubernetes 1.30 or newer sends one", {
        code: "BadAnswer",
        cluster: client.cluster,
        verb: "get",
        resource: path,
      });
    }),
  );
  const types = answers.flat().flatMap(({ metadata: { name: group }, versions }) =>
    versions.flatMap(({ version, resources }) =>
      resources
        .filter(({ verbs }) => verbs.includes("list") || verbs.includes("get"))
        .map(({ resource, responseKind: { kind }, scope, singularResource, shortNames, categories }) => ({
          resource: { group, version, plural: resource, kind, namespaced: scope === "Namespaced" },
          singular: singularResource,
          shortNames,
          categories,
        })),
    ),
  );
  return types.filter(
    ({ resource: { group, version, plural, kind } }) =>
      GROUP.test(group) && [version, plural, kind].every((name) => NAME.test(name)),
  );
}
