/** What a request needs the right to, as resource attributes of nodes. Any one of the subresources is enough. */
export interface RequestAttributes {
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

// First segments of the paths that do something to a pod.
const ACTING: ReadonlySet<string> = new Set(["exec", "attach", "portForward"]);

// As kubelet divides its paths (pkg/kubelet/server/auth.go): the finer right, where there is one, before the one to
// everything. Logs of containers have none.
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

/**
 * The attributes of a request, as kubelet maps them, with one difference: exec, attach and port-forward need `create`
 * whatever the method, since WebSocket opens them by GET, and a right to read must not run commands.
 */
export function attributesOf(method: string, path: string): RequestAttributes {
  const first = path.split("/")[1] ?? "";
  return {
    verb: ACTING.has(first) ? "create" : (VERBS.get(method) ?? ""),
    subresources: SUBRESOURCES.get(first) ?? ["proxy"],
  };
}
