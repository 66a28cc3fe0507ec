import { code, heading, plain, table } from "../reference/markdown.ts";
import { homeOf } from "./metadata.ts";
import type { ChartDefaults, ValueRow } from "./values.ts";

/** Returns the chart's own page, which Artifact Hub and `helm show readme` show. Its links are absolute. */
export function chartReadme(
  read: (path: string) => string,
  { image }: ChartDefaults,
  rows: readonly ValueRow[],
): string {
  const docs = `${homeOf(read)}/blob/main/docs`;
  const intro = `Legation runs unchanged pods and workloads of one Kubernetes cluster, the host, in other clusters, its members. This
chart installs it on the host, from Kubernetes 1.30 on, by Helm 3.8 or newer or Helm 4.`;
  return `${heading("Legation", intro, "`scripts/chart` and `manifests`")}
No image is published as \`${image.repository}\` yet: build one in a clone of Legation, and name it.

\`\`\`sh elsewhere: needs a registry and Helm
docker build -t registry.example/legation:1 . && docker push registry.example/legation:1
helm install legation charts/legation --namespace legation-system --create-namespace \\
  --set clusterName=berlin --set image.repository=registry.example/legation --set-string image.tag=1 --wait
helm test legation --namespace legation-system --logs
\`\`\`

\`helm test\` runs \`legation doctor\` in a pod. Its rights end with the test; they include no Secrets, so what these would show
is skipped.

| you want to | read |
| --- | --- |
| install, upgrade, uninstall | [installing by Helm](${docs}/install.md#helm) |
| join members | [operations](${docs}/operations.md#join) |
| delegate a workload | [tasks](${docs}/tasks/README.md) |

Custom resource definitions are ordinary objects of the chart, so an upgrade upgrades them; \`helm uninstall\` keeps them.

## Values

${valueTable(rows)}`;
}

/** Returns the table of the chart's values. */
export function valueTable(rows: readonly ValueRow[]): string {
  return table(
    ["value", "default", "meaning"],
    rows.map(({ path, value, description }) => [code(path), code(JSON.stringify(value)), plain(description)]),
  );
}
