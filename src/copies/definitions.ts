import { z } from "zod";
import type { AnyObject } from "../api/delegated-type.ts";
import type { Stored } from "../api/kubernetes.ts";
import { customResourceDefinitions } from "../kube/resources.ts";
import type { CopiedKind } from "./kind.ts";
import { delegatedKind } from "./objects.ts";

/** Returns the record of one CustomResourceDefinition that follows into members. `hash` makes a short digest of a text. */
export function definitionKind(name: string, hash: (text: string) => string): CopiedKind<AnyObject> {
  const { group, version, plural, kind: ofDefinitions } = customResourceDefinitions;
  // A conversion webhook is reached in its own cluster alone.
  const retain = ["/spec/conversion"];
  // An administrator of the member may serve what the host's definition lacks: objects are lost with a version.
  const drift = "Report";
  const spec = { group, version, kind: ofDefinitions, plural, scope: "Cluster", retain, drift } as const;
  const kind = delegatedKind({ metadata: { name }, spec }, hash, {});
  // Members grant the definition by its name, for which a list and its watch have to ask.
  const byName = { fieldSelector: `metadata.name=${name}` };
  // A member's own definition stays its own, whatever the host's says.
  return {
    ...kind,
    isCopied: () => true,
    sources: byName,
    copies: byName,
    applied: { ...kind.applied, adoptionMarks: () => undefined },
  };
}

const definitionSchema = z.looseObject({
  metadata: z.looseObject({ deletionTimestamp: z.string().optional() }),
  spec: z.looseObject({
    conversion: z.looseObject({ strategy: z.string() }).optional(),
    versions: z.array(z.looseObject({ name: z.string(), storage: z.boolean(), served: z.boolean() })),
  }),
  status: z
    .looseObject({
      conditions: z
        .array(z.looseObject({ type: z.string(), status: z.string(), message: z.string().optional() }))
        .optional(),
    })
    .optional(),
});

/** Returns why a member does not get the host's definition, or its change. `copy` is the member's. */
export function whyNotFollowing(source: Stored<AnyObject>, copy: Stored<AnyObject> | undefined): string | undefined {
  const here = definitionSchema.safeParse(source).data;
  if (here === undefined) return "this cluster's CustomResourceDefinition cannot be read";
  if (here.metadata.deletionTimestamp !== undefined) return "this cluster's CustomResourceDefinition is being deleted";
  const { conversion, versions } = here.spec;
  const served = versions.filter((version) => version.served);
  if (conversion?.strategy === "Webhook" && served.length > 1) {
    return "a webhook of this cluster converts between its versions; install the CustomResourceDefinition there yourself";
  }
  const there = definitionSchema.safeParse(copy).data;
  if (there === undefined) return undefined;
  const [stored, storedThere] = [versions, there.spec.versions].map((all) => all.find(({ storage }) => storage)?.name);
  return stored === storedThere
    ? undefined
    : `objects are stored there in version ${storedThere} and here in ${stored}; migrate them and change the version there yourself`;
}

/** Returns why the API server that has the definition does not serve it. */
export function whyNotServed(copy: Stored<AnyObject>): string | undefined {
  const conditions = definitionSchema.safeParse(copy).data?.status?.conditions ?? [];
  const refused = conditions.find(({ type, status }) => type === "NamesAccepted" && status === "False");
  return refused && `its API server does not accept the names: ${refused.message ?? "no reason given"}`;
}
