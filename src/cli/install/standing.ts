import { z } from "zod";
import { SYSTEM_NAMESPACE } from "../../api/keys.ts";
import type { KubeObject } from "../../api/kubernetes.ts";
import { recordedHostName } from "../../clusters/host-name.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { deployments, type Resource } from "../../kube/resources.ts";
import { Failure } from "../failure.ts";
import type { Manifest } from "../manifests/load.ts";
import { deploymentSpec, VERSION_LABEL } from "./plan.ts";

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
  /** Version of the command line that installed it; undefined: it did not say so, or there is none. */
  readonly version: string | undefined;
  /** Where a webhook runs outside the cluster. */
  readonly webhookUrl: string | undefined;
  /** The image that the cluster runs, when it is from another repository than the manifests'. */
  readonly ownImage: string | undefined;
}

const configuration = z.looseObject({
  webhooks: z.array(z.looseObject({ clientConfig: z.looseObject({ url: z.string().optional() }) })),
});
const deployment = z.looseObject({ spec: deploymentSpec });

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

/** The image to go on with; undefined: the manifests'. Throws when nobody can know which one has this version. */
export function imageToKeep({ ownImage, version }: Standing, ownVersion: string): string | undefined {
  if (ownImage === undefined || version === ownVersion) return ownImage;
  throw new Failure("usage", {
    object: "--image",
    problem: `is missing: the cluster runs ${ownImage}, which is ${version === undefined ? "of another installation" : `version ${version}`}, and this is ${ownVersion}`,
    remedy: "write --image IMAGE with an image of this version",
  });
}

function imageOf(object: unknown): string | undefined {
  return deployment.safeParse(object).data?.spec.template.spec.containers[0]?.image;
}

/** Without tag and digest. */
function repositoryOf(image: string): string {
  return image.replace(/@.*$/, "").replace(/:[^/:]*$/, "");
}
