import { writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
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

/** Decides which of two clusters answers a request. */
export type IsOfMember = (request: Pick<IncomingMessage, "url" | "method" | "headers">) => boolean;

const OF_PODS = /^\/api\/v1\/(namespaces\/[^/]+\/)?pods($|[/?])/;
const OF_AUTHORS = [
  /^\/api\/v1\/(namespaces|pods|events)($|[/?])/,
  /^\/apis\/resource\.k8s\.io\/[^/]+\/(namespaces\/[^/]+\/)?resourceclaim/,
];
// Names and selectors of the pods that Kubernetes' test driver has on nodes.
const OF_DRIVER = /dra-test-driver|app\.kubernetes\.io%2Finstance/;
const COPIES = "/apis/batch/v1/jobs?labelSelector=legation.dev/copy%3Dtrue";
const copies = z.object({
  items: z.array(z.object({ metadata: z.object({ uid: z.string(), annotations: z.record(z.string(), z.string()) }) })),
});
const owner = z.object({ uid: z.string() });

/** The member answers for pods: unchanged clients see a whole Job of the host, and its pods. */
export const podsOfMember: IsOfMember = ({ url = "" }) => OF_PODS.test(url);

/**
 * The host answers for pods, claims and what else is in namespaces. A driver of devices, which is impersonated, its pods and all
 * that it needs are the member's, as DeviceClasses, ResourceSlices and nodes are.
 */
export const devicesOfMember: IsOfMember = ({ url = "", method, headers }) => {
  if ("impersonate-user" in headers || !OF_AUTHORS.some((paths) => paths.test(url))) return true;
  return OF_DRIVER.test(url) || (method !== "GET" && url.includes("/serviceaccounts"));
};

/**
 * Serves the host's API on a loopback port, with a part of the member's in its place. Pods of the member name the host's Job where
 * they name its copy. Every request has an admin's rights, unless it impersonates.
 */
export async function joinedApi(
  host: Cluster,
  member: Cluster,
  { directory, isOfMember }: { readonly directory: string; readonly isOfMember: IsOfMember },
): Promise<JoinedApi> {
  const agent = new Agent({ keepAlive: true });
  const uids = new Map<string, string>();
  const server = createServer(async (incoming, response) => {
    const { url: path = "" } = incoming;
    const inMember = isOfMember(incoming);
    if (inMember && OF_PODS.test(path)) await readUids(member, uids).catch(() => undefined);
    const [, namespace] = /\/namespaces\/([^/]+)\//.exec(path) ?? [];
    if (inMember && incoming.method === "POST" && namespace !== undefined) {
      await ensureNamespace(member, namespace).catch(() => undefined);
    }
    const { server: address, caData, token } = inMember ? member : host;
    const url = new URL(inMember ? replaced(path, swapped(uids)) : path, address);
    const headers = {
      ...incoming.headers,
      ...(inMember ? { "accept-encoding": "identity" } : {}),
      host: url.host,
      authorization: `Bearer ${token}`,
    };
    const outgoing = request(url, { method: incoming.method, headers, ca: caData, agent }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      // Clients of a watch wait for its headers.
      response.flushHeaders();
      answer.on("error", () => response.destroy());
      (inMember ? answer.pipe(replacing(() => uids)) : answer).pipe(response);
    });
    outgoing.on("error", () => response.destroy());
    response.on("close", () => outgoing.destroy());
    (inMember ? incoming.pipe(replacing(() => swapped(uids))) : incoming).pipe(outgoing);
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

/** Creates a namespace that the member has no copy in yet, and waits until pods can be created there. */
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
