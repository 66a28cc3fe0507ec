import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { jsonEqual } from "../../../src/api/json.ts";
import { LEADERLESS_ANNOTATION } from "../../../src/api/keys.ts";
import type { KubeObject, Lease, ObjectMeta, Pod, Stored } from "../../../src/api/kubernetes.ts";
import { issueAuthority } from "../../../src/certificates/issue.ts";
import { parseManifests } from "../../../src/cli/shared/manifests.ts";
import { wantedMetadata } from "../../../src/copies/copy-metadata.ts";
import { DEPENDENCIES } from "../../../src/copies/dependencies.ts";
import { type CopiedKind, contentText, driftOf, toCopy } from "../../../src/copies/kind.ts";
import { SERVICES } from "../../../src/copies/services.ts";
import { configMaps } from "../../../src/kube/resources.ts";
import type { HostIdentity } from "../../../src/pods/delegate.ts";
import type { ApiAccess } from "../../../src/pods/home-api.ts";
import {
  addLeaderlessInterval,
  type Interval,
  parseLeaderlessIntervals,
} from "../../../src/runtime/leaderless-intervals.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { type PodParts, pod, runningStatus } from "../../support/builders/pod.ts";
import { ROOT } from "../../support/legation/cli.ts";
import { lastRelease, moduleOf } from "../../support/releases/last-release.ts";
import { covers, grantedRights } from "../../support/rights/granted.ts";
import { apply, request } from "../webhook/reviews.ts";

/** The functions by which a version writes and reads. One whose arguments have changed is called in both forms here. */
interface Version {
  readonly keys: typeof import("../../../src/api/keys.ts");
  readonly proxies: typeof import("../../../src/pods/proxy.ts");
  readonly delegates: typeof import("../../../src/pods/delegate.ts");
  readonly forward: typeof import("../../../src/pods/forward.ts");
  readonly feedback: typeof import("../../../src/pods/feedback.ts");
  readonly homeApi: typeof import("../../../src/pods/home-api.ts");
  readonly copies: typeof import("../../../src/copies/copy-metadata.ts");
  readonly copiers: Copiers;
  readonly names: Pick<typeof import("../../../src/cli/member/access.ts"), "credentialsSecretName" | "hostAccountName">;
  readonly leaderless: LeaderlessRecord;
  readonly admission: typeof import("../../../webhook/mutate-pod.ts");
}

/** A version's record of the intervals without a leader. */
interface LeaderlessRecord {
  readonly annotation: string;
  add(lease: Stored<Lease>, now: number): string | undefined;
  parse(annotation: string | undefined): readonly Interval[];
}

const release = lastRelease();
const unled = await moduleOf<{
  readonly UNLED_ANNOTATION: string;
  readonly noteUnled: LeaderlessRecord["add"];
  readonly unledIn: LeaderlessRecord["parse"];
}>(release, "src/runtime/unled.js");

/** The copies that a version makes, and the changes it would make to one. */
interface Copiers {
  toCopy(kind: "ConfigMap" | "Service", source: Stored<KubeObject>): KubeObject;
  isLike(kind: "ConfigMap" | "Service", copy: Stored<KubeObject>, source: Stored<KubeObject>): boolean;
  wantedMetadata(copy: Stored<KubeObject>, source: Stored<KubeObject>): Pick<ObjectMeta, "annotations"> | undefined;
}

/** The modules of the last release that made copies. */
interface ReleasedCopies {
  toCopy(kind: string, source: object, host: HostIdentity): KubeObject;
  contentOf(kind: string, object: object): object;
  wantedMetadata(copy: object, source: object, host: HostIdentity): ObjectMeta | undefined;
}
interface ReleasedServices {
  toServiceCopy(kind: string, source: object, host: HostIdentity): KubeObject;
  isLike(kind: string, copy: object, source: object, host: HostIdentity): boolean;
}

const HOST: HostIdentity = { id: "0c1d5a1e-host", name: "berlin" };

