/** Programs that `setup-envtest` has. */
const OF_ENVTEST: readonly string[] = ["etcd", "kube-apiserver", "kubectl"];

/** Says what building these programs takes, and how to avoid it. */
export function firstRun(names: readonly string[]): string[] {
  const avoided = names.filter((name) => OF_ENVTEST.includes(name));
  return [
    "",
    `The first run builds ${names.join(", ")} from source, with Go 1.26 or newer:`,
    "10 to 20 minutes on two cores, fewer on more; 8 GB of disk, most of it in Go's own caches.",
    "Ctrl-C stops it; the next run continues where this one was.",
    ...(avoided.length === 0
      ? []
      : [
          "",
          `To build fewer, stop it and let setup-envtest download ${avoided.join(", ")}:`,
          "   go install sigs.k8s.io/controller-runtime/tools/setup-envtest@latest",
          '   export KUBEBUILDER_ASSETS="$(setup-envtest use -p path)"',
          "A folder of your own with the other programs, too, does as well; kwok is always built.",
        ]),
    "",
  ];
}
