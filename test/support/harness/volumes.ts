import type { KubeObject } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import type { Resource } from "../../../src/kube/resources.ts";

interface Volume extends KubeObject {
  spec?: object;
}
const volumes: Resource<Volume> = {
  group: "",
  version: "v1",
  plural: "persistentvolumes",
  kind: "PersistentVolume",
  namespaced: false,
};

/** A volume of 1Gi in a folder of the node. */
export interface VolumeOptions {
  readonly name: string;
  readonly storageClassName: string;
  readonly path: string;
  /** The only claim that may have it; absent: any of its class. */
  readonly claimRef?: { readonly namespace: string; readonly name: string };
}

/** Makes a volume in a cluster, and removes it in the end. */
export async function makeVolume(
  client: ClusterClient,
  { name, path, ...options }: VolumeOptions,
  onFinished: (cleanUp: () => Promise<void>) => void,
): Promise<void> {
  await client.create(volumes, {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name },
    spec: {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      persistentVolumeReclaimPolicy: "Retain",
      hostPath: { path },
      ...options,
    },
  });
  onFinished(() => client.delete(volumes, { name }));
}