async function releasedCopiers(): Promise<Copiers> {
  const others: ReleasedCopies = await moduleOf(release, "src/copies/dependencies.js", "src/pods/dependencies-copy.js");
  const services: ReleasedServices = await moduleOf(release, "src/copies/services.js", "src/pods/services.js");
  return {
    toCopy: (kind, source) =>
      kind === "Service" ? services.toServiceCopy(kind, source, HOST) : others.toCopy(kind, source, HOST),
    isLike: (kind, copy, source) =>
      kind === "Service"
        ? services.isLike(kind, copy, source, HOST)
        : jsonEqual(others.contentOf(kind, copy), others.contentOf(kind, source)),
    wantedMetadata: (copy, source) => others.wantedMetadata(copy, source, HOST),
  };
}

const KINDS = { ConfigMap: DEPENDENCIES.ConfigMap, Service: SERVICES.Service };
const currentCopiers: Copiers = {
  toCopy: (kind, source) => toCopy<KubeObject>(KINDS[kind], source, HOST),
  isLike: (kind, copy, source) => {
    const record: CopiedKind<KubeObject> = KINDS[kind];
    const sameContent = contentText(record, copy) === contentText(record, toCopy(record, source, HOST));
    return driftOf(record, copy, { source, host: HOST, sameContent }) === "none";
  },
  wantedMetadata: (copy, source) => wantedMetadata(copy, { source, host: HOST, type: configMaps }),
};
const released: Version = {
  keys: await moduleOf(release, "src/api/keys.js"),
  proxies: await moduleOf(release, "src/pods/proxy.js"),
  delegates: await moduleOf(release, "src/pods/delegate.js"),
  forward: await moduleOf(release, "src/pods/forward.js"),
  feedback: await moduleOf(release, "src/pods/feedback.js"),
  homeApi: await moduleOf(release, "src/pods/home-api.js"),
  copies: await moduleOf(release, "src/copies/copy.js", "src/pods/dependencies-copy.js"),
  copiers: await releasedCopiers(),
  names: await moduleOf(release, "src/cli/member/names.js"),
  leaderless: {
    annotation: unled.UNLED_ANNOTATION,
    add: unled.noteUnled,
    parse: unled.unledIn,
  },
  admission: await moduleOf(release, "webhook/mutate-pod.js"),
};
const current: Version = {
  keys: await import("../../../src/api/keys.ts"),
  proxies: await import("../../../src/pods/proxy.ts"),
  delegates: await import("../../../src/pods/delegate.ts"),
  forward: await import("../../../src/pods/forward.ts"),
  feedback: await import("../../../src/pods/feedback.ts"),
  homeApi: await import("../../../src/pods/home-api.ts"),
  copies: await import("../../../src/copies/copy-metadata.ts"),
  copiers: currentCopiers,
  names: await import("../../../src/cli/member/access.ts"),
  leaderless: {
    annotation: LEADERLESS_ANNOTATION,
    add: (lease, now) => addLeaderlessInterval(lease, undefined, now),
    parse: parseLeaderlessIntervals,
  },
  admission: await import("../../../webhook/mutate-pod.ts"),
};

const ACCESS: ApiAccess = { mode: "host", address: { host: "192.0.2.1", port: "6443" } };

const asks = { "legation.dev/delegate": "true" };
const container = { name: "main", image: "busybox", resources: { requests: { cpu: "1" }, limits: { cpu: "2" } } };
const token = { serviceAccountToken: { path: "token", expirationSeconds: 3600 } };
/** Authors' pods that differ in all that admission, delegates and forwarding look at. */
const PODS: readonly [string, PodParts][] = [
  ["a plain pod", { metadata: { annotations: asks } }],
  [
    "a pod with labels, annotations and a scheduler of its own",
    {
      metadata: { labels: { app: "web" }, annotations: { ...asks, note: "x", "legation.dev/api": "member" } },
      spec: { schedulerName: "volcano" },
    },
  ],
  [
    "a pod with resources, tolerations, a deadline and init containers",
    {
      metadata: { annotations: asks },
      spec: {
        containers: [container],
        initContainers: [{ name: "first", image: "busybox:1" }],
        tolerations: [{ key: "gpu", operator: "Exists" }],
        activeDeadlineSeconds: 600,
      },
    },
  ],
  ["a pod that stays with its member", { metadata: { annotations: { ...asks, "legation.dev/failover": "never" } } }],
  ["a pod of a workload", { metadata: { annotations: asks, generateName: "web-" } }],
  [
    "a pod with a token",
    {
      metadata: { annotations: asks },
      spec: { containers: [container], volumes: [{ name: "api", projected: { sources: [token] } }] },
    },
  ],
];

