import { describe, expect, test } from "vitest";
import { REFUSED_CONDITION } from "../../src/api/keys.ts";
import type { Pod, PodCondition } from "../../src/api/kubernetes.ts";
import { events, pods } from "../../src/kube/resources.ts";
import { conditionOf } from "../../src/pods/pod-state.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { delegatedPod } from "../support/delegated/pods.ts";
import { useClients } from "../support/harness/clients.ts";
import { hostCluster, memberCluster } from "../support/harness/clusters.ts";
import { applyAll, kubectl } from "../support/harness/kubectl.ts";
import { useLegation } from "../support/harness/legation.ts";
import { freshNamespace } from "../support/harness/namespace.ts";
import { inPhase, podGone, podsOf, podThat } from "../support/harness/pods-of.ts";
import { type RefusedWrites, refuseWrites } from "../support/harness/refusals.ts";
import { eventually, eventuallyPasses } from "../support/harness/wait.ts";
import { legationOn } from "../support/legation/process.ts";

useLegation();
const clients = useClients();
const patient = { timeoutMs: 60_000 };
const annotations = { "legation.dev/clusters": "west" };
// The test's own dry-runs show when a policy is in force, whichever accounts it permits.
const DRY = "has(request.dryRun) && request.dryRun";
const OTHERS = "!request.userInfo.username.startsWith('system:serviceaccount:legation-system:')";

type Refused = Pick<RefusedWrites, "operation" | "resource"> & { readonly allowed: string };

/** A pod of which one of the clusters refuses a write. */
interface Scene {
  readonly namespace: string;
  /** The proxy's name. */
  readonly name: string;
  onHost(...args: string[]): Promise<string>;
  inMember(...args: string[]): Promise<string>;
}

interface Case {
  readonly title: string;
  readonly in: "host" | "west";
  readonly refused: Refused;
  /** The pod has a controller. */
  readonly replicated?: true;
  /** Causes the write. */
  readonly act: (scene: Scene) => Promise<unknown>;
  /** Runs once the author was told. */
  readonly undo?: (scene: Scene) => Promise<unknown>;
  readonly reason: string;
  /** The pod goes once the write is allowed. */
  readonly goes?: true;
}

const remove = ({ onHost, name }: Scene): Promise<string> => onHost("delete", "pod", name, "--wait=false");

const cases: readonly Case[] = [
  {
    title: "a member refuses the deletion of a delegate",
    in: "west",
    refused: { resource: "pods", operation: "DELETE", allowed: "false" },
    act: remove,
    reason: "DeletionRefused",
    goes: true,
  },
  {
    title: "the host refuses the finalizer's removal",
    in: "host",
    refused: { resource: "pods", operation: "UPDATE", allowed: OTHERS },
    act: remove,
    reason: "ReleaseRefused",
    goes: true,
  },
  {
    title: "the host refuses the deletion with grace 0",
    in: "host",
    refused: { resource: "pods", operation: "DELETE", allowed: OTHERS },
    act: remove,
    reason: "ReleaseRefused",
    goes: true,
  },
  {
    title: "the host refuses the eviction of a pod whose delegate is being deleted",
    in: "host",
    refused: { resource: "pods", operation: "DELETE", allowed: OTHERS },
    replicated: true,
    act: async ({ inMember, name }) => {
      await inMember("patch", "pod", name, "-p", '{"metadata": {"finalizers": ["example.com/held"]}}');
      await inMember("delete", "pod", name, "--wait=false");
    },
    undo: ({ inMember, name }) => inMember("patch", "pod", name, "-p", '{"metadata": {"finalizers": null}}'),
    reason: "EvictionRefused",
  },
  {
    title: "the host refuses the delegate's status",
    in: "host",
    refused: {
      resource: "pods/status",
      operation: "UPDATE",
      allowed: "!object.status.?conditions.orValue([]).exists(each, each.type == 'example.com/told')",
    },
    act: ({ inMember, name }) =>
      inMember(
        ...["patch", "pod", name, "--subresource=status", "-p"],
        '{"status": {"conditions": [{"type": "example.com/told", "status": "True"}]}}',
      ),
    reason: "StatusRefused",
  },
  {
    title: "a member refuses a change of the pod",
    in: "west",
    refused: {
      resource: "pods",
      operation: "UPDATE",
      allowed: "!('example.com/changed' in object.metadata.?labels.orValue({}))",
    },
    act: ({ onHost, name }) => onHost("label", "pod", name, "example.com/changed=yes"),
    reason: "NotForwarded",
  },
  {
    title: "a member refuses a delegate's marks",
    in: "west",
    refused: { resource: "pods", operation: "UPDATE", allowed: OTHERS },
    act: ({ inMember, name }) => inMember("label", "pod", name, "legation.dev/host-"),
    reason: "NotFollowed",
  },
];

