// Kubernetes' own object types, which `src/kube` owns. Pure code imports them from here, and nothing else of `src/kube`.
export * from "../kube/objects.ts";
