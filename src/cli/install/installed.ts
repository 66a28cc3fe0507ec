import { z } from "zod";
import { SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { KubeObject } from "../../api/kubernetes.ts";
import { recordedHostName } from "../../clusters/host-name.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { deployments, type Resource } from "../../kube/resources.ts";
import { imageOf } from "../shared/deployment-image.ts";
import { Failure } from "../shared/failure.ts";
import type { Manifest } from "../shared/manifests.ts";
import { VERSION_LABEL } from "./objects.ts";

const webhookConfigurations: Resource<KubeObject> = {
  group: "admissionregistration.k8s.io",
  version: "v1",
  plural: "mutatingwebhookconfigurations",
  kind: "MutatingWebhookConfiguration",
  namespaced: false,
};

/** Settings of an earlier installation, which the next one keeps. */
export interface Standing {
  readonly clusterName: string | undefined;
  /** Version of the command line that installed it. Undefined if unknown. */
  readonly version: string | undefined;
  /** Address of a webhook outside the cluster. */
  readonly webhookUrl: string | undefined;
  /** The installed image, if its repository is not the manifests'. */
  readonly ownImage: string | undefined;
}

const configuration = z.looseObject({
  webhooks: z.array(z.looseObject({ clientConfig: z.looseObject({ url: z.string().optional() }) })),
});

/** Reads what is installed on the host. Rejects with KubeError. */
export async function standing(
  client: ClusterClient,
  manifests: readonly Manifest[],
  signal: AbortSignal,
): Promise<Standing> {
  const name = manifests.find(({ kind }) => kind === webhookConfigurations.kind)?.metadata.name;
  const webhook = name === undefined ? undefined : await client.find(webhookConfigurations, { name }, { signal });
  const url = configuration.safeParse(webhook).data?.webhooks[0]?.clientConfig.url;
  const manifest = manifests.find(({ kind }) => kind === deployments.kind);
  const ref = { namespace: SYSTEM_NAMESPACE, name: manifest?.metadata.name ?? "" };
  const installed = manifest === undefined ? undefined : await client.find(deployments, ref, { signal });
  const [image, published] = [imageOf(installed), imageOf(manifest)];
  const isOwn = image !== undefined && published !== undefined && repositoryOf(image) !== repositoryOf(published);
  return {
    clusterName: await recordedHostName(client, signal),
    version: installed?.metadata.labels?.[VERSION_LABEL],
    webhookUrl: url === undefined ? undefined : new URL(url).origin,
    ownImage: isOwn ? image : undefined,
  };
}

/** Returns the image to keep. Undefined: the manifests'. Throws `Failure` for an own image of another version. */
export function imageToKeep({ ownImage, version }: Standing, ownVersion: string): string | undefined {
  if (ownImage === undefined || version === ownVersion) return ownImage;
  throw new Failure("usage", {
    object: "--image",
    problem: `is missing: the cluster runs ${ownImage}, which is ${version === undefined ? "of another installation" : `version ${version}`}, and this is ${ownVersion}`,
    remedy: "write --image IMAGE with an image of this version",
  });
}

/** Returns an image name without tag and digest. */
function repositoryOf(image: string): string {
  return image.replace(/@.*$/, "").replace(/:[^/:]*$/, "");
}
