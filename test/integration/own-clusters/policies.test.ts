import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import type { Cluster } from "../../support/clusters/types.ts";
import { afterFile } from "../../support/harness/after-file.ts";
import { MANIFESTS, startInstalledCluster } from "../../support/harness/installed.ts";
import { kubectl } from "../../support/harness/kubectl.ts";
import { freshNamespace, type NamespaceOptions } from "../../support/harness/namespace.ts";
import { eventually } from "../../support/harness/wait.ts";

const CONTROLLER = "system:serviceaccount:legation-system:legation-controller";
const SCHEDULER = "system:kube-scheduler";
const IMAGE = "registry.example/never-pulled:1";

let host: Cluster;
let plain: string;
let annotated: string;
let all: string;

beforeAll(async () => {
  host = await startInstalledCluster("policies", afterFile);
  // Only the policies stand between an author and the API server's store.
  await kubectl(host, ["delete", "mutatingwebhookconfiguration/legation", "mutatingwebhookconfiguration/zz-legation"]);
  const namespace = (mode?: string): Promise<string> => {
    const labels = mode === undefined ? {} : { "legation.dev/delegation": mode };
    return freshNamespace(host, { labels, onFinished: afterFile } satisfies NamespaceOptions);
  };
  [plain, annotated, all] = await Promise.all([namespace(), namespace("annotated"), namespace("all")]);
});

interface PodParts {
  readonly metadata?: object;
  readonly spec?: object;
}

function pod(name: string, { metadata = {}, spec = {} }: PodParts = {}): object {
  const containers = [{ name: "main", image: IMAGE, resources: { requests: { cpu: "10m" } } }];
  return { apiVersion: "v1", kind: "Pod", metadata: { name, ...metadata }, spec: { containers, ...spec } };
}

const LABEL = { labels: { "legation.dev/proxy": "true" } };
const FINALIZER = { finalizers: ["legation.dev/delegate"] };
const SCHEDULER_NAME = { schedulerName: "legation" };
const PROXY: PodParts = { metadata: { ...LABEL, ...FINALIZER }, spec: SCHEDULER_NAME };
const annotations = (written: Readonly<Record<string, string>>): PodParts => ({ metadata: { annotations: written } });
const ownedBy = (kind: string): PodParts => ({
  metadata: {
    ownerReferences: [{ apiVersion: "apps/v1", kind, name: "owner", uid: "uid-of-owner", controller: true }],
  },
});

function run(args: readonly string[], { as, input }: { as?: string; input?: object } = {}): Promise<string> {
  const identity = as === undefined ? [] : [`--as=${as}`];
  return kubectl(host, [...args, ...identity], input === undefined ? {} : { input: JSON.stringify(input) });
}

// A request that no policy refuses.
const PASSES = undefined;

/** Expects that a request is admitted, or refused with a message that matches. */
async function expectVerdict(request: Promise<string>, refused: RegExp | undefined): Promise<void> {
  if (refused === undefined) await expect(request).resolves.toBeDefined();
  else await expect(request).rejects.toThrow(refused);
}

test("the API server checks all expressions of the policies, and doubts none", async () => {
  await eventually(async () => {
    const { items } = JSON.parse(await kubectl(host, ["get", "validatingadmissionpolicies", "-o", "json"]));
    const checked: { readonly metadata: { name: string }; readonly status?: { readonly typeChecking?: object } }[] =
      items;
    expect(checked.length).toBeGreaterThan(0);
    const untyped = checked.filter(({ status }) => status?.typeChecking === undefined);
    if (untyped.length > 0) return undefined;
    expect(checked.map(({ status }) => status?.typeChecking)).toEqual(checked.map(() => ({})));
    return true;
  });
});

