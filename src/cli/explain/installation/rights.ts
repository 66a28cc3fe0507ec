import { z } from "zod";
import { defined } from "../../../api/defined.ts";
import type { ClusterClient } from "../../../kube/client.ts";
import { atMost } from "../../shared/at-most.ts";
import type { Limits } from "./check.ts";

const strings = z
  .array(z.string())
  .nullish()
  .transform((list) => list ?? []);
const rule = z.looseObject({
  verbs: strings,
  apiGroups: strings,
  resources: strings,
  resourceNames: strings,
  nonResourceURLs: strings,
});
const review = z.looseObject({ status: z.looseObject({ allowed: z.boolean() }) });

/** A right: a verb on a resource, or on a path. */
export type Right =
  | { readonly verb: string; readonly group: string; readonly resource: string; readonly name: string | undefined }
  | { readonly verb: string; readonly path: string };

export function rightsOf(rules: unknown): Right[] {
  return z
    .array(rule)
    .parse(rules)
    .flatMap(({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }) => {
      const names = resourceNames.length === 0 ? [undefined] : resourceNames;
      const ofResources = verbs.flatMap((verb) =>
        apiGroups.flatMap((group) =>
          resources.flatMap((resource) => names.map((name): Right => ({ verb, group, resource, name }))),
        ),
      );
      return [...ofResources, ...verbs.flatMap((verb) => nonResourceURLs.map((path): Right => ({ verb, path })))];
    });
}

/** Formats rights by resource: `pods: create, patch; nodes: list`. */
export function rightsText(rights: readonly Right[]): string {
  const subject = (right: Right): string => {
    if ("path" in right) return right.path;
    return right.group === "" ? right.resource : `${right.resource}.${right.group}`;
  };
  return [...Map.groupBy(rights, subject)]
    .map(([of, each]) => `${of}: ${[...new Set(each.map(({ verb }) => verb))].join(", ")}`)
    .join("; ");
}

const PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const AT_ONCE = 8;

/** Returns the rights that the client's account lacks in all namespaces. Rejects with KubeError. */
export async function findLacking(
  client: ClusterClient,
  wanted: readonly Right[],
  { signal, timeoutMs }: Limits,
): Promise<readonly Right[]> {
  const found = await atMost(AT_ONCE, wanted, async (right) => {
    const body = {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SelfSubjectAccessReview",
      spec: attributesOf(right),
    };
    const answer = await client.raw({ method: "POST", path: PATH, body, signal, timeoutMs });
    return review.parse(answer).status.allowed ? [] : [right];
  });
  return found.flat();
}

function attributesOf(right: Right): object {
  if ("path" in right) return { nonResourceAttributes: { path: right.path, verb: right.verb } };
  const { verb, group, resource: written, name } = right;
  const [resource, subresource] = written.split("/");
  return {
    resourceAttributes: {
      ...{ verb, group, resource },
      ...defined({ subresource, name }),
    },
  };
}
