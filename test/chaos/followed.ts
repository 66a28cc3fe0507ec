import { join } from "node:path";
import type { AnyObject } from "../../src/api/delegated-type.ts";
import { AGGREGATE_TO_HOST_LABEL, CLUSTER_ANNOTATION } from "../../src/api/keys.ts";
import type { ObjectMeta, Pod, Stored } from "../../src/api/kubernetes.ts";
import { loadManifests } from "../../src/cli/shared/manifests.ts";
import { packageRoot } from "../../src/cli/shared/package-root.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import { apiVersionOf, kindName, type Resource } from "../../src/kube/resources.ts";
import { ownerOf } from "../../src/pods/delegate.ts";
import { isBound, isDeleting, isTerminal } from "../../src/pods/pod-state.ts";
import type { ClusterOptions } from "../support/clusters/types.ts";
import { podsOf } from "../support/harness/pods-of.ts";
import { createIn } from "../support/harness/workloads.ts";
import type { Scene } from "./scene.ts";
import { pod } from "./workloads.ts";

const DEVICES = { group: "resource.k8s.io", version: "v1", namespaced: true };
const claims: Resource<AnyObject> = { ...DEVICES, plural: "resourceclaims", kind: "ResourceClaim" };
const templates: Resource<AnyObject> = { ...DEVICES, plural: "resourceclaimtemplates", kind: "ResourceClaimTemplate" };
const podGroups: Resource<AnyObject> = {
  ...{ group: "scheduling.k8s.io", version: "v1alpha2", namespaced: true },
  plural: "podgroups",
  kind: "PodGroup",
};
const FOLLOWED = [claims, templates, podGroups];

const DRIVER = "gpu.chaos.test";
/** More than a run's pods with devices. */
const DEVICES_OF_MEMBER = 100;
const ONE_DEVICE = { devices: { requests: [{ name: "gpu", exactly: { deviceClassName: DRIVER } }] } };
const TEMPLATE = "device";
/** Pods that start together. */
const GANG_SIZE = 3;

const GATES = "--feature-gates=GenericWorkload=true";
/** Flags of clusters whose schedulers start gangs. */
export const GANG_FLAGS: ClusterOptions = {
  apiServerFlags: [GATES, "--runtime-config=scheduling.k8s.io/v1alpha2=true"],
  controllerManagerFlags: [GATES],
  schedulerFlags: [`${GATES},GangScheduling=true`],
};

/** Deeds with objects that pods name, which clusters without `GANG_FLAGS` and devices cannot do. */
export const FOLLOWED_DEEDS = ["run a gang", "run a pod with a device", "run pods that share a device"] as const;

export type FollowedDeed = (typeof FOLLOWED_DEEDS)[number];

export function isOnFollowed(deed: string): deed is FollowedDeed {
  return FOLLOWED_DEEDS.some((one) => one === deed);
}

const CLUSTER_SCOPED = { version: "v1", namespaced: false };
const clusterRoles: Resource<AnyObject> = {
  ...{ ...CLUSTER_SCOPED, group: "rbac.authorization.k8s.io" },
  plural: "clusterroles",
  kind: "ClusterRole",
};
const types: Resource<AnyObject> = {
  ...{ group: "legation.dev", version: "v1alpha1", namespaced: false },
  plural: "delegatedtypes",
  kind: "DelegatedType",
};
const deviceClasses: Resource<AnyObject> = {
  ...DEVICES,
  namespaced: false,
  plural: "deviceclasses",
  kind: "DeviceClass",
};
const slices: Resource<AnyObject> = { ...DEVICES, namespaced: false, plural: "resourceslices", kind: "ResourceSlice" };

/** Gives members devices, and allows the types that follow pods on the host and there. */
export async function allowFollowed({ clients, namespace }: Pick<Scene, "clients" | "namespace">): Promise<void> {
  const { host, west, east } = clients;
  const manifests = await loadManifests(join(packageRoot(), "manifests", "delegated-types"));
  for (const type of FOLLOWED.map(kindName)) {
    for (const { kind, metadata, ...fields } of manifests) {
      const { name, labels } = { labels: {}, ...metadata };
      if (kind === types.kind && name === type) await create(host, types, { name }, fields);
      if (name === `legation-controller-${type}`) await create(host, clusterRoles, { name, labels }, fields);
    }
  }
  const verbs = ["list", "watch", "create", "patch", "delete"];
  const rules = [
    ...FOLLOWED.map(({ group, plural }) => ({ apiGroups: [group], resources: [plural], verbs })),
    { apiGroups: [DEVICES.group], resources: ["deviceclasses", "resourceslices"], verbs: ["list"] },
  ];
  const pool = { name: "all", generation: 1, resourceSliceCount: 1 };
  const devices = Array.from({ length: DEVICES_OF_MEMBER }, (_, at) => ({ name: `gpu-${at}` }));
  const selectors = [{ cel: { expression: `device.driver == "${DRIVER}"` } }];
  for (const member of [west, east]) {
    const labels = { [AGGREGATE_TO_HOST_LABEL]: "true" };
    await create(member, clusterRoles, { name: "chaos-followed", labels }, { rules });
    await create(member, deviceClasses, { name: DRIVER }, { spec: { selectors } });
    await create(member, slices, { name: DRIVER }, { spec: { driver: DRIVER, allNodes: true, pool, devices } });
  }
  await create(host, templates, { namespace, name: TEMPLATE }, { spec: { spec: ONE_DEVICE } });
}

function create(
  client: ClusterClient,
  type: Resource<AnyObject>,
  metadata: ObjectMeta,
  fields: object,
): Promise<Stored<AnyObject>> {
  return client.create(type, { ...fields, apiVersion: apiVersionOf(type), kind: type.kind, metadata });
}

