import { expect, test } from "vitest";
import { CLUSTER_ANNOTATION, DELEGATE_UID_ANNOTATION, PROXY_LABEL } from "../../../../src/api/keys.ts";
import {
  type KubeNode,
  type Namespace,
  objectKey,
  type Pod,
  type PodSpec,
  type Stored,
} from "../../../../src/api/kubernetes.ts";
import { decide } from "../../../../src/controllers/delegation/decide.ts";
import { Observer } from "../../../../src/controllers/delegation/observe.ts";
import { type HomeApi, wantedTokens } from "../../../../src/pods/home-api.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { member } from "../../../support/builders/member.ts";
import { pod } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { placementOver } from "../../scheduling/placement-over.ts";
import { registryOf } from "../fleet.ts";

const spec: Partial<PodSpec> = {
  nodeName: "legation-west",
  schedulerName: "default-scheduler",
  containers: [
    {
      name: "main",
      image: "busybox",
      volumeMounts: [{ name: "kube-api-access-x", mountPath: "/var/run/secrets/kubernetes.io/serviceaccount" }],
    },
  ],
  volumes: [
    {
      name: "kube-api-access-x",
      projected: { sources: [{ serviceAccountToken: { path: "token", expirationSeconds: 3607 } }] },
    },
  ],
};
const marks = { labels: { [PROXY_LABEL]: "true" }, finalizers: ["legation.dev/delegate"] };
const overflowed = pod({ metadata: { ...marks, annotations: { [CLUSTER_ANNOTATION]: "west" } }, spec });
// A bare pod, bound, whose delegate never started and has gone.
const bare = pod({
  metadata: { ...marks, annotations: { [CLUSTER_ANNOTATION]: "west", [DELEGATE_UID_ANNOTATION]: "old" } },
  spec: { ...spec, schedulerName: "legation" },
});

const { nodeName: _, ...unbound } = spec;
const uncertain = pod({ metadata: marks, spec: { ...unbound, schedulerName: "legation" } });

const pending: HomeApi = { state: "pending", message: "its Secrets, which hold tokens of pods, cannot be read yet" };

function decisionFor(proxy: Stored<Pod>, homeApi: HomeApi) {
  const namespaces = new Store<Namespace>();
  namespaces.set({
    metadata: { name: "team", uid: "n", resourceVersion: "1", labels: { "legation.dev/delegation": "overflow" } },
  });
  const size = { cpu: 8, pods: 100 };
  const candidate = { name: "west", labels: {}, allocatable: size, largestNode: size, used: {} };
  const { proxies, placementState } = placementOver([candidate], { namespaces, homeApi: () => homeApi });
  proxies.set(proxy);
  placementState.update(proxy);
  const west = member("west", fakeClient({}), {
    nodesRead: true,
    nodesVersion: 1,
    probed: { reachable: true },
    candidate: () => candidate,
  });
  placementState.memories.noteGone(proxy.metadata.uid, "old");
  // The member was connected anew, at another address, while the response to a create was awaited.
  if (proxy === uncertain)
    placementState.memories.noteUncertain(proxy.metadata.uid, "west", { at: 999_000, message: "socket closed" });
  const observer = new Observer({
    registry: registryOf([west]),
    preparer: { needs: () => undefined },
    virtualNodes: new Store<KubeNode>(),
    placementState,
    proxies: { synced: true, get: () => proxy },
    waiting: { since: () => undefined },
    clock: { now: () => 1_000_000, wall: () => 1_000_000 },
  });
  const observed = observer.observe(objectKey(proxy.metadata));
  if (observed === undefined) throw new Error("nothing observed");
  return decide(observed, 1_000_000);
}

test.each([
  ["that has overflowed", overflowed],
  ["whose delegate is created anew", bare],
  ["that may have been created before its member was connected anew", uncertain],
])(
  "does not create the delegate of a pod %s without its token while the host's address is not known yet",
  (_, proxy) => {
    expect(wantedTokens(proxy)).toHaveLength(1);
    const { actions } = decisionFor(proxy, pending);
    const made = actions.find(({ type }) => type === "create");
    // Fails: it is created with automountServiceAccountToken false and without the volume.
    expect(made).toBeUndefined();
  },
);
