import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { type InstallOptions, planInstall } from "../../../../src/cli/install/objects.ts";
import { loadManifests, type Manifest, parseManifests } from "../../../../src/cli/shared/manifests.ts";
import { packageVersion } from "../../../../src/cli/shared/package-root.ts";
import { CHART, ensureHelm, type Helm, helm, renderChart, templateChart } from "../../../support/legation/chart.ts";
import { ROOT } from "../../../support/legation/cli.ts";

// Renders by Helm itself, and needs no cluster.
const KEEP = "helm.sh/resource-policy";
const ARGS = ["legation", CHART, "--values=-"];
// Everything that the chart can add.
const ALL = {
  webhook: { certificate: { source: "cert-manager" } },
  access: { enabled: true },
  relay: { enabled: true, members: ["west"] },
  ui: { enabled: true },
  hub: { enabled: true, annotations: { "example.com/zone": "a" } },
  monitoring: { podMonitors: true, rules: true, labels: { release: "prometheus" } },
  networkPolicy: { enabled: true },
};

const identity = ({ apiVersion, kind, metadata }: Manifest): string =>
  `${apiVersion} ${kind} ${metadata.namespace ?? ""}/${metadata.name}`;

const CHART_LABEL = { "helm.sh/chart": `legation-${packageVersion()}` };

/** Labels an object as the chart does. */
function byChart(manifest: Manifest, more: object = {}): Manifest {
  const labels = { ...(manifest.metadata.labels as object), ...CHART_LABEL, ...more };
  return { ...manifest, metadata: { ...manifest.metadata, labels } };
}

/** Labels an object as Helm does. */
function byHelm(manifest: Manifest): Manifest {
  return byChart(manifest, { "app.kubernetes.io/managed-by": "Helm" });
}

/** Takes the objects of `helm test` away. */
function withoutTest(manifests: readonly Manifest[]): Manifest[] {
  return manifests.filter(({ metadata }) => !metadata.name.startsWith("legation-test"));
}

function byIdentity(manifests: readonly Manifest[]): Record<string, Manifest> {
  return Object.fromEntries(manifests.map((manifest) => [identity(manifest), manifest]));
}

/** Returns what `legation install` applies. */
async function applied(options: Partial<InstallOptions> = {}, folders: readonly string[] = []): Promise<Manifest[]> {
  const loaded = await Promise.all(["", ...folders].map((folder) => loadManifests(join(ROOT, "manifests", folder))));
  const plan = planInstall(loaded.flat(), {
    clusterName: "host",
    mcs: false,
    shards: 1,
    version: packageVersion(),
    ...options,
  });
  return [...plan.apply];
}

/** Takes Helm's own annotation off. Returns the objects that had it. */
function withoutKeep(manifests: readonly Manifest[]): { objects: Manifest[]; kept: string[] } {
  const kept: string[] = [];
  const objects = manifests.map((manifest) => {
    const { annotations, ...metadata } = manifest.metadata as Manifest["metadata"] & { annotations?: object };
    const { [KEEP]: policy, ...others } = (annotations ?? {}) as Record<string, string>;
    if (policy === undefined) return manifest;
    expect(policy).toBe("keep");
    kept.push(manifest.kind);
    return {
      ...manifest,
      metadata: Object.keys(others).length === 0 ? metadata : { ...metadata, annotations: others },
    };
  });
  return { objects, kept };
}

function read(file: string): Manifest[] {
  return parseManifests(readFileSync(join(ROOT, file), "utf8"), file);
}

function only(manifests: readonly Manifest[], kind: string, name: string): Manifest {
  const [found, ...more] = manifests.filter((each) => each.kind === kind && each.metadata.name === name);
  if (found === undefined || more.length > 0) throw new Error(`${more.length + 1} of ${kind} ${name}`);
  return found;
}

// Both are built from their sources the first time.
beforeAll(async () => {
  for (const program of ["helm", "helm3"] as const) await ensureHelm(program);
}, 1_800_000);

