import { parse } from "yaml";
import { z } from "zod";
import { SYSTEM_NAMESPACE } from "../../../src/api/keys.ts";
import { secretText } from "../../../src/api/kubernetes.ts";
import { credentialsSecretName } from "../../../src/cli/member/access.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { secrets } from "../../../src/kube/resources.ts";
import { eventually } from "../harness/wait.ts";

/** An API server's address, and PEM of the authority that signed its certificate. */
export type Server = { readonly server: string; readonly caData: string };

const kubeconfig = z.looseObject({
  clusters: z.tuple([
    z.looseObject({ cluster: z.looseObject({ server: z.string(), "certificate-authority-data": z.string() }) }),
  ]),
});

/** Makes the controller reach a member at another address. */
export async function redirect(host: ClusterClient, member: string, { server, caData }: Server): Promise<void> {
  const ref = { namespace: SYSTEM_NAMESPACE, name: credentialsSecretName(member) };
  // An agent brings the credentials.
  const text = await eventually(async () => secretText(await host.get(secrets, ref), "kubeconfig"));
  const config = kubeconfig.parse(parse(text));
  const [{ cluster }] = config.clusters;
  cluster.server = server;
  cluster["certificate-authority-data"] = Buffer.from(caData).toString("base64");
  const data = { kubeconfig: Buffer.from(JSON.stringify(config)).toString("base64") };
  await host.patch(secrets, ref, { type: "merge", body: { data } });
}
