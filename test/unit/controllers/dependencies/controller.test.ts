import { describe, expect, onTestFinished, test } from "vitest";
import { objectKey, type Pod, type Stored } from "../../../../src/api/kubernetes.ts";
import { DependencyController } from "../../../../src/controllers/dependencies/controller.ts";
import { DEPENDENCIES, type DependencyObject } from "../../../../src/copies/dependencies.ts";
import { toCopy } from "../../../../src/copies/kind.ts";
import { FAMILIES } from "../../../../src/copies/named-by-pods.ts";
import type { KubeError, KubeErrorCode } from "../../../../src/kube/errors.ts";
import { configMaps, serviceAccounts } from "../../../../src/kube/resources.ts";
import { Store } from "../../../../src/runtime/store.ts";
import { listing, writing } from "../../../support/builders/answers.ts";
import { candidateNamed } from "../../../support/builders/candidate.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { delegates, member } from "../../../support/builders/member.ts";
import { endedStatus, type PodParts, proxyPod } from "../../../support/builders/pod.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { breakableClient } from "../breakable-client.ts";
import { puttingInto, surroundings } from "../fleet.ts";
import { quietClient } from "../quiet-client.ts";

type Settings = Stored<DependencyObject>;

interface Clusters {
  readonly host?: readonly Settings[];
  readonly west?: readonly Settings[];
  /** Delegates in `west` that mount it. */
  readonly mounting?: number;
  /** The cluster that cannot be read. */
  readonly unreadable?: "host" | "west";
  /** The plural of a kind that `west` does not let Legation read. */
  readonly denied?: string;
  /** The cluster whose pods are not known yet. */
  readonly unknownPods?: "host" | "west";
  /** The member's answer to a create. */
  readonly creates?: () => void;
}

const settings: Settings = {
  metadata: { name: "settings", namespace: "team", uid: "source-uid", resourceVersion: "7" },
  data: { mode: "new" },
};
const changed: Settings = { ...settings, data: { mode: "old" } };

/** The ConfigMap, given to members whole, with another value in \`west\`. */
function whole(path: string): Settings {
  const overrides = [{ clusters: ["west"], patch: [{ op: "replace", path, value: "old" }] }];
  const annotations = { "legation.dev/overrides": JSON.stringify(overrides) };
  return { ...settings, metadata: { ...settings.metadata, labels: { "legation.dev/whole": "true" }, annotations } };
}

const volumes = [{ name: "settings", configMap: { name: "settings" } }];
const optional = [{ name: "settings", configMap: { name: "settings", optional: true } }];

function copyOf(source: Settings, metadata: object = {}): Settings {
  const copy = toCopy(DEPENDENCIES.ConfigMap, source, HOST);
  return {
    ...copy,
    metadata: { ...copy.metadata, name: "settings", uid: "copy-uid", resourceVersion: "3", ...metadata },
  };
}

/** Returns a pod that waits for `west`, or is what `parts` say. */
async function waiting(clusters: Clusters, parts: PodParts = {}) {
  const { host = [], west = [], mounting = 0, unreadable, denied, unknownPods, creates } = clusters;
  const clock = new FakeClock();
  const writes: string[] = [];
  const onHost = breakableClient(configMaps, host);
  const inMember = breakableClient(configMaps, west, { writes, creates, denied });
  if (unreadable !== undefined) (unreadable === "host" ? onHost : inMember).breakWith("not allowed");
  const proxies = new Store<Pod>();
  const of = member("west", inMember.client, {
    read: unknownPods !== "west",
    delegates: delegates({ list: () => [], countUnfinished: () => mounting, unfinished: () => [] }),
    candidate: () => candidateNamed("west"),
  });
  const controller = new DependencyController({
    family: FAMILIES.dependencies,
    host: onHost.client,
    ...surroundings([of], clock),
    proxies,
  });
  onTestFinished(() => controller.stop());
  controller.onMembers();
  const proxy = proxyPod({
    ...parts,
    metadata: { namespace: "team", ...parts.metadata },
    spec: { volumes, automountServiceAccountToken: false, ...parts.spec },
  });
  const put = puttingInto(proxies, controller, clock);
  await put(proxy);
  proxies.synced = unknownPods !== "host";
  controller.onProxies(of);
  await clock.advance(10);
  return {
    clock,
    writes,
    onHost,
    inMember,
    controller,
    member: of,
    proxy,
    put,
    prepare: async (uid = proxy.metadata.uid): Promise<boolean> => {
      const isThere = controller.prepare(objectKey(proxy.metadata), uid, "west");
      await clock.advance(10);
      return isThere;
    },
    preparation: (): unknown => {
      const needs = controller.needs(proxy);
      return needs?.state === "there" ? needs.in("west") : needs;
    },
  };
}

