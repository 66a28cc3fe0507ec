import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { Agent, request } from "node:https";
import { join } from "node:path";
import type { Cluster } from "../clusters/types.ts";

/** An API of two clusters as one, for clients that know of one only. */
export interface JoinedApi {
  readonly kubeconfig: string;
  close(): void;
}

const OF_PODS = /^\/api\/v1\/(namespaces\/[^/]+\/)?pods($|[/?])/;

/**
 * Serves the host's API on a loopback port, with the member's pods in place of the host's. Unchanged clients then see a whole Job
 * and its pods. Every request has an admin's rights.
 */
export async function joinedApi(host: Cluster, member: Cluster, directory: string): Promise<JoinedApi> {
  const agent = new Agent({ keepAlive: true });
  const server = createServer((incoming, response) => {
    const { server: address, caData, token } = OF_PODS.test(incoming.url ?? "") ? member : host;
    const url = new URL(incoming.url ?? "", address);
    const headers = { ...incoming.headers, host: url.host, authorization: `Bearer ${token}` };
    const outgoing = request(url, { method: incoming.method, headers, ca: caData, agent }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      // Clients of a watch wait for its headers.
      response.flushHeaders();
      answer.on("error", () => response.destroy());
      answer.pipe(response);
    });
    outgoing.on("error", () => response.destroy());
    response.on("close", () => outgoing.destroy());
    incoming.pipe(outgoing);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the joined API has no port");
  const kubeconfig = join(directory, "joined-kubeconfig.json");
  const name = "joined";
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      "current-context": name,
      clusters: [{ name, cluster: { server: `http://127.0.0.1:${address.port}` } }],
      users: [{ name, user: {} }],
      contexts: [{ name, context: { cluster: name, user: name } }],
    }),
  );
  return {
    kubeconfig,
    close: () => {
      server.closeAllConnections();
      server.close();
      agent.destroy();
    },
  };
}