describe("the chart renders", () => {
  test.each<[string, object, Partial<InstallOptions>, string[]]>([
    ["without values", {}, {}, []],
    [
      "with a name and an image",
      { clusterName: "berlin.1", image: { repository: "registry.example:5000/team/legation", tag: "7" } },
      { clusterName: "berlin.1", image: "registry.example:5000/team/legation:7" },
      [],
    ],
    [
      "with an image by its digest",
      { image: { digest: `sha256:${"0123456789abcdef".repeat(4)}` } },
      { image: `ghcr.io/legation/legation@sha256:${"0123456789abcdef".repeat(4)}` },
      [],
    ],
    ["with a name that YAML takes for a number", { clusterName: "0123" }, { clusterName: "0123" }, []],
    ["with access", { access: { enabled: true } }, {}, ["access"]],
    ["with a relay", { relay: { enabled: true } }, {}, ["relay"]],
  ])("what `legation install` applies, %s", async (_how, values, options, folders) => {
    const { objects, kept } = withoutKeep(withoutTest(await renderChart(values)));
    expect(byIdentity(objects)).toEqual(byIdentity((await applied(options, folders)).map(byHelm)));
    expect(new Set(kept)).toEqual(new Set(["CustomResourceDefinition", "Namespace"]));
  });

  test("a relay for each member that has one, as the example has it for west", async () => {
    const image = { repository: "registry.example/legation", tag: "7" };
    const members = ["east", "0123"];
    const rendered = await renderChart({ image, relay: { enabled: true, members } });
    const example = readFileSync(join(ROOT, "examples/relay/in-member.yaml"), "utf8");
    const without = byIdentity(await renderChart({ image, relay: { enabled: true } }));
    expect(rendered.filter((manifest) => without[identity(manifest)] === undefined)).toEqual(
      members.flatMap((name) => {
        const own = example.replace(/image: .*/, "image: registry.example/legation:7").replaceAll("west", `"${name}"`);
        return parseManifests(own, name).map((manifest) => byChart(manifest));
      }),
    );
    expect(byIdentity(await renderChart({ image, relay: { members } }))).toEqual(
      byIdentity(await renderChart({ image })),
    );
  });

  test("a tag of digits, as the page on installing sets it", async () => {
    const flags = ["--set", "clusterName=berlin", "--set", "image.repository=registry.example/legation"];
    const run = (tag: string) => helm(["template", "legation", CHART, ...flags, tag, "image.tag=1"]);
    expect((await run("--set-string")).stdout).toContain("image: registry.example/legation:1\n");
    expect((await run("--set")).stderr).toContain("at '/image/tag': got number, want string");
  });

  test("all but the namespace of the release", async () => {
    const rendered = byIdentity(await renderChart({}, "legation-system"));
    const elsewhere = byIdentity(await renderChart());
    const { "v1 Namespace /legation-system": namespace, ...others } = elsewhere;
    expect(namespace).toBeDefined();
    expect(rendered).toEqual(others);
  });

  test("no definitions where somebody else applies them", async () => {
    const kinds = (await renderChart({ crds: { install: false } })).map(({ kind }) => kind);
    expect(kinds).not.toContain("CustomResourceDefinition");
    expect(kinds).toContain("Deployment");
  });

  test("sizes, places and variables of each Deployment", async () => {
    const process = {
      replicas: 3,
      resources: { requests: { cpu: "500m", memory: "512Mi" }, limits: { memory: "1Gi" } },
      env: [{ name: "LEGATION_POD_EVENTS", value: "warnings" }],
      nodeSelector: { pool: "control" },
      tolerations: [{ key: "control", operator: "Exists" }],
      affinity: { nodeAffinity: {} },
      podAnnotations: { team: "a" },
    };
    const image = { pullPolicy: "Always", pullSecrets: [{ name: "registry" }] };
    const values = { image, controller: process, webhook: process, access: { enabled: true, ...process } };
    const rendered = await renderChart(values);
    for (const name of ["legation-controller", "legation-webhook", "legation-access"]) {
      const { replicas, resources, env, podAnnotations, ...placing } = process;
      expect(only(rendered, "Deployment", name), name).toMatchObject({
        spec: {
          replicas,
          template: {
            metadata: { annotations: podAnnotations },
            spec: {
              ...placing,
              imagePullSecrets: [{ name: "registry" }],
              containers: [
                {
                  resources,
                  imagePullPolicy: "Always",
                  env: expect.arrayContaining(env) as unknown,
                  name: name.slice(9),
                },
              ],
            },
          },
        },
      });
    }
    const env = (name: string): unknown =>
      (only(rendered, "Deployment", name).spec as { template: { spec: { containers: { env: unknown }[] } } }).template
        .spec.containers[0]?.env;
    expect(env("legation-webhook")).toEqual(process.env);
    expect(env("legation-controller")).toEqual([expect.objectContaining({ name: "POD_IP" }), ...process.env]);
  });

  test("the security, priority, spread, labels and service account of each Deployment", async () => {
    const process = {
      podSecurityContext: { runAsUser: null, fsGroup: 1000 },
      securityContext: { runAsUser: 1000 },
      priorityClassName: "company-critical",
      topologySpreadConstraints: [{ maxSkew: 2, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule" }],
      podLabels: { "example.com/mesh": "on" },
      serviceAccount: { annotations: { "example.com/role": "legation" } },
    };
    const enabled = { enabled: true, ...process };
    const values = { controller: process, webhook: process, access: enabled, ui: enabled };
    const rendered = await renderChart(values);
    for (const name of ["legation-controller", "legation-webhook", "legation-access", "legation-ui"]) {
      const { spec } = only(rendered, "Deployment", name) as Manifest & { spec: { template: { spec: object } } };
      expect(spec, name).toMatchObject({
        template: {
          metadata: { labels: { ...process.podLabels, "app.kubernetes.io/component": name.slice(9) } },
          spec: {
            priorityClassName: process.priorityClassName,
            topologySpreadConstraints: process.topologySpreadConstraints,
            securityContext: { runAsNonRoot: true, fsGroup: 1000, seccompProfile: { type: "RuntimeDefault" } },
            containers: [{ securityContext: { readOnlyRootFilesystem: true, runAsUser: 1000 } }],
          },
        },
      });
      expect(spec.template.spec).not.toHaveProperty(["securityContext", "runAsUser"]);
      expect(only(rendered, "ServiceAccount", name).metadata).toMatchObject(process.serviceAccount);
    }
  });

  test("no class, spread or security context where the values are empty", async () => {
    const contexts = {
      podSecurityContext: { runAsNonRoot: null, runAsUser: null, runAsGroup: null, seccompProfile: null },
      securityContext: { allowPrivilegeEscalation: null, readOnlyRootFilesystem: null, capabilities: null },
    };
    const controller = { ...contexts, priorityClassName: "", topologySpreadConstraints: [] };
    const { spec } = only(await renderChart({ controller }), "Deployment", "legation-controller");
    expect(JSON.stringify(spec)).not.toMatch(/securityContext|priorityClassName|topologySpread/);
  });

  test("common labels on every object, monitoring's own before them, and none on pods", async () => {
    const commonLabels = { "example.com/team": "a", release: "common" };
    const rendered = await renderChart({ ...ALL, commonLabels });
    expect(rendered.length).toBeGreaterThan(80);
    for (const manifest of rendered) {
      const own = manifest.apiVersion.startsWith("monitoring.coreos.com/") ? { release: "prometheus" } : {};
      expect(manifest.metadata.labels, identity(manifest)).toMatchObject({ ...CHART_LABEL, ...commonLabels, ...own });
    }
    const { spec } = only(rendered, "Deployment", "legation-webhook") as Manifest & { spec: { template: Manifest } };
    expect(spec.template.metadata.labels).not.toHaveProperty(["example.com/team"]);
  });

  test("extra objects, as YAML and as text, with their templates", async () => {
    const role = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "{{ .Release.Name }}-extra" } };
    const text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: text-{{ .Values.clusterName }}\n";
    const before = await renderChart();
    const rendered = await renderChart({ clusterName: "berlin", extraObjects: [role, text] });
    expect(only(rendered, "ConfigMap", "legation-extra")).toEqual({ ...role, metadata: { name: "legation-extra" } });
    only(rendered, "ConfigMap", "text-berlin");
    expect(rendered).toHaveLength(before.length + 2);
  });

  test("a pod for `helm test` that runs doctor from the image and with the places of the controller", async () => {
    const values = {
      image: { repository: "registry.example/legation", tag: "7", pullSecrets: [{ name: "registry" }] },
    };
    const rendered = await renderChart({ ...values, controller: { nodeSelector: { pool: "control" } } });
    const { metadata, spec } = only(rendered, "Pod", "legation-test");
    expect(metadata).toMatchObject({ namespace: "legation-system", annotations: { "helm.sh/hook": "test" } });
    expect(spec).toMatchObject({
      serviceAccountName: "legation-test",
      restartPolicy: "Never",
      nodeSelector: { pool: "control" },
      imagePullSecrets: [{ name: "registry" }],
      securityContext: { runAsNonRoot: true },
      containers: [
        {
          image: "registry.example/legation:7",
          args: ["doctor", "--timeout=60s"],
          securityContext: { capabilities: {} },
        },
      ],
    });
    const hooks = rendered.filter((manifest) =>
      JSON.stringify(manifest.metadata.annotations)?.includes("helm.sh/hook"),
    );
    expect(hooks.map(({ kind }) => kind).sort()).toEqual([
      "ClusterRole",
      "ClusterRoleBinding",
      "ClusterRoleBinding",
      "Pod",
      "ServiceAccount",
    ]);
  });

  test("a certificate of cert-manager as the examples have it, by an authority of its own", async () => {
    const rendered = await renderChart({ webhook: { certificate: { source: "cert-manager" } } });
    const folder = "examples/webhook-certificate";
    const wanted = read(join(folder, "certificate.yaml"));
    expect(byIdentity(rendered)).toMatchObject(byIdentity(wanted));
    const patched = only(rendered, "Deployment", "legation-webhook").spec;
    const patch = parse(readFileSync(join(ROOT, folder, "patch.yaml"), "utf8"));
    expect(patched).toMatchObject(patch.spec);
  });

  test("a certificate by an issuer that is there", async () => {
    const issuerRef = { name: "company", kind: "ClusterIssuer" };
    const rendered = await renderChart({ webhook: { certificate: { source: "cert-manager", issuerRef } } });
    const own = rendered.filter(({ apiVersion }) => apiVersion.startsWith("cert-manager.io/"));
    expect(own.map(identity)).toEqual(["cert-manager.io/v1 Certificate legation-system/legation-webhook"]);
    expect(own[0]?.spec).toMatchObject({ issuerRef, secretName: "legation-webhook-tls" });
  });

  test("the page for a team as its manifests have it", async () => {
    const folder = "manifests/ui";
    const { resources } = parse(readFileSync(join(ROOT, folder, "kustomization.yaml"), "utf8"));
    const wanted = (resources as string[]).flatMap((file) => read(join(folder, file)));
    expect(wanted.length).toBe(6);
    const version = { "app.kubernetes.io/version": packageVersion() };
    const versioned = wanted.map((each) => {
      const manifest = byChart(each);
      if (manifest.kind !== "Deployment") return manifest;
      const { metadata, spec } = structuredClone(manifest) as Manifest & { spec: { template: Manifest } };
      Object.assign(metadata.labels ?? {}, version);
      Object.assign(spec.template.metadata.labels ?? {}, version);
      return { ...manifest, metadata, spec };
    });
    const without = byIdentity(await renderChart());
    const { objects } = withoutKeep(await renderChart({ ui: { enabled: true } }));
    const added = objects.filter((manifest) => without[identity(manifest)] === undefined);
    expect(byIdentity(added)).toEqual(byIdentity(versioned));
  });

  test("the names, sizes and variables of the page", async () => {
    const ui = {
      enabled: true,
      hosts: ["legation.example.org", "pages.example.org"],
      resources: { limits: { memory: "1Gi" } },
      env: [{ name: "HTTPS_PROXY", value: "http://proxy.example.org" }],
      nodeSelector: { pool: "control" },
      podAnnotations: { team: "a" },
    };
    const { spec } = only(await renderChart({ ui }), "Deployment", "legation-ui");
    expect(spec).toMatchObject({
      replicas: 1,
      template: {
        metadata: { annotations: ui.podAnnotations },
        spec: { nodeSelector: ui.nodeSelector, containers: [{ resources: ui.resources, env: ui.env }] },
      },
    });
    expect(JSON.stringify(spec)).toContain('"--hosts=legation.example.org,pages.example.org"');
  });

  test("hub, monitoring and network policies as their own files have them", async () => {
    const hub = { enabled: true, type: "NodePort", annotations: { "example.com/zone": "a" } };
    const labels = { release: "prometheus" };
    const rendered = byIdentity(
      await renderChart({
        hub,
        access: { enabled: true },
        relay: { enabled: true },
        monitoring: { podMonitors: true, rules: true, labels },
        networkPolicy: { enabled: true },
      }),
    );
    const [service] = read("manifests/hub/service.yaml");
    expect(rendered["v1 Service legation-system/legation-hub"]).toEqual({
      ...service,
      metadata: {
        ...service?.metadata,
        labels: { ...(service?.metadata.labels as object), ...CHART_LABEL },
        annotations: hub.annotations,
      },
      spec: { ...(service?.spec as object), type: "NodePort" },
    });
    const monitors = read("examples/monitoring/prometheus-operator.yaml");
    expect(monitors.length).toBe(5);
    for (const monitor of monitors) {
      expect(rendered[identity(monitor)]).toEqual(byChart(monitor, labels));
    }
    const policies = ["system", "access", "relay"].flatMap((name) => read(`manifests/network-policies/${name}.yaml`));
    expect(policies.length).toBe(4);
    for (const policy of policies) expect(rendered[identity(policy)]).toEqual(byChart(policy));
  });

  test("nothing of access and relay without them", async () => {
    const values = { monitoring: { podMonitors: true, rules: true }, networkPolicy: { enabled: true } };
    const namespaces = (await renderChart(values)).map(({ metadata }) => metadata.namespace);
    expect(namespaces).toContain("legation-system");
    expect(namespaces).not.toContain("legation-access");
    expect(namespaces).not.toContain("legation-relay");
  });
});

