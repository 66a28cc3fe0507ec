import { describe, expect, onTestFinished, test } from "vitest";
import type { ClusterSpec } from "../../../../src/api/cluster.ts";
import { objectKey, type Pod, type Stored } from "../../../../src/api/kubernetes.ts";
import type { ControllerEvents } from "../../../../src/controllers/events.ts";
import { HomeApiController } from "../../../../src/controllers/home-api/controller.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { Events } from "../../../../src/runtime/event-bus.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { cluster } from "../../../support/builders/member.ts";
import { pod, proxyPod } from "../../../support/builders/pod.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { registryOf, surroundings } from "../fleet.ts";
import { quietClient } from "../quiet-client.ts";
import { recorderTo } from "../recorder.ts";
import { memberWith, podWithTokens } from "./with-tokens.ts";

const ROOT_CA = {
  metadata: { namespace: "kube-system", name: "kube-root-ca.crt" },
  data: { "ca.crt": "-----BEGIN CERTIFICATE-----" },
};

interface Parts {
  readonly server?: string;
  /** `spec.homeAPI` of the Cluster. */
  readonly homeAPI?: NonNullable<ClusterSpec["homeAPI"]>;
  readonly proxy?: Stored<Pod>;
  readonly mode?: "none" | "member";
  readonly client?: ClusterClient;
}

/** A delegate without a token in `west`, what its author was told, and the way from there to the host. */
async function without({ server, homeAPI, proxy = podWithTokens(HOST).proxy, mode, client = quietClient([]) }: Parts) {
  const clock = new FakeClock();
  const told: string[] = [];
  const { annotations, labels } = podWithTokens(HOST).delegate.metadata;
  const west = memberWith(
    pod({ uid: "delegate-uid", metadata: { ...(annotations && { annotations }), ...(labels && { labels }) } }),
    client,
  );
  const events = new Events<ControllerEvents>();
  const controller = new HomeApiController({
    ...surroundings([west], clock),
    host: quietClient([ROOT_CA]),
    registry: registryOf([west], {
      holders: () => [west],
      cluster: () => cluster("west", homeAPI && { spec: { homeAPI } }),
    }),
    recorder: recorderTo(({ reason, message }) => told.push(`${reason}: ${message}`), clock),
    refusedWrites: { tell: () => true, over: () => undefined },
    server,
    agentAddress: () => undefined,
    proxies: { get: () => proxy },
    modeOf: () => mode,
    events,
  });
  onTestFinished(() => controller.stop());
  await controller.start(new AbortController().signal);
  events.emit("cluster", "west");
  await clock.advance(10);
  const enqueue = async (): Promise<void> => {
    events.emit("bound", "west", objectKey(proxy.metadata));
    await clock.advance(1_000);
  };
  await enqueue();
  return { told, enqueue, clock, way: controller.of("west") };
}

describe("a pod without a token in a member that does not know the host's address", () => {
  test.each<[string, Parts, number]>([
    ["has one event", {}, 1],
    ["has no event if its author did not want one", { mode: "none" }, 0],
    ["has no event if it mounts none", { proxy: proxyPod({ spec: { nodeName: "legation-west" } }) }, 0],
  ])("%s", async (_, parts, times) => {
    const { told } = await without(parts);
    expect(told).toEqual(Array(times).fill(expect.stringMatching(/^NoHomeAPI: .*spec.homeAPI.server of Cluster west/)));
  });

  test("has one event an hour", async () => {
    const { told, enqueue, clock } = await without({});
    await enqueue();
    expect(told).toHaveLength(1);
    await clock.advance(3_600_000);
    await enqueue();
    expect(told).toHaveLength(2);
  });
});

const forbidden = async (): Promise<never> => {
  throw kubeError("Forbidden", "no", { verb: "list", resource: "secrets" });
};

describe("the host's address for pods of a member", () => {
  test.each<[string, Parts, object]>([
    [
      "is its Cluster's",
      { server: "https://10.0.0.9:443", homeAPI: { server: "https://10.0.0.1:6443" } },
      { state: "known", address: { host: "10.0.0.1", port: "6443" } },
    ],
    [
      "is the controller's flag",
      { server: "https://10.0.0.9:443" },
      { state: "known", address: { host: "10.0.0.9", port: "443" } },
    ],
    [
      "is invalid if its authority is no certificate",
      { homeAPI: { server: "https://10.0.0.9:443", certificateAuthorityData: btoa("x") } },
      { state: "unknown", message: expect.stringContaining("is not the base64 of a PEM certificate") },
    ],
    [
      "is pending before the member's Secrets can be read",
      { server: "https://10.0.0.9:443", client: quietClient([], { list: forbidden }) },
      {
        state: "pending",
        message: expect.stringContaining("its Secrets, which hold tokens of pods, cannot be read yet"),
      },
    ],
  ])("%s", async (_, parts, expected) => {
    const { way } = await without(parts);
    expect(way).toEqual(expected);
  });
});
