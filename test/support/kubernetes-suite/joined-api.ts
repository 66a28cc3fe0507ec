import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { Agent, request } from "node:https";
import { join } from "node:path";
import { Transform } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { apiRequest } from "../clusters/api-request.ts";
import type { Cluster } from "../clusters/types.ts";

/** An API of two clusters as one, for clients that know of one only. */
export interface JoinedApi {
  readonly kubeconfig: string;
  close(): void;
}

const OF_PODS = /^\/api\/v1\/(namespaces\/[^/]+\/)?pods($|[/?])/;
const COPIES = "/apis/batch/v1/jobs?labelSelector=legation.dev/copy%3Dtrue";
const copies = z.object({
  items: z.array(z.object({ metadata: z.object({ uid: z.string(), annotations: z.record(z.string(), z.string()) }) })),
});
const owner = z.object({ uid: z.string() });

/**
 * Serves the host's API on a loopback port, with the member's pods in place of the host's: they name the host's Job where they
 * name its copy. Unchanged clients then see a whole Job and its pods. Every request has an admin's rights.
 */
export async function joinedApi(host: Cluster, member: Cluster, directory: string): Promise<JoinedApi> {
  const agent = new Agent({ keepAlive: true });
  const uids = new Map<string, string>();
  const server = createServer(async (incoming, response) => {
    const { url: path = "" } = incoming;
    const isOfPods = OF_PODS.test(path);
    if (isOfPods) await readUids(member, uids).catch(() => undefined);
    const [, namespace] = /^\/api\/v1\/namespaces\/([^/]+)\/pods/.exec(path) ?? [];
    if (incoming.method === "POST" && namespace !== undefined) {
      await ensureNamespace(member, namespace).catch(() => undefined);
    }
    const { server: address, caData, token } = isOfPods ? member : host;
    const url = new URL(isOfPods ? replaced(path, swapped(uids)) : path, address);
    const headers = {
      ...incoming.headers,
      ...(isOfPods ? { "accept-encoding": "identity" } : {}),
      host: url.host,
      authorization: `Bearer ${token}`,
    };
    const outgoing = request(url, { method: incoming.method, headers, ca: caData, agent }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      // Clients of a watch wait for its headers.
      response.flushHeaders();
      answer.on("error", () => response.destroy());
      (isOfPods ? answer.pipe(replacing(() => uids)) : answer).pipe(response);
    });
    outgoing.on("error", () => response.destroy());
    response.on("close", () => outgoing.destroy());
    (isOfPods ? incoming.pipe(replacing(() => swapped(uids))) : incoming).pipe(outgoing);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the joined API has no port");
  const kubeconfig = join(directory, "joined-kubeconfig.json");
  const name = "joined";
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": name,
    clusters: [{ name, cluster: { server: `http://127.0.0.1:${address.port}` } }],
    users: [{ name, user: {} }],
    contexts: [{ name, context: { cluster: name, user: name } }],
  };
  writeFileSync(kubeconfig, JSON.stringify(config));
  return {
    kubeconfig,
    close: () => {
      server.closeAllConnections();
      server.close();
      agent.destroy();
    },
  };
}

/** Creates a namespace that has no whole Job yet, and waits until pods can be created there. */
async function ensureNamespace(member: Cluster, name: string): Promise<void> {
  await apiRequest(member, "POST", "/api/v1/namespaces", { body: { metadata: { name } } });
  const account = `/api/v1/namespaces/${name}/serviceaccounts/default`;
  for (let tries = 0; tries < 100; tries += 1) {
    if ((await apiRequest(member, "GET", account)).status === 200) return;
    await sleep(100);
  }
}

/** Reads which Job of the host each copy stands for. */
async function readUids(member: Cluster, uids: Map<string, string>): Promise<void> {
  const { text } = await apiRequest(member, "GET", COPIES);
  for (const { metadata } of copies.parse(JSON.parse(text)).items) {
    uids.set(metadata.uid, owner.parse(JSON.parse(metadata.annotations["legation.dev/owner"] ?? "{}")).uid);
  }
}

function swapped(uids: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  return new Map([...uids].map(([copy, job]) => [job, copy]));
}

function replaced(text: string, uids: ReadonlyMap<string, string>): string {
  let result = text;
  for (const [from, to] of uids) result = result.replaceAll(from, to);
  return result;
}

/** Replaces uids in JSON and protobuf alike: all have one length. */
function replacing(uids: () => ReadonlyMap<string, string>): Transform {
  let kept = "";
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const known = uids();
      const text = replaced(kept + chunk.toString("latin1"), known);
      kept = startOfUid(text, [...known.keys()]);
      done(null, Buffer.from(text.slice(0, text.length - kept.length), "latin1"));
    },
    flush(done) {
      done(null, Buffer.from(kept, "latin1"));
    },
  });
}

/** Returns the end of the text that the next chunk may complete to a uid. */
function startOfUid(text: string, uids: readonly string[]): string {
  for (let length = Math.min(35, text.length); length > 0; length -= 1) {
    const end = text.slice(-length);
    if (uids.some((uid) => uid.startsWith(end))) return end;
  }
  return "";
}