describe.each<Helm>(["helm", "helm3"])("the chart refuses, by %s,", (program) => {
  test.each<[string, object, RegExp]>([
    ["an unknown value", { controler: {} }, /additional properties 'controler' not allowed/],
    ["an unknown value within", { webhook: { replica: 1 } }, /at '\/webhook': additional properties 'replica'/],
    ["text for a number", { controller: { replicas: "two" } }, /at '\/controller\/replicas': got string, want integer/],
    ["a name that is no label", { clusterName: "my host" }, /at '\/clusterName': 'my host' does not match pattern/],
    ["a member that is none", { relay: { members: ["a.b"] } }, /at '\/relay\/members\/0'/],
    ["no name", { clusterName: "" }, /at '\/clusterName'/],
    ["a tag in the repository's place", { image: { digest: "latest" } }, /at '\/image\/digest'/],
    ["replicas of the page", { ui: { replicas: 2 } }, /at '\/ui': additional properties 'replicas' not allowed/],
    ["a port in the page's name", { ui: { hosts: ["a.example:8443"] } }, /at '\/ui\/hosts\/0'/],
    ["an unknown source", { webhook: { certificate: { source: "vault" } } }, /at '\/webhook\/certificate\/source'/],
    [
      "a label by which Services find pods",
      { webhook: { podLabels: { "app.kubernetes.io/component": "mine" } } },
      /\/webhook\/podLabels/,
    ],
    ["a label that delegates a namespace", { commonLabels: { "legation.dev/delegation": "all" } }, /\/commonLabels/],
    ["a class that is no name", { controller: { priorityClassName: "A class" } }, /\/controller\/priorityClassName/],
    ["an extra object that is a number", { extraObjects: [1] }, /\/extraObjects\/0/],
    ["a memory that is none", { webhook: { resources: { limits: { memory: "lots" } } } }, /resources\/limits\/memory/],
  ])("%s, and names it", async (_what, values, message) => {
    await expect(templateChart(ARGS, { values, program })).rejects.toThrow(message);
  });
});

test.each<Helm>(["helm", "helm3"])("the chart passes the check of %s", async (program) => {
  const { code, stdout } = await helm(["lint", CHART, "--strict"], { program });
  expect(stdout).toContain("0 chart(s) failed");
  // Not even a recommendation.
  expect(stdout).not.toMatch(/\[(INFO|WARNING|ERROR)\]/);
  expect(code).toBe(0);
});

test.each<[string, object]>([
  ["without values", {}],
  ["with all that values can add", ALL],
  [
    "with an issuer that is there",
    { webhook: { certificate: { source: "cert-manager", issuerRef: { name: "own" } } } },
  ],
])("Helm 3 renders what Helm 4 renders, %s", async (_how, values) => {
  const render = async (program: Helm): Promise<Manifest[]> =>
    parseManifests(await templateChart(ARGS, { values, program }), program);
  const [byHelm3, byHelm4] = [await render("helm3"), await render("helm")];
  // Their order differs.
  expect(byHelm3).toHaveLength(byHelm4.length);
  expect(byIdentity(byHelm3)).toEqual(byIdentity(byHelm4));
});
