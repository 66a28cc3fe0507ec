import { setTimeout as sleep } from "node:timers/promises";
import {
  clusterOfNode,
  FAILOVER_ANNOTATION,
  FAILOVER_NEVER,
  GROUP_ANNOTATION,
  MODE_ANNOTATION,
  OVERFLOW_AFTER_ANNOTATION,
  PREFERENCES_ANNOTATION,
} from "../../src/api/keys.ts";
import type { KubeObject } from "../../src/api/kubernetes.ts";
import { isKubeError } from "../../src/kube/errors.ts";
import {
  configMaps,
  namespaces,
  persistentVolumeClaims,
  pods,
  type Resource,
  secrets,
  services,
} from "../../src/kube/resources.ts";
import { KWOK_ANNOTATIONS } from "../support/clusters/stages.ts";
import { evict, podsOf } from "../support/harness/pods-of.ts";
import { eventually } from "../support/harness/wait.ts";
import { createIn, WORKLOADS } from "../support/harness/workloads.ts";
import { actOnFollowed, isOnFollowed } from "./followed.ts";
import { actOnObjects } from "./objects/deeds.ts";
import { isOnObjects } from "./objects/plan.ts";
import { type Happening, pick } from "./plan.ts";
import { actOnQueues } from "./queues/deeds.ts";
import { isOnQueues } from "./queues/plan.ts";
import type { Scene } from "./scene.ts";
import { actOnServices } from "./services/deeds.ts";
import { isOnServices } from "./services/plan.ts";
import {
  deployment,
  job,
  MEMBERS_CLASS,
  MEMBERS_POOL,
  marksOf,
  pod,
  REUSED_NAME,
  reads,
  statefulSet,
} from "./workloads.ts";

const LOST_NODE = "node.kubernetes.io/unreachable";
const LABELS = { "legation.dev/delegation": "annotated" };
// Objects that belong together are created in spite of a temporary fault: half of them would wait forever.
const STUBBORN_MS = 60_000;

/** Does what an author would do now; rejects when the host does not take it. */
export async function act(scene: Scene, happening: Extract<Happening, { readonly type: "deed" }>): Promise<void> {
  const { namespace, clients } = scene;
  const { host } = clients;
  const { deed, number, dice } = happening;
  if (isOnObjects(deed)) return actOnObjects(scene, { ...happening, deed });
  if (isOnQueues(deed)) return actOnQueues(scene, { deed, number, dice });
  if (isOnServices(deed)) return actOnServices(scene, { deed, number, dice });
  const behaviour = { [KWOK_ANNOTATIONS.stopsAfter]: dice < 0.5 ? "0s" : "700ms" };
  if (isOnFollowed(deed)) return actOnFollowed(scene, { deed, number, annotations: behaviour }, stubborn);
  const make = async (object: KubeObject): Promise<void> => {
    await createIn(host, namespace, [object]);
  };
  switch (deed) {
    case "run a pod":
      return make(pod(`pod-${number}`, { annotations: behaviour }));
    case "run it again":
      return make(pod(REUSED_NAME, { annotations: behaviour }));
    case "run a job":
      return make(job(`job-${number}`, 1 + Math.floor(dice * 4)));
    case "deploy":
      return make(deployment(`web-${number}`, 1 + Math.floor(dice * 6), { annotations: behaviour }));
    case "delete a pod": {
      const found = await podsOf(host, namespace);
      if (found.length === 0) return;
      await host.delete(pods, { namespace, name: pick(found, dice).metadata.name }, { gracePeriodSeconds: 1 });
      return;
    }
    case "delete a pod by force": {
      // No two delegates of this name may ever live at once.
      const found = (await podsOf(host, namespace)).filter(({ metadata }) => metadata.name !== REUSED_NAME);
      if (found.length === 0) return;
      const { name } = pick(found, dice).metadata;
      scene.forced.add(`${namespace}/${name}`);
      await host.delete(pods, { namespace, name }, { gracePeriodSeconds: 0 });
      return;
    }
    case "scale":
      return changeOne(scene, dice, () => ({ spec: { replicas: Math.floor(dice * 8) } }));
    case "delete a workload": {
      const resource = workloads(pick(["Deployment", "Job", "StatefulSet"], (dice * 7) % 1));
      const { items } = await host.list(resource, { namespace });
      if (items.length === 0) return;
      await host.delete(resource, { namespace, name: pick(items, dice).metadata.name });
      return;
    }
    case "deploy by preferences": {
      const asked = { [PREFERENCES_ANNOTATION]: preferences(dice) };
      return make(deployment(`divided-${number}`, 2 + Math.floor(dice * 5), { annotations: behaviour, asked }));
    }
    case "change preferences":
      return changeOne(scene, dice, ({ metadata }) =>
        metadata?.name?.startsWith("divided-") === true
          ? { metadata: { annotations: { [PREFERENCES_ANNOTATION]: preferences((dice * 13) % 1) } } }
          : undefined,
      );
    case "run a group": {
      const annotations = { ...behaviour, [GROUP_ANNOTATION]: `group-${number % 3}` };
      for (const each of [1, 2, 3]) await make(pod(`group-${number}-${each}`, { annotations }));
      return;
    }
    case "run a pod that overflows": {
      const annotations = { ...behaviour, [MODE_ANNOTATION]: "overflow", [OVERFLOW_AFTER_ANNOTATION]: "1s" };
      return make(pod(`overflow-${number}`, { annotations, spec: { nodeSelector: { [MEMBERS_POOL]: "true" } } }));
    }
    case "run a pod that the host has room for":
      return make(pod(`home-${number}`, { annotations: { ...behaviour, [MODE_ANNOTATION]: "overflow" } }));
    case "run a pod with a ConfigMap and a Secret": {
      const name = `reads-${number}`;
      const late = dice < 0.5 ? 0 : 2_000;
      const metadata = { namespace, name };
      const both = async (): Promise<void> => {
        await sleep(late);
        await stubborn(() => host.create(configMaps, { metadata, data: { version: "1" } }));
        await stubborn(() => host.create(secrets, { metadata, data: { key: "MQ==" } }));
      };
      await Promise.all([both(), stubborn(() => make(pod(name, { annotations: behaviour, spec: reads(name, name) })))]);
      return;
    }
    case "change a ConfigMap": {
      const { items } = await host.list(configMaps, { namespace });
      const ours = items.filter(({ metadata }) => metadata.name.startsWith("reads-"));
      if (ours.length === 0) return;
      const body = { data: { version: String(number) } };
      await host.patch(configMaps, { namespace, name: pick(ours, dice).metadata.name }, { type: "merge", body });
      return;
    }
    case "run a pod with a claim": {
      const name = `claims-${number}`;
      const spec = {
        accessModes: ["ReadWriteOnce"],
        storageClassName: MEMBERS_CLASS,
        resources: { requests: { storage: "1Gi" } },
      };
      await stubborn(() => host.create(persistentVolumeClaims, { metadata: { namespace, name }, spec }));
      const volumes = [{ name: "data", persistentVolumeClaim: { claimName: name } }];
      return stubborn(() => make(pod(name, { annotations: behaviour, spec: { volumes } })));
    }
    case "expose a Deployment": {
      const { items } = await host.list(workloads("Deployment"), { namespace });
      if (items.length === 0) return;
      const { name } = pick(items, dice).metadata;
      await host.create(services, {
        metadata: { namespace, name },
        spec: { selector: { app: name }, ports: [{ port: 80 }] },
      });
      return;
    }
    case "run a pod that never fails over":
      return make(pod(`stays-${number}`, { annotations: { ...behaviour, [FAILOVER_ANNOTATION]: FAILOVER_NEVER } }));
    case "deploy what leaves a lost member soon": {
      const tolerations = [{ key: LOST_NODE, operator: "Exists", effect: "NoExecute", tolerationSeconds: 1 }];
      return make(deployment(`leaves-${number}`, 4, { annotations: behaviour, spec: { tolerations } }));
    }
    case "run a StatefulSet":
      return make(statefulSet(`set-${number % 4}`, 1 + Math.floor(dice * 3), { annotations: behaviour }));
    case "evict a pod": {
      const found = await podsOf(host, namespace);
      if (found.length === 0) return;
      await evict(host, namespace, pick(found, dice).metadata.name);
      return;
    }
    case "import a pod that was exported": {
      const proxies = (await podsOf(host, namespace)).filter(({ spec }) => clusterOfNode(spec?.nodeName) !== undefined);
      if (proxies.length === 0) return;
      const { metadata, spec = { containers: [] } } = pick(proxies, dice);
      // Other labels would give the copy to a controller, as kubectl debug knows.
      await host.create(pods, { metadata: { namespace, ...marksOf(metadata, `imported-${number}`) }, spec });
      return;
    }
    case "make a namespace and delete it":
      return comeAndGo(scene, `${namespace}-${number}`, dice);
  }
}

