import { expect, onTestFinished, test, vi } from "vitest";
import type { KubeObject, Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { CopyExecutor } from "../../../../src/controllers/copying/executor.ts";
import { DependencyController } from "../../../../src/controllers/dependencies/controller.ts";
import { NetworkPolicyController } from "../../../../src/controllers/network-policies/controller.ts";
import { ServiceController } from "../../../../src/controllers/services/controller.ts";
import { JoinedNetworks } from "../../../../src/controllers/services/joined-networks.ts";
import { copyMetadata } from "../../../../src/copies/copy-metadata.ts";
import { FAMILIES } from "../../../../src/copies/named-by-pods.ts";
import { policyCopyName } from "../../../../src/copies/network-policies.ts";
import type { ClusterClient, WatchOptions } from "../../../../src/kube/client.ts";
import type { Resource } from "../../../../src/kube/resources.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { member } from "../../../support/builders/member.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { surroundings } from "../fleet.ts";

const HOST = { id: "host-id", name: "cern" };
const source = { metadata: { namespace: "team", name: "web", uid: "source-uid", resourceVersion: "1" } };
const POLICY = policyCopyName(source.metadata, HOST.id);

function copyNamed(name: string, type: Resource<never>): Stored<KubeObject> {
  return {
    metadata: {
      ...copyMetadata({ source, host: HOST, type }),
      namespace: "team",
      name,
      uid: "copy-uid",
      resourceVersion: "2",
    },
  };
}

/** Returns an API server with one object of this kind. */
function clusterWith(plural?: string): ClusterClient {
  return fakeClient({
    list: async (resource: Resource<never>) => ({
      items: resource.plural === plural ? [copyNamed(plural === "networkpolicies" ? POLICY : "web", resource)] : [],
      resourceVersion: "2",
      size: 1,
    }),
    watch: async function* (_resource: unknown, { signal, onOpen }: WatchOptions) {
      onOpen?.();
      yield { type: "BOOKMARK", resourceVersion: "2" };
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    },
  });
}

test.each([
  ["ConfigMaps", "configmaps", "west/ConfigMap/team/web", DependencyController],
  ["Services", "services", "west/Service/team/web", ServiceController],
  ["NetworkPolicies", "networkpolicies", `west/NetworkPolicy/team/${POLICY}`, NetworkPolicyController],
] as const)("forgets copies of %s in a member when it leaves", async (_, plural, key, Kind) => {
  const forget = vi.spyOn(CopyExecutor.prototype, "forget");
  onTestFinished(() => forget.mockRestore());
  const clock = new FakeClock();
  const proxies = new Store<Pod>();
  proxies.synced = true;
  // No write reaches the member meanwhile.
  const members = [member("west", clusterWith(plural), { reachable: false })];
  const around = { ...surroundings(members, clock), host: clusterWith() };
  const networks = new JoinedNetworks({ ...around, network: undefined });
  const controller = new Kind({ ...around, proxies, family: FAMILIES.dependencies, networks, mcs: false });
  onTestFinished(() => controller.stop());
  controller.onMembers();
  await clock.advance(1_000);
  expect(forget).not.toHaveBeenCalledWith(key);

  members.length = 0;
  controller.onMembers();
  await clock.advance(0);
  expect(forget).toHaveBeenCalledWith(key);
});
