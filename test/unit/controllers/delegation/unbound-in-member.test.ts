import { expect, test } from "vitest";
import { objectKey, type Pod, type Stored } from "../../../../src/api/kubernetes.ts";
import { unboundIn } from "../../../../src/controllers/delegation/unbound-in-member.ts";
import { cluster, delegates, member } from "../../../support/builders/member.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { registryOf } from "../fleet.ts";
import { delegateOf, memory } from "./world.ts";

const proxy = proxyPod();
const key = objectKey(proxy.metadata);

interface Scene {
  /** The version that west's API server has reported before. */
  readonly version?: string;
  /** The pod that east, which has been read, has under the proxy's name. */
  readonly inEast?: Stored<Pod>;
  readonly uncertain?: string;
}

/** Counts pods that may have delegates in west, which was not read since an earlier leader may have created one there. */
function unboundInWest({ version, inEast, uncertain }: Scene): number {
  const west = cluster("west", version === undefined ? {} : { status: { version } });
  const east = member("east", fakeClient({}), { delegates: delegates({ get: () => inEast }) });
  return unboundIn("west", {
    registry: registryOf([east], { cluster: () => west }),
    waiting: [[key, proxy]],
    placementState: {
      memories: { of: () => memory({ fresh: false, ...(uncertain === undefined ? {} : { uncertain }) }) },
      eligibilities: { of: () => ({ excludes: () => undefined }) },
    },
  });
}

test.each<[string, Scene, number]>([
  ["has answered before", { version: "v1.36.0" }, 1],
  ["has never answered", {}, 0],
  ["has never answered, and was asked to make one", { uncertain: "west" }, 1],
  ["has answered before, while another one has the pod's delegate", { version: "v1", inEast: delegateOf(proxy) }, 0],
  [
    "has answered before, while another one has the delegate of an earlier pod",
    { version: "v1", inEast: delegateOf(proxyPod({ uid: "earlier" })) },
    1,
  ],
])("counts a pod whose delegate may be in an unread member that %s", (_what, scene, count) => {
  expect(unboundInWest(scene)).toBe(count);
});