/** Returns the proxy from this version's webhook, as the API server stores it. */
function admitted({ admission }: Version, parts: PodParts): Stored<Pod> {
  const before = pod(parts);
  return apply(before, admission.mutatePod(request({ object: before }), "annotated"));
}

/** Returns the delegate that this version makes of a proxy, as it runs in the member. */
function running({ delegates }: Version, proxy: Stored<Pod>): Stored<Pod> {
  const { metadata, spec } = delegates.toDelegate(proxy, HOST, ACCESS);
  return pod({ name: "web-0", uid: "delegate-1", metadata: metadata ?? {}, spec: spec ?? {}, status: runningStatus() });
}

/** Leaves out the kind in the owner annotation for the last release, which puts back its own form. */
function asReadBy(reader: Version, copy: Stored<KubeObject>): Stored<KubeObject> {
  const owner = current.delegates.ownerOf(copy);
  if (reader === current || owner === undefined) return copy;
  const { kind: _, ...rest } = owner;
  const annotations = { ...copy.metadata.annotations, [current.keys.OWNER_ANNOTATION]: JSON.stringify(rest) };
  return { ...copy, metadata: { ...copy.metadata, annotations } };
}

test("keeps the meaning of each key that the last release writes on objects", () => {
  const before = Object.entries(released.keys).filter(([, value]) => typeof value === "string");
  const now = new Map<string, unknown>(Object.entries(current.keys));
  expect(before.length).toBeGreaterThan(30);
  expect(before.filter(([name, value]) => now.get(name) !== value)).toEqual([]);
  expect(current.leaderless.annotation).toBe(released.leaderless.annotation);
});

test("keeps the names by which objects are found", () => {
  const named = ({ keys, names, homeApi }: Version): string[] => [
    keys.virtualNodeName("west"),
    names.hostAccountName(HOST.id),
    names.credentialsSecretName("west"),
    homeApi.apiSecretName("uid-1"),
  ];
  expect(named(current)).toEqual(named(released));
});

describe.each([
  ["the last release", released, "this version", current],
  ["this version", current, "the last release", released],
] as const)("the objects that %s leaves behind", (_writes, writer, _reads, reader) => {
  describe.each(PODS)("%s", (_case, parts) => {
    test("contain a proxy for the other version, which changes nothing about it", () => {
      const proxy = admitted(writer, parts);
      expect(reader.proxies.isProxy(proxy)).toBe(true);
      expect(apply(proxy, reader.admission.mutatePod(request({ object: proxy }), "annotated"))).toEqual(proxy);
    });

    test("contain a delegate that the other version recognises, and need not change", () => {
      const proxy = admitted(writer, parts);
      const delegate = running(writer, proxy);
      const { namespace, name, uid } = proxy.metadata;
      expect(reader.delegates.madeByHost(delegate, HOST.id)).toBe(true);
      expect(reader.delegates.ownerOf(delegate)).toEqual({ cluster: HOST.name, namespace, name, uid });
      expect(reader.forward.forwardPatches(proxy, delegate)).toEqual([]);
      expect(reader.forward.specFollows(proxy, delegate)).toBe(true);
    });

    test("contain a delegate that follows when the other version forwards a change", () => {
      const proxy = admitted(writer, parts);
      const delegate = running(writer, proxy);
      const labels = { ...proxy.metadata.labels, later: "yes" };
      const [patch] = reader.forward.forwardPatches({ ...proxy, metadata: { ...proxy.metadata, labels } }, delegate);
      expect(patch?.body.metadata.labels).toEqual({ later: "yes" });
    });

    test("contain a status that the other version would write as well", () => {
      const proxy = admitted(writer, parts);
      const delegate = running(writer, proxy);
      const status = writer.feedback.statusFrom(proxy, delegate) ?? {};
      const shown = { ...proxy, status };
      const wanted = reader.feedback.statusFrom(shown, delegate) ?? {};
      expect(reader.feedback.statusPatch(shown, wanted)).toBeUndefined();
    });
  });

  test("contain copies for pods that the other version need not change", () => {
    const metadata = { namespace: "team", name: "settings", uid: "uid-2", resourceVersion: "7", labels: { a: "b" } };
    const source = { apiVersion: "v1", kind: "ConfigMap", metadata, data: { color: "blue" } };
    const copy = writer.copiers.toCopy("ConfigMap", source);
    const there = { ...copy, metadata: { ...metadata, ...copy.metadata, uid: "uid-3" } };
    expect(reader.copies.isCopy(there, HOST.id, configMaps)).toBe(true);
    expect(reader.copies.standsFor(there, source)).toBe(true);
    const seen = asReadBy(reader, there);
    expect(reader.copiers.wantedMetadata(seen, source)).toBeUndefined();
    expect(reader.copiers.isLike("ConfigMap", seen, source)).toBe(true);
  });

  test("contain copies of Services that the other version need not change, once marked against mirrored slices", () => {
    const labels = { "endpointslice.kubernetes.io/skip-mirror": "true" };
    const metadata = { namespace: "team", name: "web", uid: "uid-2", resourceVersion: "7", labels };
    const spec = { selector: { app: "web" }, ports: [{ port: 80 }], type: "ClusterIP", clusterIP: "10.0.0.1" };
    const source = { apiVersion: "v1", kind: "Service", metadata, spec };
    const copy = writer.copiers.toCopy("Service", source);
    const there = { ...copy, metadata: { ...metadata, ...copy.metadata, uid: "uid-3" } };
    expect(reader.copiers.isLike("Service", asReadBy(reader, there), source)).toBe(true);
  });

  test("contain intervals without a leader that the other version reads", () => {
    const lease = {
      metadata: { namespace: "legation-system", name: "legation-controller", uid: "uid-4", resourceVersion: "9" },
      spec: { leaseDurationSeconds: 15, renewTime: "2026-01-01T00:00:00.000000Z" },
    };
    const now = Date.parse("2026-01-01T01:00:00Z");
    const noted = writer.leaderless.add(lease, now);
    expect(reader.leaderless.parse(noted)).toEqual([[Date.parse("2026-01-01T00:01:15Z"), now]]);
  });
});