describe("a pod that is created while no webhook answers", () => {
  const place = { plain: () => plain, annotated: () => annotated, all: () => all };
  const WRITTEN = /is written by Legation; remove it and write the annotation legation.dev\/delegate: "true"/;
  const CONSTRAINTS = "multicluster.admiralty.io/proxy-pod-scheduling-constraints";
  const NOT_MADE = /Legation's webhook has not made it a proxy/;
  type Case = readonly [string, keyof typeof place, PodParts, RegExp | undefined];

  test.each<Case>([
    ["without anything of Legation's", "plain", {}, PASSES],
    ["without anything of Legation's", "annotated", {}, PASSES],
    ["with all three marks", "annotated", PROXY, PASSES],
    ["with all three marks", "all", PROXY, PASSES],
    ["with all three marks", "plain", PROXY, /namespace test-\w+ is not opted in.*label it legation.dev\/delegation/],
    ["with the label alone", "annotated", { metadata: LABEL }, WRITTEN],
    ["with the scheduler name alone", "plain", { spec: SCHEDULER_NAME }, WRITTEN],
    ["with the finalizer alone", "plain", { metadata: FINALIZER }, WRITTEN],
    ["without the finalizer", "annotated", { metadata: LABEL, spec: SCHEDULER_NAME }, WRITTEN],
    [
      "with another value of the label",
      "annotated",
      { metadata: { ...FINALIZER, labels: { "legation.dev/proxy": "yes" } }, spec: SCHEDULER_NAME },
      /has no other value than "true"/,
    ],
    [
      "with all marks and a node of the host",
      "annotated",
      { ...PROXY, spec: { ...SCHEDULER_NAME, nodeName: "policies-node-1" } },
      /spec.nodeName: policies-node-1: a delegated pod gets its node from Legation/,
    ],
    [
      "with the name of a virtual node",
      "plain",
      { spec: { nodeName: "legation-west" } },
      /legation-west is a virtual node.*write the annotation legation.dev\/clusters: west/,
    ],
    [
      "with the decision's cluster",
      "annotated",
      annotations({ "legation.dev/cluster": "west" }),
      /legation.dev\/cluster is/,
    ],
    [
      "with a delegate's uid",
      "annotated",
      annotations({ "legation.dev/delegate-uid": "u" }),
      /delegate-uid is written by/,
    ],
    ["with a member's node", "plain", annotations({ "legation.dev/member-node": "n" }), /member-node is written by/],
    ["that asks for delegation", "annotated", annotations({ "legation.dev/delegate": "true" }), NOT_MADE],
    ["that names clusters", "annotated", annotations({ "legation.dev/clusters": "west" }), NOT_MADE],
    ["that selects clusters", "annotated", annotations({ "legation.dev/cluster-selector": "gpu" }), NOT_MADE],
    [
      "with Admiralty's cluster selector",
      "annotated",
      annotations({ [CONSTRAINTS]: '{"nodeSelector": {"region": "eu"}}' }),
      NOT_MADE,
    ],
    [
      "with Admiralty's cluster selector, as YAML",
      "annotated",
      annotations({ [CONSTRAINTS]: "nodeSelector:\n  region: eu\n" }),
      NOT_MADE,
    ],
    [
      "with empty scheduling constraints of Admiralty",
      "annotated",
      annotations({ [CONSTRAINTS]: '{"nodeSelector": {}, "affinity": {"nodeAffinity": {}}}' }),
      PASSES,
    ],
    ["that names clusters", "plain", annotations({ "legation.dev/clusters": "west" }), PASSES],
    [
      "that names clusters and declines",
      "annotated",
      annotations({ "legation.dev/clusters": "west", "legation.dev/delegate": "false" }),
      PASSES,
    ],
    ["without anything of Legation's", "all", {}, NOT_MADE],
    ["that declines", "all", annotations({ "legation.dev/delegate": "false" }), PASSES],
    ["of a DaemonSet", "all", ownedBy("DaemonSet"), PASSES],
    ["of a ReplicaSet", "all", ownedBy("ReplicaSet"), NOT_MADE],
    ["of another host", "all", { metadata: { labels: { "legation.dev/host": "uid-of-host" } } }, PASSES],
    [
      "that mirrors a static pod",
      "all",
      { ...annotations({ "kubernetes.io/config.mirror": "hash" }), spec: { nodeName: "policies-node-1" } },
      PASSES,
    ],
  ])("gets the policies' verdict: %s, in a namespace %s", async (_what, where, parts, refused) => {
    const created = run(["create", "--dry-run=server", "-n", place[where](), "-f", "-"], { input: pod("one", parts) });
    await expectVerdict(created, refused);
  });
});

