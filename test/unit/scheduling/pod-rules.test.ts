import { describe, expect, test } from "vitest";
import type { Namespace } from "../../../src/api/kubernetes.ts";
import type { Candidate } from "../../../src/placement/candidate.ts";
import { Store } from "../../../src/runtime/store.ts";
import type { Eligibilities } from "../../../src/scheduling/eligibility.ts";
import type { FoundWishes } from "../../../src/scheduling/workload.ts";
import { proxyPod } from "../../support/builders/pod.ts";
import { placementOver } from "./placement-over.ts";

const CLUSTERS = "legation.dev/clusters";
const size = { pods: 100 };
const [west, east] = ["west", "east"].map(
  (name): Candidate => ({ name, labels: {}, allocatable: size, largestNode: size, used: {} }),
) as [Candidate, Candidate];

function eligibilities(wishes: FoundWishes, defaults: Record<string, string> = {}): Eligibilities {
  const namespaces = new Store<Namespace>();
  namespaces.set({ metadata: { name: "team", uid: "team", resourceVersion: "1", annotations: defaults } });
  const homeApi = (): { state: "known"; address: { host: string; port: string } } => ({
    state: "known",
    address: { host: "192.0.2.1", port: "6443" },
  });
  return placementOver([west, east], { namespaces, homeApi, wishes }).placementState.eligibilities;
}

function pod(annotations: Record<string, string> = {}, spec: object = {}): ReturnType<typeof proxyPod> {
  return proxyPod({ metadata: { annotations }, spec });
}

describe("a pod without a node", () => {
  test("may go where its workload wishes, and may have been elsewhere before that wish", () => {
    const { excludes, never } = eligibilities({ annotations: { [CLUSTERS]: "east" } }).of(pod());
    expect([west, east].map((member) => excludes(member))).toEqual([`not named by ${CLUSTERS}`, undefined]);
    expect(never?.(west)).toBeUndefined();
  });

  test("was never in a member that it excludes itself", () => {
    const { never } = eligibilities({ annotations: {} }).of(pod({ [CLUSTERS]: "east" }));
    expect([west, east].map((member) => never?.(member))).toEqual([`not named by ${CLUSTERS}`, undefined]);
  });

  test("may have been in a member that only an outdated copy excludes", () => {
    const annotations = { [CLUSTERS]: "west", "legation.dev/outdated-in-template": CLUSTERS };
    expect(
      eligibilities({ annotations })
        .of(pod({ [CLUSTERS]: "east" }))
        .never?.(west),
    ).toBeUndefined();
  });

  test("is not placed while its workload is unseen", () => {
    const unseen = { kind: "Deployment", name: "web" } as const;
    expect(eligibilities({ annotations: {}, unseen }).of(pod())).toMatchObject({ unseen: "Deployment/web" });
  });
});

describe("replicas have to move", () => {
  const running = pod({}, { nodeName: "legation-west" });

  test("out of a member that their workload's wishes exclude, without a division", () => {
    const moving = eligibilities({ annotations: { [CLUSTERS]: "east" } }).moving(running);
    expect(moving?.candidates.map(({ name }) => name)).toEqual(["east"]);
    expect(moving).toMatchObject({ undivided: true, preferences: { rebalance: false } });
    expect(["west", "east"].map((member) => moving?.excludes?.(running, member))).toEqual([true, false]);
  });

  test.each<[string, ReturnType<typeof pod>, Record<string, string>, Record<string, string>]>([
    ["by their own annotations", pod({ [CLUSTERS]: "west,east" }), { [CLUSTERS]: "east" }, {}],
    ["by defaults of their namespace", running, {}, { [CLUSTERS]: "east" }],
    ["by a spread", running, { "legation.dev/cluster-spread": "[{topologyKey: region}]" }, {}],
  ])("nowhere %s", (_, replica, annotations, defaults) => {
    expect(eligibilities({ annotations }, defaults).moving(replica)).toBeUndefined();
  });
});
