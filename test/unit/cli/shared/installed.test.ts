import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { listInstalled, loadManifests } from "../../../../src/cli/shared/manifests.ts";
import { packageRoot } from "../../../../src/cli/shared/package-root.ts";
import type { ListOptions } from "../../../../src/kube/client.ts";
import { configMaps } from "../../../../src/kube/resources.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { lastRelease } from "../../../support/releases/last-release.ts";

const OWN = { "app.kubernetes.io/managed-by": "legation", "app.kubernetes.io/part-of": "legation" };
const { signal } = new AbortController();

interface Labelled {
  readonly metadata: { readonly namespace?: string | undefined; readonly name: string; readonly labels?: unknown };
}

/** Names of what is taken for the installation's on a host that has these objects. */
async function installed(objects: readonly Labelled[]): Promise<string[]> {
  const list = async (_resource: unknown, { labelSelector = "" }: ListOptions = {}) => {
    const matches = ({ metadata }: Labelled): boolean => {
      const labels = new Map<string, unknown>(Object.entries(metadata.labels ?? {}));
      return labelSelector.split(",").every((term) => {
        const [key = "", value] = term.split("=");
        return value === undefined ? !labels.has(key.slice(1)) : labels.get(key) === value;
      });
    };
    return { items: objects.filter(matches) };
  };
  return (await listInstalled(fakeClient({ list }), configMaps, signal)).map(({ metadata }) => metadata.name);
}

describe("an installed object", () => {
  test.each([
    ["this version", packageRoot()],
    ["the last release", lastRelease().folder],
  ])("is every object of the manifests of %s", async (_which, folder) => {
    const manifests = (await loadManifests(join(folder, "manifests"))).map(({ metadata }) => ({
      metadata,
    })) as Labelled[];
    expect(manifests.length).toBeGreaterThan(10);
    expect(await installed(manifests)).toEqual(manifests.map(({ metadata }) => metadata.name));
  });

  test("is every object of the chart, to which Helm gives its own label", async () => {
    const labels = { ...OWN, "app.kubernetes.io/managed-by": "Helm" };
    expect(await installed([{ metadata: { name: "one", labels } }])).toEqual(["one"]);
  });

  test.each([
    ["that another installer manages", { name: "one", labels: { ...OWN, "app.kubernetes.io/managed-by": "other" } }],
    ["in a user's namespace", { namespace: "shop", name: "one", labels: OWN }],
    ["that only says who manages it", { name: "one", labels: { "app.kubernetes.io/managed-by": "legation" } }],
    ["that another host has here", { name: "one", labels: { ...OWN, "legation.dev/host": "uid" } }],
  ])("is no object %s", async (_which, metadata) => {
    expect(await installed([{ metadata }])).toEqual([]);
  });
});