/** A namespace with a Deployment and a pod in it, for some seconds. */
async function comeAndGo({ clients: { host }, passing }: Scene, name: string, dice: number): Promise<void> {
  passing.push(name);
  const metadata = { name, labels: LABELS };
  await stubborn(() => host.create(namespaces, { metadata }));
  try {
    await createIn(host, name, [deployment("web", 3, {}), pod("one")]);
    await sleep(1_000 + dice * 4_000);
  } finally {
    await stubborn(() => host.delete(namespaces, { name }));
  }
}

/** Returns preferences with two weights, and sometimes a minimum. */
function preferences(dice: number): string {
  const share = { weight: 1 + Math.floor(dice * 3) };
  return JSON.stringify({
    rebalance: true,
    clusters: { west: dice < 0.3 ? { ...share, minReplicas: 1 } : share, east: { weight: 1 } },
  });
}

/** Changes one Deployment or StatefulSet; nothing when the change is none for the one that the dice fall on. */
async function changeOne(
  { clients: { host }, namespace }: Scene,
  dice: number,
  change: (workload: KubeObject) => object | undefined,
): Promise<void> {
  const resource = workloads(dice < 0.8 ? "Deployment" : "StatefulSet");
  const { items } = await host.list(resource, { namespace });
  if (items.length === 0) return;
  const found = pick(items, dice);
  const body = change(found);
  if (body === undefined) return;
  await host.patch(resource, { namespace, name: found.metadata.name }, { type: "merge", body });
}

/** Goes on trying for a while; what is there already was made by a try whose answer was lost, what is not there any more is gone. */
async function stubborn(attempt: () => Promise<unknown>): Promise<void> {
  await eventually(
    async () => {
      try {
        await attempt();
      } catch (error) {
        if (!isKubeError(error, "AlreadyExists", "NotFound")) throw error;
      }
      return true;
    },
    { timeoutMs: STUBBORN_MS, intervalMs: 500 },
  );
}

function workloads(kind: string): Resource<KubeObject> {
  const found = WORKLOADS.find((resource) => resource.kind === kind);
  if (found === undefined) throw new Error(`no workload is a ${kind}`);
  return found;
}
