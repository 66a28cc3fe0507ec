import { z } from "zod";
import { homeAddress } from "../../api/home-address.ts";
import { loadKubeConfig } from "../../kube/kubeconfig.ts";
import { type Equip, equipped, flags } from "../shared/command.ts";
import { kept } from "../shared/connections.ts";
import { withGlobals } from "../shared/input.ts";
import { checkDestination, EXEC_INFO } from "./destination.ts";
import { execCredential } from "./exec-credential.ts";

// The names by which pods of the host reach its API server, beside its Service's address.
const IN_CLUSTER_SERVERS = ["https://kubernetes.default.svc", "https://kubernetes.default.svc.cluster.local"];

const serverList = z.string().transform((text, context) => {
  const servers = text.split(",");
  for (const server of servers) {
    if (homeAddress(server) !== undefined) continue;
    context.addIssue(
      `${JSON.stringify(server)} is not https://HOST or https://HOST:PORT; write e.g. https://10.0.0.1:6443`,
    );
  }
  return servers.map((server) => server.replace(/\/$/, ""));
});

export const command: Equip = equipped({
  description:
    "Prints the caller's own credential for the host as a client.authentication.k8s.io ExecCredential: the credential " +
    "plugin for readers of ClusterProfiles (KEP-5339), whose access provider leads to a member through the host. It is " +
    "the token or client certificate of the kubeconfig, or of the pod's service account. The reader has to write " +
    `provideClusterInfo: true: ${EXEC_INFO} then says where the credential goes, and it is given for members' paths ` +
    "on the host alone, verified by the host's own authority.",
  flags: flags({
    "--servers <list>":
      "further addresses of the host's API server that ClusterProfiles may name, e.g. https://api.example.org:6443 " +
      "(default: the kubeconfig's, or in a pod https://kubernetes.default.svc)",
  }),
  examples: {
    credential: "as `execConfig.command` of a reader in a pod of the host",
    "credential --kubeconfig reader.yaml --servers https://api.example.org:6443": "outside the host",
  },
  input: withGlobals({ servers: serverList.default([]) }),
  run: async ({ kubeconfig, context, servers }, { env, signal, terminal }) => {
    const onPluginStderr = (text: string): void => terminal.complain(text);
    const credentials = loadKubeConfig({ kubeconfig, context, env, onPluginStderr });
    const identity = await kept(Promise.resolve(credentials.identity()), signal);
    const { server, source, clusterName, tlsServerName } = credentials;
    const ownNames = clusterName === undefined ? IN_CLUSTER_SERVERS : [];
    const apiVersion = checkDestination(env[EXEC_INFO], {
      servers: [server, ...ownNames, ...servers],
      certificateAuthority: identity.ca,
      tlsServerName,
    });
    terminal.print(JSON.stringify(execCredential(identity, { apiVersion, source })));
  },
});