/** Returns a status patch as controllers write it before they delete the pod. */
function disrupted(name: string, reason: string): string[] {
  const status = { conditions: [{ type: "DisruptionTarget", status: "True", reason }] };
  return ["patch", `pod/${name}`, "--dry-run=server", "--subresource=status", `--patch=${JSON.stringify({ status })}`];
}

describe("a proxy", () => {
  beforeAll(async () => {
    const held = pod("held", {
      ...PROXY,
      metadata: {
        ...FINALIZER,
        labels: { "legation.dev/proxy": "true" },
        annotations: { "legation.dev/scheduler-name": "other" },
      },
    });
    for (const input of [held, pod("ordinary")]) await run(["create", "-n", annotated, "-f", "-"], { input });
  });

  const change = (metadata: object, ...more: string[]): string[] => [
    ...["patch", "pod/held", "--dry-run=server", "--type=merge", `--patch=${JSON.stringify({ metadata })}`],
    ...more,
  ];
  const unlabel = { labels: { "legation.dev/proxy": null } };
  const release = { finalizers: null };
  const CONTROLLER_ALONE = /is changed by Legation's controller alone/;
  type Case = readonly [string, string | undefined, readonly string[], RegExp | undefined];

  test.each<Case>([
    ["loses its label", undefined, change(unlabel), CONTROLLER_ALONE],
    ["loses its label through status", undefined, change(unlabel, "--subresource=status"), CONTROLLER_ALONE],
    ["loses its finalizer", undefined, change(release), /holds the pod until its delegate is gone; delete the pod/],
    ["loses its finalizer through status", undefined, change(release, "--subresource=status"), /holds the pod until/],
    ...["cluster", "delegate-uid", "member-node"].flatMap((name): Case[] => {
      const written = { annotations: { [`legation.dev/${name}`]: "forged" } };
      return [
        [`gets ${name}`, undefined, change(written), CONTROLLER_ALONE],
        [`gets ${name} through status`, undefined, change(written, "--subresource=status"), CONTROLLER_ALONE],
        [`gets ${name}`, CONTROLLER, change(written), PASSES],
      ];
    }),
    [
      "loses its scheduler's name",
      undefined,
      change({ annotations: { "legation.dev/scheduler-name": null } }),
      /annotation legation.dev\/scheduler-name is changed by/,
    ],
    [
      "is set to wait for its member",
      undefined,
      change({ annotations: { "legation.dev/failover": "never" } }),
      /annotation legation.dev\/failover is read when a pod is created.*write it on the workload/,
    ],
    ["loses its finalizer", CONTROLLER, change(release), PASSES],
    ["gets another label", undefined, ["label", "--dry-run=server", "pod/held", "team=blue"], PASSES],
    ["gets another annotation", undefined, ["annotate", "--dry-run=server", "pod/held", "note=new"], PASSES],
    [
      "gets another finalizer",
      undefined,
      change({ finalizers: ["legation.dev/delegate", "example.com/mine"] }),
      PASSES,
    ],
    [
      "gets a status",
      undefined,
      ["patch", "pod/held", "--dry-run=server", "--subresource=status", "-p", '{"status":{"message":"m"}}'],
      PASSES,
    ],
    [
      "is failed",
      "system:serviceaccount:kube-system:pod-garbage-collector",
      // kubectl reads before it writes, which that account may not.
      [
        ...["patch", "pod/held", "--dry-run=server", "--subresource=status", "-p", '{"status":{"phase":"Failed"}}'],
        "--as-group=system:masters",
      ],
      PASSES,
    ],
    ["gets another image", undefined, ["set", "image", "--dry-run=server", "pod/held", `main=${IMAGE}1`], PASSES],
    [
      "is preempted",
      undefined,
      disrupted("held", "PreemptionByScheduler"),
      /no scheduler of this cluster may preempt it/,
    ],
    [
      "is preempted in its member",
      CONTROLLER,
      [...disrupted("held", "PreemptionByScheduler"), "--as-group=system:masters"],
      PASSES,
    ],
    ["is evicted for a taint", undefined, disrupted("held", "DeletionByTaintManager"), PASSES],
  ])("gets the policies' verdict when it %s, by %s", async (_what, as, args, refused) => {
    await expectVerdict(run([...args, "-n", annotated], as === undefined ? {} : { as }), refused);
  });

  test.each([
    ["ephemeralcontainers", { ephemeralContainers: [{ name: "debug", image: IMAGE }] }],
    ["resize", { containers: [{ name: "main", resources: { requests: { cpu: "20m" } } }] }],
  ])("keeps its marks when %s is written", async (subresource, spec) => {
    const metadata = { ...unlabel, ...release, annotations: { "legation.dev/cluster": "forged" } };
    const patch = `--patch=${JSON.stringify({ metadata, spec })}`;
    await run(["patch", "pod/held", "-n", annotated, `--subresource=${subresource}`, patch]);
    const stored: unknown = JSON.parse(await run(["get", "pod/held", "-n", annotated, "-o", "json"]));
    expect(stored).toMatchObject({ metadata: { ...LABEL, ...FINALIZER }, spec });
    expect(stored).not.toHaveProperty(["metadata", "annotations", "legation.dev/cluster"]);
  });

  test("may be preempted in overflow mode before it is a proxy", async () => {
    const overflow = { labels: { "legation.dev/proxy": "overflow" }, annotations: { "legation.dev/mode": "overflow" } };
    await run(["create", "-n", annotated, "-f", "-"], { input: pod("overflowing", { metadata: overflow }) });
    await run([...disrupted("overflowing", "PreemptionByScheduler"), "-n", annotated]);
  });

  test("cannot be made of an existing pod", async () => {
    const labelled = run(["label", "pod/ordinary", "-n", annotated, "legation.dev/proxy=true"]);
    await expect(labelled).rejects.toThrow(CONTROLLER_ALONE);
  });
});

