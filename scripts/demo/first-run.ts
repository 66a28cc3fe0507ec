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

/** Minor versions of what is built, such as 1.36. */
export interface BuiltVersions {
  readonly kubernetes: string;
  readonly kwok: string;
}

/** Says what building these programs takes, and how to avoid it. */
export function firstRun(names: readonly string[], { kubernetes, kwok }: BuiltVersions): string[] {
  const avoided = names.filter((name) => OF_ENVTEST.includes(name));
  const inPath = [
    ...(names.includes("kwok") ? [`kwok ${kwok} (https://kwok.sigs.k8s.io/docs/user/installation)`] : []),
    ...(names.includes("kubectl") ? [`kubectl ${kubernetes}`] : []),
  ];
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
          `   setup-envtest use ${kubernetes}`,
          "A folder of your own that KUBEBUILDER_ASSETS names does as well, also for the other programs.",
        ]),
    ...(inPath.length === 0 ? [] : [`A program in PATH will do, too: ${inPath.join(", ")}.`]),
    "",
  ];
}
