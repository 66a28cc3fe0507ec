import type { AnyObject } from "../../../src/api/delegated-type.ts";
import { AGGREGATE_TO_CONTROLLER_LABEL, AGGREGATE_TO_HOST_LABEL } from "../../../src/api/keys.ts";
import { delegatedTypes } from "../../../src/api/resources.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { isKubeError } from "../../../src/kube/errors.ts";
import { jobs, type Resource } from "../../../src/kube/resources.ts";
import { eventually } from "../../support/harness/wait.ts";
import { createIn } from "../../support/harness/workloads.ts";
import type { Scene } from "../scene.ts";
import { FOREIGN_NAME } from "../workloads.ts";
import { wholeJob } from "./jobs.ts";
import { CUSTOM_KINDS, createType, definitionOf, KINDS, type Kind, typeName, whole } from "./kinds.ts";

const clusterRoles: Resource<AnyObject> = {
  group: "rbac.authorization.k8s.io",
  version: "v1",
  plural: "clusterroles",
  kind: "ClusterRole",
  namespaced: false,
};
const definitions: Resource<AnyObject> = {
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  kind: "CustomResourceDefinition",
  namespaced: false,
};
const ROLE = "chaos-types";

type Clients = Scene["clients"];

/** Allows the kinds on the host and in members. */
export async function allowTypes({ host, west, east }: Clients, kinds: readonly Kind[]): Promise<void> {
  const custom = CUSTOM_KINDS.filter((kind) => kinds.includes(kind));
  const rules = (verbs: readonly string[]): object[] =>
    kinds.map((kind) => {
      const { group, plural } = KINDS[kind];
      return { apiGroups: [group], resources: [plural, `${plural}/status`], verbs };
    });
  const role = (label: string, verbs: readonly string[]): AnyObject => ({
    metadata: { name: ROLE, labels: { [label]: "true" } },
    rules: rules(verbs),
  });
  for (const client of [host, west, east]) for (const kind of custom) await define(client, kind);
  await host.create(clusterRoles, role(AGGREGATE_TO_CONTROLLER_LABEL, ["list", "watch", "patch"]));
  for (const member of [west, east]) {
    const verbs = ["list", "watch", "create", "patch", "delete"];
    await member.create(clusterRoles, role(AGGREGATE_TO_HOST_LABEL, verbs));
  }
  for (const kind of kinds) await createType(host, kind);
}

/** Takes back what `allowTypes` allows, of types that need no definition. */
export async function forbidTypes({ host, west, east }: Clients, kinds: readonly Kind[]): Promise<void> {
  for (const kind of kinds) await host.delete(delegatedTypes, { name: typeName(kind) });
  const isGone = async (): Promise<boolean> => {
    const found = await Promise.all(kinds.map((kind) => host.find(delegatedTypes, { name: typeName(kind) })));
    return found.every((one) => one === undefined);
  };
  await eventually(isGone, { what: "the end of the types" });
  for (const client of [host, west, east]) await client.delete(clusterRoles, { name: ROLE });
}

/** Makes the definition of a custom kind, and waits until its objects are served. */
export async function define(client: ClusterClient, kind: Kind): Promise<void> {
  const made = async (): Promise<boolean> => {
    await client.create(definitions, definitionOf(kind) as AnyObject).catch(unlessThere);
    const found = await client.get(definitions, { name: typeName(kind) });
    if (found.metadata.deletionTimestamp !== undefined) return false;
    await client.list(KINDS[kind], { limit: 1 });
    return true;
  };
  await eventually(made, { timeoutMs: 60_000, what: `the definition of ${kind}` });
}

/** Deletes a kind's definition, with all objects. */
export async function undefine(client: ClusterClient, kind: Kind): Promise<void> {
  await client.delete(definitions, { name: typeName(kind) });
}

/** Makes a kind's DelegatedType again; one that is being deleted goes first. */
export async function allowAgain(host: ClusterClient, kind: Kind): Promise<void> {
  const made = async (): Promise<boolean> => {
    const found = await host.find(delegatedTypes, { name: typeName(kind) });
    if (found === undefined) await createType(host, kind);
    return found !== undefined && found.metadata.deletionTimestamp === undefined;
  };
  await eventually(made, { timeoutMs: 90_000, intervalMs: 500, what: `the DelegatedType of ${kind}` });
}

/** Makes objects of the members' own, and whole ones of the same names on the host, which no member may take. */
export async function makeForeignObjects(scene: Scene): Promise<void> {
  const { clients, namespace, kinds, ledger } = scene;
  const metadata = { namespace, name: FOREIGN_NAME };
  for (const member of ["west", "east"] as const) {
    for (const kind of kinds) {
      const { metadata: _, ...fields } = whole(kind, { name: FOREIGN_NAME, content: { version: 0 } });
      const { uid, resourceVersion } = (await clients[member].create(KINDS[kind], { ...fields, metadata })).metadata;
      ledger.foreign.push({ member, kind, name: FOREIGN_NAME, uid, resourceVersion });
    }
    const { metadata: _, ...job } = wholeJob(FOREIGN_NAME, { completions: 1 });
    await clients[member].create(jobs, { ...job, metadata });
  }
  const wanted = async (): Promise<boolean> => {
    for (const kind of kinds) {
      const made = whole(kind, { name: FOREIGN_NAME, content: { version: 1 } });
      await clients.host.create(KINDS[kind], { ...made, metadata: { ...made.metadata, namespace } }).catch(unlessThere);
    }
    return true;
  };
  // The webhook learns of new types by its watch.
  await eventually(wanted, { what: "foreign objects on the host" });
  await createIn(clients.host, namespace, [wholeJob(FOREIGN_NAME, { completions: 1 })]);
}

function unlessThere(error: unknown): void {
  if (!isKubeError(error, "AlreadyExists")) throw error;
}
