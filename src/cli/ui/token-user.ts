import { z } from "zod";
import { clusterProxyPath } from "../../api/access.ts";
import { defined } from "../../api/defined.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { ClusterCredentials } from "../../kube/credentials.ts";
import { createClusterClient } from "../../kube/http-client.ts";
import { realClock } from "../../runtime/clock.ts";
import { MemberClients, memberOpener } from "../shared/open-member.ts";
import type { Connection } from "../shared/session.ts";
import { LiveView } from "./live-view.ts";
import { accountNamespace, confinedTo } from "./shown-namespace.ts";
import type { TokenUser } from "./token-sign-in.ts";
import { ViewInUse } from "./view-in-use.ts";

const REVIEW = {
  apiVersion: "authentication.k8s.io/v1",
  kind: "SelfSubjectReview",
};
const review = z.looseObject({
  status: z.looseObject({ userInfo: z.looseObject({ username: z.string() }) }),
});

/**
 * Opens the host as the user of a token. Nothing of the connection's own identity is used. `only`: the namespace to show; absent, all, or
 * the one in which the user's rights end. Rejects with KubeError.
 */
export async function openTokenUser(
  connection: Connection,
  token: string,
  { only: asked }: { readonly only: string | undefined },
): Promise<TokenUser> {
  const { server, tlsServerName, proxyUrl, environmentProxyUrl, clusterName = "host", namespace } = connection;
  const ended = new AbortController();
  const { signal } = ended;
  const clients: ClusterClient[] = [];
  const identity = { authorization: `Bearer ${token}`, ...defined({ ca: connection.certificateAuthority }) };
  const open = (cluster: string, path: string): ClusterClient => {
    const credentials: ClusterCredentials = {
      server: server + path,
      source: "the user's token",
      insecureSkipTlsVerify: connection.skipsTlsVerify,
      ...defined({ tlsServerName, proxyUrl, environmentProxyUrl }),
      identity: () => identity,
      refresh: () => {},
    };
    // Other paths of the host's API server lead to members.
    const client = createClusterClient({ cluster, credentials, userAgent: "legation-ui", untrusted: path !== "" });
    clients.push(client);
    return client;
  };
  const host = open("host", "");
  const whoAmI = async (): Promise<string> => {
    const path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    const answer = await host.raw({ method: "POST", path, body: REVIEW, signal });
    return review.parse(answer).status.userInfo.username;
  };
  try {
    const user = await whoAmI();
    const namespaces = [accountNamespace(user), namespace].flatMap((name) => name ?? []);
    const only = asked ?? (await confinedTo(host, namespaces, signal));
    const isConfined = asked === undefined && only !== undefined;
    const view = new ViewInUse(() => new LiveView({ host, namespace: only, isConfined, clock: realClock }), realClock);
    const throughHost = async (name: string): Promise<ClusterClient> => open(name, clusterProxyPath(name));
    const members = new MemberClients(memberOpener({ host, signal, throughHost }));
    return {
      viewer: { host, hostName: clusterName, namespace: only ?? namespace, only, user, view, members, signal },
      check: async () => void (await whoAmI()),
      close: async () => {
        ended.abort(new Error("signed out"));
        await view.stop();
        await Promise.all(clients.map((client) => client.close()));
      },
    };
  } catch (error) {
    await host.close();
    throw error;
  }
}