const ENDING = { deletionTimestamp: "2024-01-01T00:00:00Z" };
const NOT_FOUND = {
  state: "missing",
  reason: "FailedMount",
  message: expect.stringContaining('configmap "settings" not found'),
};
const MAY_BE_WITHOUT = { spec: { volumes: optional } };

describe("a pod", () => {
  test.each<[string, Clusters, PodParts, unknown]>([
    ["starts with copies that equal their sources", { host: [settings], west: [copyOf(settings)] }, {}, "prepared"],
    ["does not start before the copies exist", { host: [settings] }, {}, "unprepared"],
    ["does not start with an old copy", { host: [settings], west: [copyOf(changed)] }, {}, "unprepared"],
    [
      "does not start with a copy that is being deleted",
      { host: [settings], west: [copyOf(settings, ENDING)] },
      {},
      "unprepared",
    ],
    [
      "starts with the copy of a whole object that has its overrides",
      { host: [whole("/data/mode")], west: [copyOf({ ...whole("/data/mode"), data: { mode: "old" } })] },
      {},
      "prepared",
    ],
    [
      "does not start with the copy of a whole object that lacks its overrides",
      { host: [whole("/data/mode")], west: [copyOf(whole("/data/mode"))] },
      {},
      "unprepared",
    ],
    [
      "does not start where the overrides of a whole object do not fit, and says so",
      { host: [whole("/data/gone")] },
      {},
      { refused: expect.stringContaining("settings, which the pod needs: legation.dev/overrides: [0].patch[0]: ") },
    ],
    ["does not start without an object that the host lacks", { west: [copyOf(settings)] }, {}, NOT_FOUND],
    ["starts without a missing optional object", {}, MAY_BE_WITHOUT, "prepared"],
    [
      "does not start before the copy of a deleted source is gone",
      { west: [copyOf(settings)] },
      MAY_BE_WITHOUT,
      "unprepared",
    ],
    ["does not start without an optional object that the host has", { host: [settings] }, MAY_BE_WITHOUT, "unprepared"],
    [
      "does not start without an optional object while the host's cannot be read",
      { unreadable: "host" },
      MAY_BE_WITHOUT,
      { state: "missing", reason: "FailedMount", message: expect.stringContaining("not allowed") },
    ],
    [
      "does not start while the member's copies cannot be read",
      { host: [settings], unreadable: "west" },
      {},
      { refused: expect.stringContaining("cannot be read yet") },
    ],
    [
      "starts where only kinds that it does not need cannot be read",
      { host: [settings], west: [copyOf(settings)], denied: "secrets" },
      {},
      "prepared",
    ],
    [
      "does not start where a kind that it needs cannot be read",
      { host: [settings], west: [copyOf(settings)], denied: "configmaps" },
      {},
      { refused: expect.stringContaining("cannot be read yet") },
    ],
  ])("%s", async (_, clusters, parts, expected) => {
    const { preparation } = await waiting(clusters, parts);
    expect(preparation()).toEqual(expected);
  });

  test("does not start, with the reason, when the host's objects could not be read for a minute", async () => {
    const { clock, onHost, preparation } = await waiting({ host: [settings], west: [copyOf(settings)], mounting: 1 });
    onHost.breakWith("not allowed");
    await clock.advance(50_000);
    expect(preparation()).toBe("prepared");
    await clock.advance(40_000);
    expect(preparation()).toEqual({
      state: "missing",
      reason: "FailedMount",
      message: expect.stringContaining("configmaps of namespace team cannot be read on the host: "),
    });
  });

  test("does not start with a copy whose deletion may still happen", async () => {
    const { clock, writes, prepare } = await waiting({ host: [settings], west: [copyOf(settings)] });
    await clock.advance(15_000);
    expect(writes).toContain("delete settings");
    expect(await prepare()).toBe(false);
  });

  test.each<[string, string, KubeErrorCode, unknown]>([
    [
      "does not start, with the reason, where a copy is refused",
      "settings",
      "Forbidden",
      { refused: expect.stringContaining(": no") },
    ],
    [
      "does not start with a foreign object",
      "settings",
      "AlreadyExists",
      { refused: expect.stringContaining("not made by Legation") },
    ],
    ["starts with the member's own certificate authorities", "istio-ca-root-cert", "AlreadyExists", "prepared"],
  ])("%s", async (_, name, code, expected) => {
    const { uid, resourceVersion } = settings.metadata;
    const metadata = { name, namespace: "team", uid, resourceVersion };
    const creates = (): never => {
      throw kubeError(code, "no", { resource: "configmaps" });
    };
    const { preparation, prepare } = await waiting(
      { host: [{ ...settings, metadata }], west: code === "AlreadyExists" ? [{ ...settings, metadata }] : [], creates },
      { spec: { volumes: [{ name: "it", configMap: { name } }] } },
    );
    await prepare();
    expect(preparation()).toEqual(expected);
  });
});