describe("a Binding", () => {
  beforeAll(async () => {
    // No scheduler has that name, so it stays unbound.
    const input = pod("waiting", { spec: { schedulerName: "nobody" } });
    await run(["create", "-n", plain, "-f", "-"], { input });
  });

  const binding = (node: string, metadata: object = {}): object => ({
    apiVersion: "v1",
    kind: "Binding",
    metadata: { name: "waiting", namespace: plain, ...metadata },
    target: { apiVersion: "v1", kind: "Node", name: node },
  });
  const decision = { annotations: { "legation.dev/cluster": "west" } };
  const mark = { labels: { "legation.dev/proxy": "true" } };
  const VIRTUAL = /target.name: legation-west is a virtual node, which only Legation's controller binds pods to/;
  type Case = readonly [string, string | undefined, object, RegExp | undefined];

  describe.each(["pods/waiting/binding", "bindings"])("to %s", (path) => {
    test.each<Case>([
      ["a node of the host", undefined, binding("policies-node-1"), PASSES],
      ["a node of the host", SCHEDULER, binding("policies-node-1"), PASSES],
      ["a virtual node", undefined, binding("legation-west"), VIRTUAL],
      ["a virtual node", SCHEDULER, binding("legation-west"), VIRTUAL],
      [
        "a node of the host, with a decision",
        SCHEDULER,
        binding("policies-node-1", decision),
        /annotation legation.dev\/cluster: a Binding/,
      ],
      [
        "a node of the host, with a mark",
        undefined,
        binding("policies-node-1", mark),
        /label legation.dev\/proxy: a Binding/,
      ],
      ...(path === "bindings"
        ? []
        : [["a virtual node, with a decision", CONTROLLER, binding("legation-west", decision), PASSES] satisfies Case]),
    ])("gets the policies' verdict: %s, by %s", async (_what, as, input, refused) => {
      const url = `/api/v1/namespaces/${plain}/${path}?dryRun=All`;
      await expectVerdict(
        run(["create", "--raw", url, "-f", "-"], { input, ...(as === undefined ? {} : { as }) }),
        refused,
      );
    });
  });
});

