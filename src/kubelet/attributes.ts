import type { AccessReviews, User } from "../serving/access-reviews.ts";

/** The right to any one of the subresources is enough. */
interface RequestAttributes {
  readonly verb: string;
  readonly subresources: readonly string[];
}

const VERBS: ReadonlyMap<string, string> = new Map([
  ["POST", "create"],
  ["GET", "get"],
  ["PUT", "update"],
  ["PATCH", "patch"],
  ["DELETE", "delete"],
]);

// First path segments of requests that act on a pod.
const ACTING: ReadonlySet<string> = new Set(["exec", "attach", "portForward"]);

// The kubelet's mapping of paths (pkg/kubelet/server/auth.go): the fine-grained right first, if there is one, then `proxy`.
// Container logs have no fine-grained right.
const SUBRESOURCES: ReadonlyMap<string, readonly string[]> = new Map([
  ["stats", ["stats"]],
  ["metrics", ["metrics"]],
  ["logs", ["log"]],
  ["checkpoint", ["checkpoint"]],
  ["pods", ["pods", "proxy"]],
  ["runningpods", ["pods", "proxy"]],
  ["healthz", ["healthz", "proxy"]],
  ["configz", ["configz", "proxy"]],
]);

/** Unlike the kubelet, demands `create` for exec, attach and port-forward by GET: a read right runs no commands. */
export function attributesOf(method: string, path: string): RequestAttributes {
  const first = path.split("/")[1] ?? "";
  return {
    verb: ACTING.has(first) ? "create" : (VERBS.get(method) ?? ""),
    subresources: SUBRESOURCES.get(first) ?? ["proxy"],
  };
}

/** Reports whether the host lets a user do this at a virtual node. Rejects with KubeError when the host does not answer. */
export async function isAllowed(
  reviews: AccessReviews,
  user: User,
  node: string,
  { verb, subresources }: RequestAttributes,
): Promise<boolean> {
  for (const subresource of subresources) {
    if (await reviews.allows(user, { verb, version: "v1", resource: "nodes", subresource, name: node })) return true;
  }
  return false;
}