describe("a member's copy", () => {
  test("is created for the pod that was given to the member, and not for an earlier one of its name", async () => {
    const { writes, prepare } = await waiting({ host: [settings] });
    expect(await prepare("earlier")).toBe(true);
    expect(writes).toEqual([]);
    expect(await prepare()).toBe(false);
    expect(writes).toEqual(["create settings"]);
  });

  test("is created where another kind cannot be read", async () => {
    const { writes, prepare } = await waiting({ host: [settings], denied: "secrets" });
    await prepare();
    expect(writes).toEqual(["create settings"]);
  });

  test("is retried at once when its source has changed since the refusal, and not otherwise", async () => {
    let answer: KubeError | undefined = kubeError("Forbidden", "too long", { resource: "configmaps" });
    const creates = (): void => {
      if (answer !== undefined) throw answer;
    };
    const { clock, writes, onHost, prepare, preparation } = await waiting({ host: [settings], creates });
    await prepare();
    expect(preparation()).toEqual({ refused: expect.stringContaining("too long") });
    await clock.advance(5_000);
    expect(writes).toEqual(["create settings"]);
    const correct = async (resourceVersion: string): Promise<void> => {
      onHost.change({ ...settings, metadata: { ...settings.metadata, resourceVersion } });
      await clock.advance(100);
    };
    await correct("2");
    expect(writes).toHaveLength(2);
    expect(preparation()).toEqual({ refused: expect.stringContaining("too long") });
    answer = undefined;
    await correct("3");
    expect(writes).toEqual(Array(3).fill("create settings"));
    expect(preparation()).toBe("unprepared");
  });

  test("follows its source while a pod there uses it", async () => {
    const { writes } = await waiting(
      { host: [settings], west: [copyOf(changed)] },
      { spec: { nodeName: "legation-west", volumes } },
    );
    expect(writes).toEqual(["patch settings"]);
  });

  test("is not changed for a delegate that only shows it", async () => {
    const { clock, writes } = await waiting({ host: [settings], west: [copyOf(changed)], mounting: 1 });
    await clock.advance(30_000);
    expect(writes).toEqual([]);
  });

  const given = { host: [settings], west: [copyOf(settings)] };
  test.each<[string, Clusters, PodParts, string[]]>([
    [
      "is deleted when its last pod has ended, however long that pod stays",
      given,
      { status: endedStatus(0) },
      ["delete settings"],
    ],
    ["stays while a delegate mounts it", { ...given, mounting: 1 }, { status: endedStatus(0) }, []],
    ["stays for a running pod", given, { status: { phase: "Running" } }, []],
  ])("%s", async (_, clusters, { status }, expected) => {
    const { clock, writes, put, proxy, prepare } = await waiting(clusters);
    expect(await prepare()).toBe(true);
    await put({
      ...proxy,
      spec: { containers: [], ...proxy.spec, nodeName: "legation-west" },
      ...(status && { status }),
    });
    await clock.advance(30_000);
    expect([...new Set(writes)]).toEqual(expected);
  });

  test("is deleted when its last pod ends that ran before", async () => {
    const { clock, writes, put, proxy, prepare } = await waiting(given);
    expect(await prepare()).toBe(true);
    const bound = { ...proxy, spec: { containers: [], ...proxy.spec, nodeName: "legation-west" } };
    await put({ ...bound, status: { phase: "Running" } });
    await clock.advance(30_000);
    expect(writes).toEqual([]);
    await put({ ...bound, status: endedStatus(0) });
    await clock.advance(30_000);
    expect([...new Set(writes)]).toEqual(["delete settings"]);
  });

  test.each(["host", "west"] as const)("stays before the pods of %s are known", async (unknownPods) => {
    const { clock, writes } = await waiting({ ...given, unknownPods }, { spec: { volumes: [] } });
    await clock.advance(30_000);
    expect(writes).toEqual([]);
  });

  test("is deleted when its last pod has ended before it got a node", async () => {
    const { clock, writes, put, proxy, prepare } = await waiting(given);
    expect(await prepare()).toBe(true);
    await put({ ...proxy, status: endedStatus(1) });
    await clock.advance(30_000);
    expect(writes).toContain("delete settings");
  });
});