describe("a namespace", () => {
  const label = (name: string, value: string): string[] => [
    "label",
    "--dry-run=server",
    "--overwrite",
    `namespace/${name}`,
    `legation.dev/delegation${value}`,
  ];
  test.each<readonly [string, RegExp | undefined]>([
    ["=annotated", PASSES],
    ["=all", PASSES],
    ["-", PASSES],
    ["=al", /"al" is no mode; write "annotated"/],
    ["=", /"" is no mode/],
  ])("gets the policies' verdict with legation.dev/delegation%s", async (value, refused) => {
    await expectVerdict(run(label(annotated, value)), refused);
  });

  test.each(["kube-system", "legation-system"])(
    "is refused delegation when it is %s, whose pods Legation relies on",
    async (name) => {
      await expect(run(label(name, "=all"))).rejects.toThrow(/serves this cluster itself/);
    },
  );

  test("keeps an invalid mode from before the policy through other changes", async () => {
    await run(["delete", "validatingadmissionpolicybinding/legation-namespaces"]);
    const name = await eventually(() => freshNamespace(host, { labels: { "legation.dev/delegation": "old" } }));
    await run(["apply", "-f", join(MANIFESTS, "policies.yaml")]);
    await eventually(() =>
      expect(run(label(plain, "=old")))
        .rejects.toThrow(/no mode/)
        .then(() => true),
    );
    await expect(run(["label", `namespace/${name}`, "team=blue"])).resolves.toContain("labeled");
  });
});

describe("the marks of a claim", () => {
  const claim = (name: string, written: Readonly<Record<string, string>> = {}): object => ({
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name, annotations: written },
    spec: { accessModes: ["ReadWriteOnce"], storageClassName: "none", resources: { requests: { storage: "1Gi" } } },
  });
  const create = (name: string, written: Readonly<Record<string, string>>, as?: string): Promise<string> =>
    run(["-n", plain, "create", "-f", "-"], { input: claim(name, written), ...(as === undefined ? {} : { as }) });
  const annotate = (name: string, text: string, as?: string): Promise<string> =>
    run(["-n", plain, "annotate", "persistentvolumeclaim", name, "--overwrite", text], as === undefined ? {} : { as });
  const REFUSED = /annotation legation.dev\/cluster is written by Legation's controller alone.*leave it out/;

  beforeAll(async () => {
    // kubectl reads what it changes, and the controller need not.
    await run(["-n", plain, "create", "role", "reader", "--verb=get", "--resource=persistentvolumeclaims"]);
    const subject = `--serviceaccount=${CONTROLLER.split(":").slice(2).join(":")}`;
    await run(["-n", plain, "create", "rolebinding", "reader", "--role=reader", subject]);
  });

  test("cannot be written by its author or copied from another claim", async () => {
    await expectVerdict(create("sent", { "legation.dev/cluster": "north" }), REFUSED);
    await expectVerdict(
      create("seen", { "legation.dev/claim-status": "{}" }),
      /legation.dev\/claim-status is written by/,
    );
    await expectVerdict(create("free", { other: "yes" }), PASSES);
    await expectVerdict(annotate("free", "legation.dev/cluster=north"), /is written by Legation's.*leave it as it is/);
  });

  test("are written, changed and removed by the controller alone; the rest of the claim is its author's", async () => {
    await create("held", {});
    await expectVerdict(annotate("held", "legation.dev/cluster=west", CONTROLLER), PASSES);
    await expectVerdict(annotate("held", "legation.dev/cluster=north"), /leave it as it is/);
    await expectVerdict(annotate("held", "legation.dev/cluster-"), /leave it as it is/);
    await expectVerdict(annotate("held", "other=yes"), PASSES);
  });

  const selected = "volume.kubernetes.io/selected-node";

  test("keep the host's provisioner from creating a volume for a claim whose data is in a member", async () => {
    await create("chosen", {});
    await expectVerdict(annotate("chosen", `${selected}=node-1`, SCHEDULER), PASSES);
    await expectVerdict(annotate("chosen", "legation.dev/cluster=west", CONTROLLER), PASSES);
    await expectVerdict(annotate("chosen", "other=yes"), PASSES);
    const refused =
      /data of claim chosen is in the member west.*delegate the pod.*or delete the claim and make it again/;
    await expectVerdict(annotate("chosen", `${selected}=node-2`, SCHEDULER), refused);
    // A provisioner that wants another node sends this.
    await expectVerdict(annotate("chosen", `${selected}-`), PASSES);
    await expectVerdict(annotate("chosen", `${selected}=node-1`, SCHEDULER), refused);
  });
});