/** Does what an author would; `attempt` goes on trying, as half of what belongs together would wait for ever. */
export async function actOnFollowed(
  { clients: { host }, namespace }: Scene,
  { deed, number, annotations }: { readonly deed: FollowedDeed; readonly number: number; readonly annotations: object },
  attempt: (made: () => Promise<unknown>) => Promise<void>,
): Promise<void> {
  const make = (name: string, spec: object): Promise<void> =>
    attempt(() => createIn(host, namespace, [pod(name, { annotations: { ...annotations }, spec })]));
  const metadata = (name: string) => ({ namespace, name });
  switch (deed) {
    case "run a gang": {
      const name = `gang-${number}`;
      const policy = { schedulingPolicy: { gang: { minCount: GANG_SIZE } } };
      await attempt(() => create(host, podGroups, metadata(name), { spec: policy }));
      for (let each = 0; each < GANG_SIZE; each++) await make(`${name}-${each}`, inGang(name));
      return;
    }
    case "run a pod with a device":
      return make(`device-${number}`, using({ resourceClaimTemplateName: TEMPLATE }));
    case "run pods that share a device": {
      const name = `shared-${number}`;
      await attempt(() => create(host, claims, metadata(name), { spec: ONE_DEVICE }));
      for (const each of [1, 2]) await make(`${name}-${each}`, using({ resourceClaimName: name }));
    }
  }
}

function inGang(podGroupName: string): object {
  return { schedulingGroup: { podGroupName } };
}

function using(claim: object): object {
  const containers = [{ name: "main", image: "main:1", resources: { claims: [{ name: "gpu" }] } }];
  return { containers, resourceClaims: [{ name: "gpu", ...claim }] };
}

function gangOf({ spec }: Pod): string | undefined {
  return spec?.schedulingGroup?.podGroupName ?? undefined;
}

function isLive(pod: Stored<Pod>): boolean {
  return !isDeleting(pod) && !isTerminal(pod);
}

/** Gives each gang as many pods as start together: authors and faults have ended some. */
export async function completeGangs({ clients: { host }, namespace }: Scene): Promise<void> {
  const found = (await podsOf(host, namespace)).filter((one) => gangOf(one) !== undefined);
  for (const gang of new Set(found.flatMap((one) => gangOf(one) ?? []))) {
    const live = found.filter((one) => gangOf(one) === gang && isLive(one)).length;
    for (let each = live; each < GANG_SIZE; each++) {
      await createIn(host, namespace, [pod(`${gang}-late-${each}-${Date.now()}`, { spec: inGang(gang) })]);
    }
  }
}

/** Returns gangs that have live pods in two members. */
export function gangsApart(proxies: readonly Stored<Pod>[]): string[] {
  const places = new Map<string, Map<string, string>>();
  for (const proxy of proxies) {
    const gang = gangOf(proxy);
    const member = proxy.metadata.annotations?.[CLUSTER_ANNOTATION];
    if (gang === undefined || member === undefined || !isBound(proxy) || !isLive(proxy)) continue;
    places.set(gang, (places.get(gang) ?? new Map<string, string>()).set(member, proxy.metadata.name));
  }
  return [...places].flatMap(([gang, members]) =>
    members.size > 1
      ? [`${gang} is in ${[...members].map(([member, name]) => `${member} (${name})`).join(" and ")}`]
      : [],
  );
}

/** Returns running delegates with a claim that their member has not allocated to them, and objects that no pod there names. */
export async function wrongFollowed({ clients, namespace }: Scene): Promise<string[]> {
  const wrong = await Promise.all(
    (["west", "east"] as const).map(async (name) => {
      const client = clients[name];
      const [held, found, groups, kinds] = await Promise.all([
        podsOf(client, namespace),
        client.list(claims, { namespace }),
        client.list(podGroups, { namespace }),
        client.list(templates, { namespace }),
      ]);
      const delegates = held.filter((one) => ownerOf(one) !== undefined);
      const named = new Set(delegates.filter((one) => !isTerminal(one)).flatMap(namesOf));
      const left = [...groups.items, ...kinds.items, ...found.items]
        .filter((object) => ownerOf(object) !== undefined && !named.has(object.metadata.name))
        .map(({ kind, metadata }) => `${name}: ${kind} ${metadata.name} has been left behind`);
      return [...delegates.filter(isLive).flatMap((one) => unallocated(one, found.items, name)), ...left];
    }),
  );
  return wrong.flat();
}

function namesOf(one: Pod): string[] {
  const ofClaims = (one.spec?.resourceClaims ?? []).flatMap((claim) => [
    claim.resourceClaimName ?? [],
    claim.resourceClaimTemplateName ?? [],
  ]);
  return [gangOf(one) ?? [], ...ofClaims.flat()].flat();
}

interface ClaimStatus {
  readonly allocation?: object;
  readonly reservedFor?: readonly { readonly uid: string }[];
}

function unallocated(
  { metadata, spec, status }: Stored<Pod>,
  found: readonly Stored<AnyObject>[],
  member: string,
): string[] {
  return (spec?.resourceClaims ?? []).flatMap(({ name, resourceClaimName }) => {
    const made = status?.resourceClaimStatuses?.find((one) => one.name === name)?.resourceClaimName;
    const claim = found.find((one) => one.metadata.name === (resourceClaimName ?? made));
    const { allocation, reservedFor = [] } = { ...(claim?.status as ClaimStatus | undefined) };
    const isHeld = allocation !== undefined && reservedFor.some(({ uid }) => uid === metadata.uid);
    return isHeld ? [] : [`${member}: ${metadata.name} runs without its claim ${resourceClaimName ?? made}`];
  });
}