describe("a member's own service account, which is used in place", () => {
  const account: Settings = { metadata: { name: "builder", namespace: "team", uid: "account", resourceVersion: "7" } };
  const own: Settings = { metadata: { ...account.metadata, uid: "own" } };

  async function usingIts() {
    const clock = new FakeClock();
    let there: readonly Settings[] = [own];
    let created = 0;
    const only = (items: readonly object[], plural: string) => (plural === serviceAccounts.plural ? items : []);
    const host = quietClient([], { list: listing((plural) => only([account], plural)) });
    const client = quietClient([], {
      // The member's watch shows copies alone.
      list: listing((plural, { labelSelector }) => (labelSelector === undefined ? only(there, plural) : [])),
      ...writing(() => {
        created += 1;
        const fields = { cluster: "west", verb: "create", resource: "serviceaccounts" } as const;
        if (there.length > 0) throw kubeError("AlreadyExists", "it exists", fields);
        return { metadata: { uid: "copy-uid", resourceVersion: "8" } };
      }),
    });
    const proxies = new Store<Pod>();
    const of = member("west", client, {
      delegates: delegates({ list: () => [], countUnfinished: () => 0, unfinished: () => [] }),
    });
    const controller = new DependencyController({
      family: FAMILIES.dependencies,
      host,
      ...surroundings([of], clock),
      proxies,
    });
    onTestFinished(() => controller.stop());
    controller.onMembers();
    const proxy = proxyPod({ metadata: { namespace: "team" }, spec: { serviceAccountName: "builder" } });
    await puttingInto(proxies, controller, clock)(proxy);
    proxies.synced = true;
    controller.onProxies(of);
    await clock.advance(10);
    const prepare = async (): Promise<boolean> => {
      const isThere = controller.prepare(objectKey(proxy.metadata), proxy.metadata.uid, "west");
      await clock.advance(10);
      return isThere;
    };
    return { clock, controller, proxy, prepare, created: () => created, goes: () => (there = []) };
  }

  test("is looked up again when the member reports it missing, and is then copied", async () => {
    const { controller, proxy, prepare, created, goes } = await usingIts();
    await prepare();
    expect([await prepare(), created()]).toEqual([true, 1]);
    goes();
    controller.onMissing(proxy, "west", "ServiceAccount");
    expect(await prepare()).toBe(false);
    expect(created()).toBe(2);
  });

  test("stays in use while the member reports nothing, or another account only", async () => {
    const { clock, controller, proxy, prepare, created } = await usingIts();
    await prepare();
    const other = { ...proxy, spec: { containers: [], serviceAccountName: "other" } };
    controller.onMissing(other, "west", "ServiceAccount");
    await clock.advance(60_000);
    expect([await prepare(), created()]).toEqual([true, 1]);
  });
});