describe("a Secret that the webhook's account creates", () => {
  const WEBHOOK = "system:serviceaccount:legation-system:legation-webhook";
  const NAME = "legation-webhook-certificate";
  const tls = { type: "kubernetes.io/tls", stringData: { "tls.crt": "-", "tls.key": "-" } };
  const token = {
    type: "kubernetes.io/service-account-token",
    metadata: { annotations: { "kubernetes.io/service-account.name": "legation-controller" } },
  };
  const REFUSED = /creates no Secret but its certificate's/;

  interface SecretParts {
    readonly metadata?: object;
    readonly type?: string;
    readonly stringData?: object;
  }

  test.each<[string, string, SecretParts, RegExp | undefined]>([
    ["is admitted as its certificate", NAME, tls, PASSES],
    ["is refused under another name", "other", tls, REFUSED],
    ["is refused with another type", NAME, { stringData: {} }, REFUSED],
    ["is refused if Kubernetes would write the controller's token into it", NAME, token, REFUSED],
  ])("%s", async (_which, name, parts, refused) => {
    const input = { apiVersion: "v1", kind: "Secret", ...parts, metadata: { name, ...parts.metadata } };
    const args = ["-n", "legation-system", "create", "--dry-run=server", "-f", "-"];
    await expectVerdict(run(args, { as: WEBHOOK, input }), refused);
  });
});

describe("an object that members get whole, while no webhook answers", () => {
  const WHOLE = { "legation.dev/whole": "true" };
  const FINALIZERS = ["legation.dev/whole"];
  const patch = (name: string, metadata: object): Promise<string> =>
    run(["patch", `configmap/${name}`, "-n", annotated, "--type=merge", `--patch=${JSON.stringify({ metadata })}`]);
  const create = (metadata: object): Promise<string> =>
    run(["create", "-n", annotated, "-f", "-"], { input: { apiVersion: "v1", kind: "ConfigMap", metadata } });

  test("cannot leave its record or its finalizer behind", async () => {
    await create({ name: "held", labels: WHOLE, annotations: WHOLE, finalizers: FINALIZERS });
    const record = { metadata: { annotations: { "legation.dev/cluster": "west" } } };
    await run(["apply", "-f", join(MANIFESTS, "delegated-types", "rbac.yaml")]);
    const reader = ["--clusterrole=view", "--serviceaccount=legation-system:legation-controller"];
    await run(["create", "rolebinding", "reader-of-held", "-n", annotated, ...reader]);
    const args = ["patch", "configmap/held", "-n", annotated, "--type=merge", `--patch=${JSON.stringify(record)}`];
    await eventually(() => run(args, { as: CONTROLLER }), { what: "the controller's rights on ConfigMaps" });
    const NONE = { labels: null, annotations: { "legation.dev/whole": null } };
    const all = { labels: null, annotations: null, finalizers: null };
    await expectVerdict(
      patch("held", all),
      /annotation legation.dev\/cluster is changed by|finalizer legation.dev\/whole holds/,
    );
    await expectVerdict(patch("held", { ...NONE, finalizers: null }), /finalizer legation.dev\/whole holds the object/);
    await expectVerdict(
      patch("held", { ...all, finalizers: FINALIZERS }),
      /annotation legation.dev\/cluster is changed by/,
    );
    const asCopy = { ...all, labels: { ...WHOLE, "legation.dev/host": "another" } };
    await expectVerdict(patch("held", asCopy), /label legation.dev\/host: is written by/);
    // The webhook writes this label when the annotation goes.
    await expectVerdict(patch("held", { ...NONE, labels: { "legation.dev/whole": "false" } }), PASSES);
  });

  test("cannot be made of one with the label of a copy, which stays its host's to change", async () => {
    const labels = { ...WHOLE, "legation.dev/host": "another" };
    await create({ name: "copy", labels });
    await expectVerdict(patch("copy", { annotations: { other: "true" } }), PASSES);
    const NOT_A_COPY = /label legation.dev\/host: is written by/;
    await expectVerdict(patch("copy", { annotations: WHOLE }), NOT_A_COPY);
    await expectVerdict(patch("copy", { finalizers: FINALIZERS }), NOT_A_COPY);
  });
});

