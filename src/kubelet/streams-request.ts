import type { IncomingMessage } from "node:http";
import type { UpgradeOptions } from "../kube/client.ts";

/** What a kubelet is asked for, in the words of the API server that the member's pod is asked for by. */
export interface StreamRequest extends Pick<UpgradeOptions, "method" | "query" | "protocol" | "headers"> {
  readonly subresource: "exec" | "attach" | "portforward";
}

type Asked = Pick<IncomingMessage, "method" | "url" | "rawHeaders" | "headers">;

// First segment of a kubelet's path, and the subresource of pods that it serves.
const SUBRESOURCES: ReadonlyMap<string, StreamRequest["subresource"]> = new Map([
  ["exec", "exec"],
  ["attach", "attach"],
  ["portForward", "portforward"],
]);

// A kubelet's own names of the options of PodExecOptions and PodAttachOptions; only the value 1 is true to it
// (Kubernetes: pkg/apis/core/types.go, ExecStdinParam and its neighbours).
const SWITCHES = [
  ["input", "stdin"],
  ["output", "stdout"],
  ["error", "stderr"],
  ["tty", "tty"],
] as const;

// What the two ends agree on a protocol by. All else, credentials and impersonation above all, is between neighbours.
const PASSED = /^(x-stream-protocol-version|sec-websocket-(key|version|protocol|extensions))$/;

/** Translates a request of a host's API server to a kubelet into one to the member's API server, for `container`. */
export function streamRequest(
  { method, url = "", rawHeaders, headers }: Asked,
  container: string | undefined,
): StreamRequest | { readonly problem: string } {
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

/** The query for a process: its container, its command, and which of its streams are wanted. */
function attached(asked: URLSearchParams, container: string | undefined): URLSearchParams {
  const query = new URLSearchParams();
  if (container !== undefined) query.append("container", container);
  for (const part of asked.getAll("command")) query.append("command", part);
  for (const [kubelet, option] of SWITCHES) {
    if (asked.get(kubelet) === "1") query.append(option, "true");
  }
  return query;
}

/** The query for ports: WebSocket without SPDY names them here, SPDY in each of its streams. */
function forwarded(asked: URLSearchParams): URLSearchParams {
  const query = new URLSearchParams();
  for (const ports of asked.getAll("port")) query.append("ports", ports);
  return query;
}

/** The headers that are passed on, line by line: API servers before 1.28 read no lists of stream protocols. */
function passedHeaders(rawHeaders: readonly string[]): Record<string, string[]> {
  const passed: Record<string, string[]> = {};
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]?.toLowerCase() ?? "";
    const value = rawHeaders[index + 1];
    if (value === undefined || !PASSED.test(name)) continue;
    passed[name] = [...(passed[name] ?? []), value];
  }
  return passed;
}
