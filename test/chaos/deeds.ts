import { DELEGATE_ANNOTATION } from "../../src/api/keys.ts";
import type { KubeObject } from "../../src/api/kubernetes.ts";
import { pods, type Resource } from "../../src/kube/resources.ts";
import { KWOK_ANNOTATIONS } from "../support/clusters/stages.ts";
import { podsOf } from "../support/harness/pods-of.ts";
import { createIn, WORKLOADS } from "../support/harness/workloads.ts";
import type { Scene } from "./faults.ts";
import { type Happening, pick } from "./plan.ts";

const annotations = { [DELEGATE_ANNOTATION]: "true" };
const spec = { containers: [{ name: "main", image: "main:1" }] };

/** The name of a pod whose name is used again and again: its delegates may follow each other closely. */
export const REUSED_NAME = "again";

/** Does what an author would do now; rejects when the host does not take it. */
export async function act(
  { clients: { host }, namespace }: Scene,
  happening: Extract<Happening, { readonly type: "deed" }>,
): Promise<void> {
  const { deed, number, dice } = happening;
  const stopsAfter = dice < 0.5 ? "0s" : "700ms";
  const behaviour = { [KWOK_ANNOTATIONS.stopsAfter]: stopsAfter };
  const make = async (object: KubeObject): Promise<void> => {
    await createIn(host, namespace, [object]);
  };
  const pod = (name: string): KubeObject & { spec: object } => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, annotations: { ...annotations, ...behaviour } },
    spec,
  });
  switch (deed) {
    case "run a pod":
      return make(pod(`pod-${number}`));
    case "run it again":
      return make(pod(REUSED_NAME));
    case "run a job":
      return make(job(`job-${number}`, 1 + Math.floor(dice * 4)));
    case "deploy":
      return make(deployment(`web-${number}`, 1 + Math.floor(dice * 6), behaviour));
    case "delete a pod": {
      const found = await podsOf(host, namespace);
      if (found.length === 0) return;
      await host.delete(pods, { namespace, name: pick(found, dice).metadata.name }, { gracePeriodSeconds: 1 });
      return;
    }
    case "scale": {
      const { items } = await host.list(workloads("Deployment"), { namespace });
      if (items.length === 0) return;
      const body = { spec: { replicas: Math.floor(dice * 8) } };
      await host.patch(
        workloads("Deployment"),
        { namespace, name: pick(items, dice).metadata.name },
        { type: "merge", body },
      );
      return;
    }
    case "delete a workload": {
      const resource = workloads(dice < 0.5 ? "Deployment" : "Job");
      const { items } = await host.list(resource, { namespace });
      if (items.length === 0) return;
      await host.delete(resource, { namespace, name: pick(items, dice).metadata.name });
    }
  }
}

function workloads(kind: string): Resource<KubeObject> {
  const found = WORKLOADS.find((resource) => resource.kind === kind);
  if (found === undefined) throw new Error(`no workload is a ${kind}`);
  return found;
}

function job(name: string, completions: number): KubeObject {
  const outcome = { [KWOK_ANNOTATIONS.outcome]: "succeeded", [KWOK_ANNOTATIONS.endsAfter]: "1s" };
  const template = { metadata: { annotations: outcome }, spec: { ...spec, restartPolicy: "Never" } };
  return workload("batch/v1", "Job", name, { completions, parallelism: completions, backoffLimit: 100, template });
}

function deployment(name: string, replicas: number, behaviour: Readonly<Record<string, string>>): KubeObject {
  const labels = { app: name };
  const template = { metadata: { labels, annotations: behaviour }, spec };
  return workload("apps/v1", "Deployment", name, { replicas, selector: { matchLabels: labels }, template });
}

function workload(apiVersion: string, kind: string, name: string, rest: object): KubeObject {
  const object = { apiVersion, kind, metadata: { name, annotations }, spec: rest };
  return object;
}
