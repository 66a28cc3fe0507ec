import { globSync } from "node:fs";
import { join } from "node:path";
import { delegatedTypeSchema } from "../../../src/api/delegated-type.ts";
import type { KubeObject, Stored } from "../../../src/api/kubernetes.ts";
import { loadManifests } from "../../../src/cli/shared/manifests.ts";
import { packageRoot } from "../../../src/cli/shared/package-root.ts";
import { definitionKind } from "../../../src/copies/definitions.ts";
import type { CopiedKind } from "../../../src/copies/kind.ts";
import { delegatedKind } from "../../../src/copies/objects.ts";
import { kindName, type Resource } from "../../../src/kube/resources.ts";

/** A kind that members get copies of, with an object of the host. */
export interface KindUnderTest {
  /** What a test is told to be about, such as `ConfigMap` or `whole services`. */
  readonly title: string;
  readonly kind: CopiedKind<KubeObject>;
  readonly source: Stored<KubeObject>;
}

const SOURCE = new URL("../../../src/", import.meta.url);

/** Fields of all kinds: each kind copies its own. */
const FIELDS = {
  type: "Opaque",
  data: { mode: "new" },
  value: 1000,
  handler: "gvisor",
  addressType: "IPv4",
  endpoints: [{ addresses: ["10.0.0.1"] }],
  ports: [{ port: 80, protocol: "TCP" }],
};
const SPECS: Readonly<Record<string, object>> = {
  services: {
    type: "ClusterIP",
    selector: { app: "web" },
    ports: [{ port: 80 }],
    trafficDistribution: "PreferSameZone",
  },
  jobs: { parallelism: 1, template: { spec: { containers: [] } } },
  networkpolicies: { podSelector: { matchLabels: { app: "web" } } },
};

/** Every kind that a module of `src/copies` or the `kind.ts` of a built-in whole type exports by itself or in a table, and those of the types in `manifests/delegated-types`. */
export async function everyKind(): Promise<readonly KindUnderTest[]> {
  const modules = globSync("{copies/*,whole/*/kind}.ts", { cwd: SOURCE }).map(
    (file): Promise<Record<string, unknown>> => import(new URL(file, SOURCE).href),
  );
  const exported = (await Promise.all(modules)).flatMap((module) => Object.values(module));
  const kinds = exported.flatMap((value) => [value, ...(isTable(value) ? Object.values(value) : [])]).filter(isKind);
  const hash = (text: string): string => text;
  const manifests = await loadManifests(join(packageRoot(), "manifests", "delegated-types"));
  const whole: readonly unknown[] = manifests
    .filter((manifest) => manifest.kind === "DelegatedType")
    .map((type) => delegatedKind({ metadata: { name: type.metadata.name }, ...delegatedTypeSchema.parse(type) }, hash));
  const followed: readonly unknown[] = [definitionKind("widgets.example.com", hash)];
  return [
    ...kinds.map((kind) => underTest(kind.resource.kind, kind)),
    ...whole.filter(isKind).map((kind) => underTest(`whole ${kindName(kind.resource)}`, kind)),
    ...followed.filter(isKind).map((kind) => underTest("CustomResourceDefinition", kind)),
  ];
}

function underTest(title: string, kind: CopiedKind<KubeObject>): KindUnderTest {
  return { title, kind, source: sourceOf(kind.resource) };
}

function sourceOf({ plural, namespaced }: Resource<KubeObject>): Stored<KubeObject> {
  const place = namespaced ? { namespace: "team" } : {};
  const metadata = { ...place, name: "web", uid: "source-uid", resourceVersion: "7", labels: { app: "web" } };
  return Object.assign({ metadata }, FIELDS, { spec: SPECS[plural] ?? { size: 1 } });
}

function isTable(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !isKind(value);
}

function isKind(value: unknown): value is CopiedKind<KubeObject> {
  return typeof value === "object" && value !== null && "resource" in value && "body" in value && "content" in value;
}