test("keeps the rights of all accounts: processes of the last release run on with what `legation install` grants", async () => {
  const [before, now] = await Promise.all([grantedRights(join(release.folder, "manifests")), grantedRights()]);
  expect(before.length).toBeGreaterThan(50);
  expect(before.filter((right) => !now.some((granted) => covers(granted, right)))).toEqual([]);
});

describe("the webhook of each version", () => {
  type Server = typeof import("../../../webhook/server.ts");
  const FILE = "webhook-configuration.yaml";
  const entry = z.object({
    clientConfig: z.object({ service: z.object({ path: z.string() }) }),
    failurePolicy: z.enum(["Fail", "Ignore"]),
  });
  const configuration = z.object({ webhooks: z.array(entry) });
  // A call that may fail is repeated once, at one of these paths: see the decision on the admission webhook.
  const paths = async (folder: string): Promise<string[]> => {
    const manifests = parseManifests(await readFile(join(folder, "manifests", FILE), "utf8"), FILE);
    const entries = manifests.flatMap((manifest) => configuration.parse(manifest).webhooks);
    return entries
      .filter(({ failurePolicy }) => failurePolicy === "Fail")
      .map(({ clientConfig }) => clientConfig.service.path);
  };

  // The configuration is applied before the first webhook is replaced, in both directions: a path that only the new ones
  // serve must wait for the release after the one that serves it first.
  test.each<[string, () => Promise<Server>, string]>([
    ["of this version, from webhooks of the last release", () => moduleOf(release, "webhook/server.js"), ROOT],
    ["of the last release, from webhooks of this version", () => import("../../../webhook/server.ts"), release.folder],
  ])("answers at every path of the webhook configuration: %s", async (_case, load, folder) => {
    const certificate = await issueAuthority("test", { now: Date.now(), lifetimeMs: 3_600_000 });
    const log = createLogger({ level: "silent" });
    const server = (await load()).createWebhookServer({ certificate, notReady: () => undefined, log });
    const asked = await paths(folder);
    expect(asked.length).toBeGreaterThan(3);
    expect(asked.filter((url) => !server.hasRoute({ method: "POST", url }))).toEqual([]);
    await server.close();
  });
});
