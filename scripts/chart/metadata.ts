import { parse, stringify } from "yaml";
import { z } from "zod";
import { documentsOf } from "./template.ts";

const packageFile = z.object({
  version: z.string(),
  description: z.string(),
  license: z.string(),
  homepage: z.string(),
});
const definition = z.object({
  metadata: z.object({ name: z.string() }),
  spec: z.object({
    names: z.object({ kind: z.string() }),
    versions: z.array(
      z.object({ name: z.string(), schema: z.object({ openAPIV3Schema: z.object({ description: z.string() }) }) }),
    ),
  }),
});

/** Files that are no part of the chart's package. */
export const HELMIGNORE: string = [".git/", ".DS_Store", "*.orig", "*.swp", "*.tgz", "*~", ""].join("\n");

/** Returns the address of the project's pages. */
export function homeOf(read: (path: string) => string): string {
  return packageFile.parse(JSON.parse(read("package.json"))).homepage;
}

/** Returns Chart.yaml, with the annotations of https://artifacthub.io/docs/topics/annotations/helm. */
export function chartYaml(read: (path: string) => string, repository: string): string {
  const { version, description, license, homepage } = packageFile.parse(JSON.parse(read("package.json")));
  return stringify(
    {
      apiVersion: "v2",
      name: "legation",
      description,
      type: "application",
      version,
      appVersion: version,
      kubeVersion: ">=1.30.0-0",
      home: homepage,
      icon: `${homepage.replace("//github.com/", "//raw.githubusercontent.com/")}/main/docs/pictures/icon.svg`,
      sources: [homepage],
      maintainers: [{ name: "Legation maintainers", url: homepage }],
      keywords: ["multicluster", "scheduling", "virtual-node"],
      annotations: {
        "artifacthub.io/license": license,
        "artifacthub.io/operator": "true",
        "artifacthub.io/operatorCapabilities": "Seamless Upgrades",
        "artifacthub.io/crds": stringify(definitionsOf(read)),
        "artifacthub.io/images": stringify([{ name: "legation", image: `${repository}:${version}` }]),
        "artifacthub.io/links": stringify([
          { name: "Installing", url: `${homepage}/blob/main/docs/install.md#helm` },
          { name: "Changelog", url: `${homepage}/blob/main/CHANGELOG.md` },
        ]),
      },
    },
    { lineWidth: 120 },
  );
}

function definitionsOf(read: (path: string) => string): object[] {
  const { resources } = z.object({ resources: z.array(z.string()) }).parse(parse(read("manifests/kustomization.yaml")));
  return resources
    .filter((file) => file.startsWith("crds/"))
    .flatMap((file) => documentsOf(read(`manifests/${file}`)))
    .flatMap((document) => {
      const { metadata, spec } = definition.parse(document.toJS());
      return spec.versions.map(({ name: version, schema }) => ({
        kind: spec.names.kind,
        version,
        name: metadata.name,
        displayName: spec.names.kind,
        description: schema.openAPIV3Schema.description,
      }));
    });
}
