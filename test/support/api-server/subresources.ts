import { isJsonObject } from "../../../src/api/json.ts";
import type { ObjectRef } from "../../../src/api/kubernetes.ts";
import type { ApiServer } from "./api-server.ts";
import type { StoredObject } from "./object-store.ts";
import { conflict, notServed, type ServedResource } from "./refusal.ts";

const TOKEN_LIFE_MS = 3_600_000;

/** Answers a POST to a subresource of an object. */
export function createSubresource(
  server: ApiServer,
  resource: ServedResource,
  place: ObjectRef,
  subresource: string,
  body: object,
): object {
  const object = server.get(resource, place);
  if (subresource === "binding") return bound(server, resource, object, { ...body });
  if (subresource === "eviction") return server.delete(resource, place);
  if (subresource !== "token") throw notServed();
  const expirationTimestamp = new Date(server.now() + TOKEN_LIFE_MS).toISOString();
  return { ...body, status: { token: `token-of-${object.metadata.uid}`, expirationTimestamp } };
}

/** Binds a pod to a node, and adds the binding's annotations to it (registry/core/pod/storage: assignPod). */
function bound(
  server: ApiServer,
  resource: ServedResource,
  pod: StoredObject,
  binding: Readonly<Record<string, unknown>>,
): object {
  const { name, uid } = pod.metadata;
  const metadata = isJsonObject(binding.metadata) ? binding.metadata : {};
  const target = isJsonObject(binding.target) ? binding.target.name : undefined;
  const spec = isJsonObject(pod.spec) ? pod.spec : {};
  if (metadata.uid !== undefined && metadata.uid !== uid) {
    throw conflict(
      resource,
      name,
      `Precondition failed: UID in precondition: ${metadata.uid}, UID in object meta: ${uid}`,
    );
  }
  if (pod.metadata.deletionTimestamp !== undefined)
    throw conflict(resource, name, `pod ${name} is being deleted, cannot be assigned to a host`);
  if (typeof spec.nodeName === "string" && spec.nodeName !== "") {
    throw conflict(resource, name, `pod ${name} is already assigned to node "${spec.nodeName}"`);
  }
  const status = isJsonObject(pod.status) ? pod.status : {};
  const others = Array.isArray(status.conditions) ? status.conditions.filter((one) => one.type !== "PodScheduled") : [];
  server.put(resource, {
    ...pod,
    metadata: { ...pod.metadata, annotations: { ...pod.metadata.annotations, ...annotationsOf(metadata) } },
    spec: { ...spec, nodeName: target },
    status: { ...status, conditions: [...others, { type: "PodScheduled", status: "True" }] },
  });
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };
}

function annotationsOf({ annotations }: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  if (!isJsonObject(annotations)) return {};
  return Object.fromEntries(Object.entries(annotations).map(([key, value]) => [key, String(value)]));
}
