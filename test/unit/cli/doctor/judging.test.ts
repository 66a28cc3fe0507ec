import { describe, expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import type { KubeNode, Lease, Namespace, Stored } from "../../../../src/api/kubernetes.ts";
import { issueAuthority, issueServing } from "../../../../src/certificates/issue.ts";
import { authoritiesFinding, certificateFinding, tokenFinding } from "../../../../src/cli/doctor/certificates.ts";
import { between, clockFinding, clockOffset } from "../../../../src/cli/doctor/clock.ts";
import { leaseFinding } from "../../../../src/cli/doctor/controller.ts";
import { judgeType } from "../../../../src/cli/doctor/delegated-types.ts";
import { homeApiWay, refusedPods } from "../../../../src/cli/doctor/home-api.ts";
import { objectFindings, partFinding } from "../../../../src/cli/doctor/installed-objects.ts";
import { identityFindings, readyFinding, rightsFindings } from "../../../../src/cli/doctor/member.ts";
import { namespaceFindings } from "../../../../src/cli/doctor/namespaces.ts";
import { lackingRights, rightsOf, rightsText } from "../../../../src/cli/doctor/rights.ts";
import { findingsText } from "../../../../src/cli/doctor/text.ts";
import { hostVersion, installedVersions, memberVersion } from "../../../../src/cli/doctor/versions.ts";
import { staleNodeFindings } from "../../../../src/cli/doctor/virtual-nodes.ts";
import { trustFindings } from "../../../../src/cli/doctor/webhook.ts";
import { recordedSession } from "../session.ts";

const NOW = Date.parse("2026-11-27T12:00:00Z");
const DAY_MS = 24 * 60 * 60_000;
const ago = (days: number): { now: number; lifetimeMs: number } => ({
  now: NOW - days * DAY_MS,
  lifetimeMs: 90 * DAY_MS,
});
const stored = { uid: "u", resourceVersion: "1" };

describe("versions", () => {
  test.each([
    ["v1.29.9", "FAIL", "is older than 1.30"],
    ["v1.30.0", "OK", "no whole Jobs before 1.32; no overflow before 1.35"],
    ["v1.36.3", "OK", "Kubernetes v1.36.3"],
    ["v1.38.0-alpha.1", "WARN", "is newer than 1.37"],
    [undefined, "WARN", "of an unknown version"],
  ])("of the host: %s is %s", (version, state, what) => {
    expect(hostVersion(version)).toMatchObject({ state, what: expect.stringContaining(what) });
  });

  test.each([
    ["v1.31.2", "OK"],
    ["v1.27.1", "WARN"],
    ["v1.38.0", "WARN"],
  ])("of a member: %s is %s", (version, state) => {
    expect(memberVersion("west", version)).toMatchObject({ state });
  });

  test("of the parts are compared with the command's", () => {
    const parts = new Map([
      ["legation-webhook", "0.2.0"],
      ["legation-controller", "0.1.0"],
    ]);
    const repair = "helm upgrade legation CHART";
    expect(installedVersions("0.2.0", parts, repair)).toMatchObject([
      {
        state: "WARN",
        what: "legation-controller is version 0.1.0, and this command is 0.2.0",
        remedy: "run `helm upgrade legation CHART` of the newer version, and use that version here",
      },
    ]);
    const same = new Map([["legation-controller", "0.1.0"]]);
    expect(installedVersions("0.1.0", same, repair)).toMatchObject([{ state: "OK" }]);
  });
});

describe("certificates", () => {
  test("are good until two thirds of their life, then due, then expired", async () => {
    const authority = await issueAuthority("ca", ago(0));
    const of = async (days: number) => {
      const { cert } = await issueServing(authority, ["h"], ago(days));
      return certificateFinding("the certificate", cert, { now: NOW, remedy: "renew" });
    };
    expect(await of(10)).toMatchObject({ state: "OK" });
    expect(await of(70)).toMatchObject({ state: "WARN", remedy: "renew" });
    expect(await of(100)).toMatchObject({
      state: "FAIL",
      what: expect.stringMatching(/^the certificate expired \d+d ago/),
    });
    expect(certificateFinding("it", "no PEM", { now: NOW, remedy: "renew" })).toMatchObject({ state: "FAIL" });
  });

  test("of another authority fail", async () => {
    const [own, other] = [await issueAuthority("one", ago(0)), await issueAuthority("other", ago(0))];
    const { cert } = await issueServing(own, ["h"], ago(1));
    const options = { now: NOW, remedy: "renew" };
    expect(certificateFinding("it", cert, { ...options, authority: own.cert })).toMatchObject({ state: "OK" });
    expect(certificateFinding("it", cert, { ...options, authority: other.cert })).toMatchObject({ state: "FAIL" });
  });

  test("of a bundle count if one is valid", async () => {
    const [old, fresh] = [await issueAuthority("old", ago(200)), await issueAuthority("new", ago(1))];
    const options = { now: NOW, remedy: "join" };
    expect(authoritiesFinding("b", old.cert + fresh.cert, options)).toMatchObject({ state: "OK" });
    expect(authoritiesFinding("b", old.cert, options)).toMatchObject({ state: "FAIL" });
    const early = await issueAuthority("early", ago(-40));
    expect(authoritiesFinding("b", early.cert, options)).toMatchObject({
      state: "FAIL",
      what: expect.stringContaining("not valid yet"),
    });
    expect(authoritiesFinding("b", "", options)).toMatchObject({ state: "FAIL", what: "b holds no certificate" });
  });

  test.each([
    [10, "OK"],
    [25, "WARN"],
    [31, "FAIL"],
  ])("a token of 30 days is after %d days %s", (days, state) => {
    const issuedAt = NOW - days * DAY_MS;
    const claims = { issuedAt, expiresAt: issuedAt + 30 * DAY_MS };
    expect(tokenFinding("its token", claims, { now: NOW, remedy: "join" })).toMatchObject({ state });
  });
});

describe("delegated types", () => {
  const judged = (status: "True" | "False" | "Unknown", secondsAgo = 3_600) => {
    const condition = {
      type: "Ready",
      status,
      reason: "NotRead",
      message: "west: forbidden",
      lastTransitionTime: new Date(NOW - secondsAgo * 1_000).toISOString(),
    };
    const spec = { version: "v1", kind: "Widget", plural: "widgets" };
    const metadata = { name: "widgets.example.com", uid: "u", resourceVersion: "1" };
    return judgeType({ metadata, spec, status: { conditions: [condition] } }, NOW).map(
      ({ state, what }) => `${state} ${what}`,
    );
  };

  test("fail with the member that cannot read them, and are well only when all conditions are True", () => {
    expect(judged("False")).toEqual(["FAIL DelegatedType widgets.example.com: Ready is False: west: forbidden"]);
    expect(judged("Unknown")).toEqual(["WARN DelegatedType widgets.example.com: Ready is Unknown: west: forbidden"]);
    expect(judged("Unknown", 20)).toEqual(["OK DelegatedType widgets.example.com: its objects are followed"]);
    expect(judged("True")).toEqual(["OK DelegatedType widgets.example.com: its objects are followed"]);
  });
});

describe("clocks", () => {
  test("are compared as exactly as a Date header allows", () => {
    const at = Date.parse("Fri, 27 Nov 2026 12:00:00 GMT");
    expect(clockOffset("Fri, 27 Nov 2026 12:00:00 GMT", at, at + 200)).toEqual({ aheadMs: 400, uncertainMs: 600 });
    expect(clockOffset(undefined, at, at)).toBeUndefined();
  });

  test.each([
    [10_400, "OK"],
    [-30_000, "WARN"],
    [120_000, "FAIL"],
  ])("%d ms apart are %s", (aheadMs, state) => {
    expect(clockFinding("its clock", "ours", { aheadMs, uncertainMs: 500 })).toMatchObject({ state });
  });

  test("of a member and the host are compared by this machine's", () => {
    const offset = between({ aheadMs: 5_000, uncertainMs: 500 }, { aheadMs: -60_000, uncertainMs: 600 });
    expect(offset).toEqual({ aheadMs: 65_000, uncertainMs: 1_100 });
    expect(clockFinding("west: its clock", "the host's", offset).what).toContain("is 65 s ahead of the host's");
  });
});

describe("the webhook's caBundle", () => {
  const entry = (name: string, pem: string) => ({
    name,
    clientConfig: { url: "https://h/", caBundle: Buffer.from(pem).toString("base64") },
  });

  test("holds the webhook's own authority, in every entry", async () => {
    const [own, other] = [await issueAuthority("own", ago(0)), await issueAuthority("other", ago(0))];
    const options = { authority: own.cert, now: NOW, remedy: "restart", repair: "legation install" };
    const judge = (...pems: string[]) =>
      trustFindings(
        "it",
        pems.map((pem, index) => entry(`e${index}`, pem)),
        options,
      );
    expect(judge(own.cert + other.cert, `${own.cert}\n`)).toMatchObject([{ state: "OK" }]);
    expect(judge(own.cert, other.cert)).toMatchObject([
      { state: "FAIL", what: expect.stringContaining("the caBundle of e1 does not have"), remedy: "restart" },
    ]);
    expect(judge(own.cert, "")).toMatchObject([{ state: "FAIL", what: expect.stringContaining("no caBundle in e1") }]);
    expect(judge()).toMatchObject([{ state: "FAIL", remedy: "legation install" }]);
  });
});

describe("the controllers' lease", () => {
  const lease = (holderIdentity: string, renewTime: string): Stored<Lease> => ({
    metadata: { name: "l", ...stored },
    spec: { holderIdentity, leaseDurationSeconds: 15, renewTime },
  });

  test.each([
    ["none", undefined, "FAIL", "none has ever led"],
    ["a released one", lease("", "2026-11-27T11:59:00Z"), "FAIL", "no controller leads for 60s: the last one stopped"],
    ["an old one", lease("a", "2026-11-27T11:50:00Z"), "FAIL", "a has not renewed its lease for 10m"],
    ["a fresh one", lease("a", "2026-11-27T11:59:55Z"), "OK", "a controller leads (a), and renewed its lease 5s ago"],
  ])("%s", (_, given, state, what) => {
    const found = leaseFinding(given, { now: NOW, inCluster: false });
    expect(found).toMatchObject({ state, what: expect.stringContaining(what) });
  });

  test("is mended in the cluster by kubectl", () => {
    expect(leaseFinding(undefined, { now: NOW, inCluster: true }).remedy).toContain("rollout restart deployment");
  });
});

describe("rights", () => {
  const wanted = rightsOf([
    { apiGroups: [""], resources: ["pods", "pods/log"], verbs: ["get"] },
    { apiGroups: ["rbac"], resources: ["clusterroles"], resourceNames: ["own"], verbs: ["delete"] },
    { nonResourceURLs: ["/readyz"], verbs: ["get"] },
  ]);
  const rule = (verbs: string[], apiGroups: string[], resources: string[], resourceNames: string[] = []) => ({
    ...{ verbs, apiGroups, resources, resourceNames },
  });

  test("are held by equal rules and by wildcards", () => {
    const nonResourceRules = [{ verbs: ["*"], nonResourceURLs: ["/ready*"] }];
    const exact = [rule(["get"], [""], ["pods", "pods/log"]), rule(["delete"], ["rbac"], ["clusterroles"], ["own"])];
    expect(lackingRights(wanted, { resourceRules: exact, nonResourceRules })).toEqual([]);
    expect(lackingRights(wanted, { resourceRules: [rule(["*"], ["*"], ["*"])], nonResourceRules })).toEqual([]);
    const sub = [rule(["get"], [""], ["pods", "*/log"]), rule(["delete"], ["rbac"], ["*"])];
    expect(lackingRights(wanted, { resourceRules: sub, nonResourceRules })).toEqual([]);
  });

  test("that rules for one name or another verb give are lacking", () => {
    const some = [rule(["get"], [""], ["pods"], ["one"]), rule(["list"], ["rbac"], ["clusterroles"])];
    const lacking = lackingRights(wanted, { resourceRules: some, nonResourceRules: null });
    expect(rightsText(lacking)).toBe("pods: get; pods/log: get; clusterroles.rbac: delete; /readyz: get");
    expect(rightsFindings("west", lacking)).toMatchObject([
      { state: "FAIL", remedy: "legation join west --member-kubeconfig FILE" },
    ]);
    expect(rightsFindings("west", [])).toMatchObject([{ state: "OK" }]);
  });
});

describe("namespaces", () => {
  const namespace = (
    name: string,
    labels: Record<string, string>,
    annotations: Record<string, string> = {},
  ): Stored<Namespace> => ({ metadata: { name, ...stored, labels, annotations } });
  const judge = (...all: Stored<Namespace>[]) => namespaceFindings(all, new Set(["west", "east"]));

  test("opted in are counted", () => {
    expect(judge(namespace("shop", { "legation.dev/delegation": "all" }), namespace("x", {}))).toEqual([
      { state: "OK", what: "1 namespace opted in: shop" },
    ]);
    expect(judge()).toMatchObject([{ state: "WARN", remedy: expect.stringContaining("kubectl label namespace NAME") }]);
  });

  test.each([
    [
      "a misspelled label",
      namespace("a", { "legation.dev/delegation": "anotated" }),
      "FAIL",
      "kubectl label --overwrite namespace a legation.dev/delegation=annotated",
    ],
    [
      "an annotation without the label",
      namespace("a", {}, { "legation.dev/clusters": "west" }),
      "WARN",
      expect.stringContaining("kubectl label namespace a legation.dev/delegation=annotated"),
    ],
    [
      "an annotation that does not parse",
      namespace("a", { "legation.dev/delegation": "all" }, { "legation.dev/clustrs": "west" }),
      "WARN",
      "kubectl annotate namespace a legation.dev/clustrs-",
    ],
    [
      "a member that is not there",
      namespace("a", { "legation.dev/delegation": "all" }, { "legation.dev/clusters": "wst" }),
      "WARN",
      "kubectl annotate --overwrite namespace a legation.dev/clusters=NAMES",
    ],
  ])("with %s are found", (_, given, state, remedy) => {
    expect(judge(given)[1]).toMatchObject({ state, remedy });
  });

  test("that name a misspelled member are told the right one", () => {
    const given = namespace("a", { "legation.dev/delegation": "all" }, { "legation.dev/clusters": "wst" });
    expect(judge(given)[1]?.what).toContain("(did you mean west?)");
  });
});

describe("installed objects", () => {
  test("that lack or differ fail, and are named", () => {
    const found = objectFindings([
      { kind: "ClusterRole", object: "ClusterRole legation-controller", is: "different" },
      { kind: "CustomResourceDefinition", object: "CustomResourceDefinition clusters", is: "same" },
      { kind: "ValidatingAdmissionPolicyBinding", object: "ValidatingAdmissionPolicyBinding p", is: "missing" },
      { kind: "ConfigMap", object: "ConfigMap c", is: "different" },
      { kind: "Service", object: "Service s", is: "forbidden" },
      { kind: "MutatingWebhookConfiguration", object: "MutatingWebhookConfiguration m", is: "unknown", problem: "no" },
    ]);
    expect(found.map(({ state, what }) => `${state} ${what}`)).toEqual([
      "OK CustomResourceDefinitions: 1 as this version installs them",
      "FAIL admission policies and their bindings: missing: ValidatingAdmissionPolicyBinding p",
      "FAIL rights of webhook and controller: not as this version installs them: ClusterRole legation-controller",
      "FAIL MutatingWebhookConfiguration m: no",
      "WARN other objects: not as this version installs them: ConfigMap c",
      "SKIP other objects: 1 object not compared: you may not dry-run their change",
    ]);
  });

  test.each([
    [0, "FAIL"],
    [1, "WARN"],
    [2, "OK"],
  ])("with %d of 2 replicas are %s", (ready, state) => {
    const part = { name: "legation-webhook", namespace: "legation-system", version: "1", replicas: 2, ready };
    expect(partFinding(part)).toMatchObject({ state });
  });
});

describe("a member", () => {
  const cluster = (status: Cluster["status"], fields: Partial<Cluster["spec"]> = {}): Stored<Cluster> => ({
    metadata: { name: "west", ...stored, annotations: { "legation.dev/member-uid": "one" } },
    spec: { credentialsSecret: { name: "member-west" }, ...fields },
    ...(status === undefined ? {} : { status }),
  });
  const ready = (status: "True" | "False") => ({
    conditions: [{ type: "Ready", status, reason: "R", message: "why", lastTransitionTime: "2026-11-27T11:00:00Z" }],
  });
  const node = (unschedulable: boolean): Stored<KubeNode> => ({
    metadata: { name: "legation-west", ...stored, labels: { "legation.dev/cluster": "west" } },
    spec: { unschedulable },
    status: { conditions: [{ type: "Ready", status: "True" }] },
  });

  test.each([
    ["ready", cluster(ready("True")), node(false), "OK", "west is ready"],
    ["cordoned", cluster(ready("True")), node(true), "WARN", "cordoned"],
    ["not ready", cluster(ready("False")), node(false), "FAIL", "west is not ready: why"],
    ["unheard of", cluster(undefined), undefined, "FAIL", "no controller has reported on it"],
  ])("that is %s", (_, given, of, state, what) => {
    expect(readyFinding(given, of)).toMatchObject({ state, what: expect.stringContaining(what) });
  });

  test("is told from another cluster by its uid", () => {
    expect(identityFindings(cluster(undefined), "one")).toMatchObject([{ state: "OK" }]);
    expect(identityFindings(cluster(undefined), "other")).toMatchObject([
      { state: "FAIL", remedy: expect.stringContaining("legation.dev/member-uid=other") },
    ]);
    expect(identityFindings(cluster(undefined), undefined)).toEqual([]);
  });

  test("leaves no node behind", () => {
    expect(staleNodeFindings([node(false)], new Set(["west"]))).toEqual([]);
    expect(staleNodeFindings([node(false)], new Set())).toMatchObject([{ remedy: "legation unjoin west" }]);
  });

  test("shows where its pods find the host", () => {
    const server = "https://10.0.0.1:6443";
    expect(homeApiWay(cluster(undefined, { homeAPI: { server } }), undefined)).toMatchObject({ state: "OK" });
    const broken = { server, certificateAuthorityData: "bm8=" };
    expect(homeApiWay(cluster(undefined, { homeAPI: broken }), undefined)).toMatchObject({ state: "FAIL" });
    expect(homeApiWay(cluster(undefined, { agent: { homeAPI: true } }), undefined)).toMatchObject({ state: "WARN" });
    expect(homeApiWay(cluster(undefined), server)).toMatchObject({ state: "OK" });
    expect(homeApiWay(cluster(undefined), undefined)).toMatchObject({ state: "SKIP" });
  });

  test("is warned of when pods there get no token", () => {
    const event = { reason: "NoToken", involvedObject: { namespace: "shop", name: "web-0" }, message: "quota" };
    expect(refusedPods([event])).toMatchObject([{ state: "WARN", what: expect.stringContaining("shop/web-0") }]);
    expect(refusedPods([])).toEqual([]);
  });

  test("notes pods there that have no way to the host, and when that matters", () => {
    const inNamespace = (namespace: string) => ({
      reason: "NoHomeAPI",
      involvedObject: { namespace, name: "web-0" },
      message: "no address is known",
    });
    const found = [inNamespace("shop"), inNamespace("pipelines"), inNamespace("shop")];
    expect(refusedPods(found)).toEqual([
      {
        state: "INFO",
        what: expect.stringMatching(
          /^pods of pipelines, shop .*only programs that call it need.*: no address is known$/,
        ),
        remedy: expect.stringMatching(/^none is needed where no program calls it/),
      },
    ]);
  });
});

describe("the text", () => {
  const groups = [
    { name: "Host", findings: [{ state: "OK", what: "fine" } as const] },
    { name: "Empty", findings: [] },
    {
      name: "Member west",
      findings: [{ state: "FAIL", what: "broken\u001b[2J:\n two lines", remedy: "legation join" } as const],
    },
  ];

  test("has one line for each finding, without control characters", () => {
    expect(findingsText(groups, recordedSession().terminal)).toBe(
      "Host\n  OK    fine\n\nMember west\n  FAIL  broken: two lines. Fix: legation join\n\n1 OK, 1 failure",
    );
  });

  test("counts notes apart from warnings", () => {
    const noted = [{ name: "home API", findings: [{ state: "INFO", what: "no way", remedy: "leave it" } as const] }];
    expect(findingsText(noted, recordedSession().terminal)).toBe(
      "home API\n  INFO  no way. Fix: leave it\n\n0 OK, 1 note",
    );
  });

  test("is coloured on a terminal, unless NO_COLOR is set", () => {
    expect(findingsText(groups, recordedSession({ isTTY: true }).terminal)).toContain("\u001b[31mFAIL");
    const plain = recordedSession({ isTTY: true, env: { NO_COLOR: "1" } });
    expect(findingsText(groups, plain.terminal)).not.toContain("\u001b");
  });
});
