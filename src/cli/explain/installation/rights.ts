import { z } from "zod";
import type { ClusterClient } from "../../../kube/client.ts";
import { atMost } from "../../shared/at-most.ts";
import type { Limits } from "./check.ts";

const strings = z
  .array(z.string())
  .nullish()
  .transform((list) => list ?? []);
const resourceRule = z.looseObject({
  verbs: strings,
  apiGroups: strings,
  resources: strings,
  resourceNames: strings,
});
const nonResourceRule = z.looseObject({ verbs: strings, nonResourceURLs: strings });
const review = z.looseObject({
  status: z.looseObject({
    resourceRules: z.array(resourceRule).nullish(),
    nonResourceRules: z.array(nonResourceRule).nullish(),
    incomplete: z.boolean().nullish(),
  }),
});
const allowed = z.looseObject({ status: z.looseObject({ allowed: z.boolean() }) });

/** A right: a verb on a resource, or on a path. */
export type Right =
  | { readonly verb: string; readonly group: string; readonly resource: string; readonly name: string | undefined }
  | { readonly verb: string; readonly path: string };

type Rule<Field extends string> = Readonly<Record<Field, readonly string[]>>;
type ResourceRule = Rule<"verbs" | "apiGroups" | "resources" | "resourceNames">;

/** The rules that an API server grants. */
export interface Granted {
  readonly resourceRules?: readonly ResourceRule[] | null | undefined;
  readonly nonResourceRules?: readonly Rule<"verbs" | "nonResourceURLs">[] | null | undefined;
}

/** Returns each right of a role's rules. */
export function rightsOf(rules: unknown): Right[] {
  return z
    .array(z.looseObject({ ...resourceRule.shape, ...nonResourceRule.shape }))
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

/** Returns the rights that the rules lack. */
export function lackingRights(wanted: readonly Right[], { resourceRules, nonResourceRules }: Granted): Right[] {
  const has = (list: readonly string[], item: string): boolean => list.includes(item) || list.includes("*");
  return wanted.filter((right) => {
    if ("path" in right) {
      return !(nonResourceRules ?? []).some(
        ({ verbs, nonResourceURLs }) =>
          has(verbs, right.verb) && nonResourceURLs.some((url) => matchesPath(url, right.path)),
      );
    }
    const { verb, group, resource, name } = right;
    const ofAny = resource.includes("/") ? `*/${resource.split("/")[1]}` : resource;
    return !(resourceRules ?? []).some(
      ({ verbs, apiGroups, resources, resourceNames }) =>
        has(verbs, verb) &&
        has(apiGroups, group) &&
        (has(resources, resource) || resources.includes(ofAny)) &&
        (resourceNames.length === 0 || (name !== undefined && resourceNames.includes(name))),
    );
  });
}

function matchesPath(pattern: string, path: string): boolean {
  return pattern === "*" || pattern === path || (pattern.endsWith("*") && path.startsWith(pattern.slice(0, -1)));
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

// Legation's own Roles in a member are not in this namespace, so that cluster-wide rights alone count.
const NAMESPACE = "default";
const REVIEWS = "/apis/authorization.k8s.io/v1";
const AT_ONCE = 8;

/** Returns the rights that the client's account lacks in all namespaces. Rejects with KubeError. */
export async function findLacking(
  client: ClusterClient,
  wanted: readonly Right[],
  { signal, timeoutMs }: Limits,
): Promise<readonly Right[]> {
  const ask = (kind: string, plural: string, spec: object): Promise<unknown> => {
    const body = { apiVersion: "authorization.k8s.io/v1", kind, spec };
    return client.raw({ method: "POST", path: `${REVIEWS}/${plural}`, body, signal, timeoutMs });
  };
  const answer = await ask("SelfSubjectRulesReview", "selfsubjectrulesreviews", { namespace: NAMESPACE });
  const granted = review.parse(answer).status;
  const lacking = lackingRights(wanted, granted);
  if (granted.incomplete !== true) return lacking;
  // Some authorizers, such as webhooks, list no rules.
  const confirmed = await atMost(AT_ONCE, lacking, async (right) => {
    const one = await ask("SelfSubjectAccessReview", "selfsubjectaccessreviews", attributesOf(right));
    return allowed.parse(one).status.allowed ? [] : [right];
  });
  return confirmed.flat();
}

function attributesOf(right: Right): object {
  if ("path" in right) return { nonResourceAttributes: { path: right.path, verb: right.verb } };
  const { verb, group, resource: written, name } = right;
  const [resource, subresource] = written.split("/");
  return {
    resourceAttributes: {
      ...{ verb, group, resource },
      ...(subresource === undefined ? {} : { subresource }),
      ...(name === undefined ? {} : { name }),
    },
  };
}
