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
export interface Right {
  readonly verb: string;
  /** `pods/log`, `leases.coordination.k8s.io`, or a path. */
  readonly subject: string;
  /** The spec of the SelfSubjectAccessReview that asks for it. */
  readonly spec: object;
}

export function rightsOf(rules: unknown): Right[] {
  return z
    .array(rule)
    .parse(rules)
    .flatMap(({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }) => {
      const names = resourceNames.length === 0 ? [undefined] : resourceNames;
      const onResource = (verb: string, group: string, written: string): Right[] => {
        const [resource, subresource] = written.split("/");
        const subject = group === "" ? written : `${written}.${group}`;
        return names.map((name) => {
          const resourceAttributes = { verb, group, resource, ...defined({ subresource, name }) };
          return { verb, subject, spec: { resourceAttributes } };
        });
      };
      return verbs.flatMap((verb) => [
        ...apiGroups.flatMap((group) => resources.flatMap((written) => onResource(verb, group, written))),
        ...nonResourceURLs.map((path) => ({ verb, subject: path, spec: { nonResourceAttributes: { path, verb } } })),
      ]);
    });
}

/** Formats rights by resource: `pods: create, patch; nodes: list`. */
export function rightsText(rights: readonly Right[]): string {
  return [...Map.groupBy(rights, ({ subject }) => subject)]
    .map(([subject, each]) => `${subject}: ${[...new Set(each.map(({ verb }) => verb))].join(", ")}`)
    .join("; ");
}

const PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const AT_ONCE = 8;

/** Returns the rights that the client's account lacks in all namespaces. Rejects with KubeError. */
export async function findLacking(
  client: ClusterClient,
  wanted: readonly Right[],
  limits: Limits,
): Promise<readonly Right[]> {
  const found = await atMost(AT_ONCE, wanted, async (right) => {
    const body = { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec: right.spec };
    const answer = await client.raw({ method: "POST", path: PATH, body, ...limits });
    return review.parse(answer).status.allowed ? [] : [right];
  });
  return found.flat();
}