describe("a Service that members get whole, while no webhook answers", () => {
  const BALANCED = { type: "LoadBalancer" };
  const CLASSED = { ...BALANCED, loadBalancerClass: "legation.dev/whole" };
  const WHOLE = { "legation.dev/whole": "true" };
  const service = (name: string, spec: object): object => ({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, labels: WHOLE, annotations: WHOLE },
    spec: { ports: [{ port: 80 }], ...spec },
  });

  test.each<[string, object, RegExp | undefined]>([
    ["internal", { type: "ClusterIP" }, PASSES],
    ["kept", CLASSED, PASSES],
    ["open", BALANCED, /has spec.loadBalancerClass legation.dev\/whole/],
  ])("has a class that no load balancer of this cluster serves: %s", async (name, spec, refused) => {
    await expectVerdict(run(["create", "-n", annotated, "-f", "-"], { input: service(name, spec) }), refused);
  });

  test("has endpoints with its labels", async () => {
    const metadata = { name: "of-whole", labels: { ...WHOLE, "kubernetes.io/service-name": "internal" } };
    const slice = { apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", metadata, addressType: "IPv4" };
    const endpoints = { apiVersion: "v1", kind: "Endpoints", metadata: { name: "of-whole", labels: WHOLE } };
    for (const input of [{ ...slice, endpoints: [] }, endpoints]) {
      await expectVerdict(run(["create", "-n", annotated, "-f", "-"], { input }), PASSES);
    }
  });

  test("is changed by the controller in its own keys alone, of every type", async () => {
    await run(["apply", "-f", join(MANIFESTS, "delegated-types", "rbac.yaml")]);
    await run(["apply", "-n", annotated, "-f", "-"], { input: service("changed", {}) });
    // kubectl reads what it patches.
    const reader = ["--clusterrole=view", "--serviceaccount=legation-system:legation-controller"];
    await run(["create", "rolebinding", "reader", "-n", annotated, ...reader]);
    const patch = (body: object, as?: string): Promise<string> =>
      run(
        ["patch", "service/changed", "-n", annotated, "--type=merge", `--patch=${JSON.stringify(body)}`],
        as === undefined ? {} : { as },
      );
    const record = { metadata: { annotations: { "legation.dev/members": "[]" } } };
    await eventually(() => patch(record, CONTROLLER), { what: "the controller's rights on Services" });
    await expectVerdict(patch({ spec: { selector: { app: "mine" } } }, CONTROLLER), /changes its own keys/);
    await expectVerdict(patch({ metadata: { labels: { app: "mine" } } }, CONTROLLER), /changes its own keys/);
    const named = { type: "ExternalName", externalName: "a.example", clusterIP: null, clusterIPs: null };
    await patch({ spec: named });
    await expectVerdict(patch({ metadata: { annotations: { "legation.dev/members": null } } }, CONTROLLER), PASSES);
    await expectVerdict(patch({ spec: { externalName: "b.example" } }, CONTROLLER), /changes its own keys/);
  });
});
