import { ACCESS_GROUP, ACCESS_VERSION } from "../api/access.ts";
import { clusterNameProblem } from "../api/cluster.ts";

/** A path of a member's API server, by which Cluster it is reached; or the reason why the path is refused. */
export type ProxyTarget =
  | { readonly cluster: string; readonly path: string; readonly problem?: never }
  | { readonly problem: string };

const CLUSTERS = `/apis/${ACCESS_GROUP}/${ACCESS_VERSION}/clusters/`;
const PROXY = /^([^/]*)\/proxy(\/.*)?$/;
// Slashes, backslashes, dots and NUL.
const ESCAPED = /%(?:2f|5c|2e|00)/i;
const ESCAPE = /%([0-9a-f]{2})/gi;
// Servers in between may unescape a path, each once.
const MOST_ESCAPES = 4;
const NO_ESCAPE = /%(?![0-9a-f]{2})/i;
const UNSAFE = /[^!-~\x80-\xff]|[\\#]/;

export function isClusterPath(url: string): boolean {
  return url.startsWith(CLUSTERS);
}

/**
 * Returns where a request goes. The path stays as it came, so that the member's API server reads what the host's has authorized.
 * Refuses paths that servers read in different ways.
 */
export function targetOf(url: string): ProxyTarget {
  const [path = "", ...rest] = url.split("?");
  const [, cluster = "", inMember = "/"] = PROXY.exec(path.slice(CLUSTERS.length)) ?? [];
  if (cluster === "") return { problem: `the path is not ${CLUSTERS}NAME/proxy/...` };
  const wrongName = clusterNameProblem(cluster);
  if (wrongName !== undefined) return { problem: `the name of the Cluster in the path ${wrongName}` };
  const problem = pathProblem(inMember);
  if (problem !== undefined) return { problem: `the path behind /proxy ${problem}` };
  const query = rest.join("?");
  if (UNSAFE.test(query)) return { problem: "the query has a character that must be escaped" };
  return { cluster, path: url.includes("?") ? `${inMember}?${query}` : inMember };
}

function pathProblem(path: string): string | undefined {
  if (UNSAFE.test(path)) return "has a backslash, or a character that must be escaped";
  if (NO_ESCAPE.test(path)) return "has a % that begins no escape: write %25";
  if (path.includes("//")) return "has two slashes in a row";
  if (path.split("/").some((segment) => segment === "." || segment === "..")) return "has the segment . or ..";
  let read = path;
  for (let times = 0; times < MOST_ESCAPES; times += 1) {
    if (ESCAPED.test(read)) return "has an escaped slash, backslash, dot or NUL";
    const unescaped = read.replace(ESCAPE, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    if (unescaped === read) return undefined;
    read = unescaped;
  }
  return "is escaped too often";
}
