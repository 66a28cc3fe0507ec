import { homedir } from "node:os";
import { dirname } from "node:path";
import type { BinarySource } from "../../test/support/clusters/found-binaries.ts";

/** Programs that `setup-envtest` has. */
const OF_ENVTEST: readonly string[] = ["etcd", "kube-apiserver", "kubectl"];

/** Says where the programs of the clusters come from, a line for each place. */
export function foundText(sources: ReadonlyMap<string, BinarySource | undefined>): string[] {
  const found = [...sources].flatMap(([name, source]) => (source === undefined ? [] : [{ name, source }]));
  return [...Map.groupBy(found, ({ source }) => source.from)].map(([from, group]) => {
    const names = group.map(({ name }) => name).join(", ");
    const [first] = group;
    const place = from === "PATH" && first !== undefined ? `PATH (${dirname(first.source.path)})` : from;
    return `Uses ${names} of ${place.replace(homedir(), "~")}.`;
  });
}

/** Says what building these programs takes, and how to avoid it. `version`: minor version of Kubernetes, such as 1.36. */
export function firstRun(names: readonly string[], version: string): string[] {
  const avoided = names.filter((name) => OF_ENVTEST.includes(name));
  const installed = names.filter((name) => name === "kwok" || name === "kubectl");
  return [
    "",
    `The first run builds ${names.join(", ")} from source, with Go 1.26 or newer:`,
    "10 to 20 minutes on two cores, fewer on more; 8 GB of disk, most of it in Go's own caches.",
    "Ctrl-C stops it; the next run continues where this one was.",
    ...(avoided.length === 0
      ? []
      : [
          "",
          `To build fewer, stop it and let setup-envtest download ${avoided.join(", ")}, which the next run finds:`,
          "   go install sigs.k8s.io/controller-runtime/tools/setup-envtest@latest",
          `   setup-envtest use ${version}`,
          "A folder of your own that KUBEBUILDER_ASSETS names does as well, also for the other programs.",
        ]),
    ...(installed.length === 0 ? [] : [`${installed.join(" and ")} of this version in PATH are used, too.`]),
    "",
  ];
}
