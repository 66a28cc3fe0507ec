import type { IncomingMessage } from "node:http";
import type { UpgradeOptions } from "../kube/client.ts";
import { headerPairs } from "../kube/raw-headers.ts";

export interface SubresourceRequest extends Pick<UpgradeOptions, "method" | "query" | "protocol" | "headers"> {
  readonly subresource: "exec" | "attach" | "portforward";
}

type Asked = Pick<IncomingMessage, "method" | "url" | "rawHeaders" | "headers">;

const SUBRESOURCES: ReadonlyMap<string, SubresourceRequest["subresource"]> = new Map([
  ["exec", "exec"],
  ["attach", "attach"],
  ["portForward", "portforward"],
]);

// The kubelet's names of PodExecOptions and PodAttachOptions fields; only the value 1 is true (pkg/apis/core/types.go,
// ExecStdinParam and its neighbours).
const SWITCHES = [
  ["input", "stdin"],
  ["output", "stdout"],
  ["error", "stderr"],
  ["tty", "tty"],
] as const;

// End-to-end headers of the protocol negotiation. All others, credentials and impersonation above all, are not forwarded.
const PASSED = /^(x-stream-protocol-version|sec-websocket-(key|version|protocol|extensions))$/;

/** Translates a kubelet request of the host's API server into a request to the member's API server, for `container`. */
export function streamRequest(
  { method, url = "", rawHeaders, headers }: Asked,
  container: string | undefined,
): SubresourceRequest | { readonly problem: string } {
  const [path = "", ...rest] = url.split("?");
  const subresource = SUBRESOURCES.get(path.split("/")[1] ?? "");
  if (subresource === undefined) return { problem: `${path} is no stream: write /exec, /attach or /portForward` };
  if (method !== "GET" && method !== "POST") return { problem: `${method} opens no stream: send GET or POST` };
  const protocol = headers.upgrade;
  if (protocol === undefined) return { problem: "Upgrade request required" };
  const asked = new URLSearchParams(rest.join("?"));
  const query = subresource === "portforward" ? forwarded(asked) : attached(asked, container);
  return { subresource, method, protocol, query, headers: passedHeaders(rawHeaders) };
}

function attached(asked: URLSearchParams, container: string | undefined): URLSearchParams {
  const query = new URLSearchParams();
  if (container !== undefined) query.append("container", container);
  for (const part of asked.getAll("command")) query.append("command", part);
  for (const [kubelet, option] of SWITCHES) {
    if (asked.get(kubelet) === "1") query.append(option, "true");
  }
  return query;
}

/** Returns the query of port-forward. WebSocket without SPDY names ports here, SPDY in each stream. */
function forwarded(asked: URLSearchParams): URLSearchParams {
  const query = new URLSearchParams();
  for (const ports of asked.getAll("port")) query.append("ports", ports);
  return query;
}

/** Returns the forwarded headers, one line per value: API servers before 1.28 read no lists of stream protocols. */
function passedHeaders(rawHeaders: readonly string[]): Record<string, string[]> {
  const passed: Record<string, string[]> = {};
  for (const [name, value] of headerPairs(rawHeaders)) {
    if (PASSED.test(name)) passed[name] = [...(passed[name] ?? []), value];
  }
  return passed;
}