type OnFinished = Parameters<typeof refuseWrites>[2];

/** Creates a pod that runs in west; with `replicated` the first one of a ReplicaSet. */
async function running(replicated: boolean, onFinished: OnFinished): Promise<Scene> {
  const labels = { "legation.dev/delegation": "all" };
  const options = { prefix: "refused-write", labels, ...(onFinished === undefined ? {} : { onFinished }) };
  const namespace = await freshNamespace([hostCluster(), memberCluster("west")], options);
  const { host } = clients();
  if (replicated) {
    const { spec } = delegatedPod(namespace, "web");
    const template = { metadata: { labels: { app: "web" }, annotations }, spec };
    const replicaSet = {
      apiVersion: "apps/v1",
      kind: "ReplicaSet",
      metadata: { namespace, name: "web" },
      spec: { replicas: 1, selector: { matchLabels: { app: "web" } }, template },
    };
    await applyAll(hostCluster(), [replicaSet]);
  } else await host.create(pods, delegatedPod(namespace, "web", { annotations }));
  const [pod] = await eventually(async () => {
    const all = await podsOf(host, namespace);
    return all.length === 1 && all.every(inPhase("Running")) && all;
  }, patient);
  const run =
    (cluster: Cluster) =>
    (...args: string[]): Promise<string> =>
      kubectl(cluster, ["-n", namespace, ...args]);
  const name = pod?.metadata.name ?? "";
  return { namespace, name, onHost: run(hostCluster()), inMember: run(memberCluster("west")) };
}

/** Waits until a policy is in force. */
async function isInForce({ onHost, inMember, name }: Scene, { in: where, refused }: Case): Promise<void> {
  const run = where === "host" ? onHost : inMember;
  const dry = "--dry-run=server";
  const annotate = ["annotate", "pod", name, "probe=1", dry];
  const status = ["patch", "pod", name, "--subresource=status", "-p", '{"status": {"message": "probe"}}', dry];
  const change = refused.resource === "pods/status" ? status : annotate;
  const probe = refused.operation === "DELETE" ? ["delete", "pod", name, dry] : change;
  await eventuallyPasses(() => expect(run(...probe)).rejects.toThrow("not in this cluster"), patient);
}

const refusedOf = (pod: Pod): PodCondition | undefined => conditionOf(pod, REFUSED_CONDITION);

describe.concurrent("the author of a pod", () => {
  test.for(cases.map((each) => [each.title, each] as const))(
    "is told when %s",
    async ([, each], { onTestFinished }) => {
      const { host, west } = clients();
      const scene = await running(each.replicated === true, onTestFinished);
      const { namespace, name } = scene;
      const { allowed, ...refused } = each.refused;
      const expression = `!(${DRY}) && (${allowed})`;
      const client = each.in === "host" ? host : west;
      const allow = await refuseWrites(client, { namespace, ...refused, expression }, onTestFinished);
      await isInForce(scene, each);
      await each.act(scene);
      const told = await podThat(host, namespace, name, (pod) => refusedOf(pod)?.reason === each.reason, patient);
      const message = refusedOf(told)?.message ?? "";
      expect(message).toContain("not in this cluster");
      expect(message).toContain(each.in === "host" ? "this cluster refuses" : "west");
      await eventually(async () => {
        const { items } = await host.list(events, { namespace });
        return items.some((event) => event.involvedObject.name === name && event.reason === each.reason);
      }, patient);
      const { stdout } = await legationOn(hostCluster(), "status", "pod", name, "-n", namespace);
      expect(stdout).toContain("not in this cluster");
      await each.undo?.(scene);
      await allow();
      if (each.goes === true) await podGone(host, namespace, name, undefined, patient);
    },
  );
});
