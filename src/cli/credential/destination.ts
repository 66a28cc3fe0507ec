import { z } from "zod";
import { clusterProxyPath } from "../../api/access.ts";
import { clusterNameProblem } from "../../api/cluster.ts";
import { jsonOrNothing } from "../../api/json.ts";
import { Failure } from "../shared/failure.ts";

/** The variable in which a client gives its credential plugin the cluster that the credential is for. */
export const EXEC_INFO = "KUBERNETES_EXEC_INFO";

export interface OwnHost {
  /** URLs that lead there. */
  readonly servers: readonly string[];
  /** PEM bundle. Undefined: the system's authorities. */
  readonly certificateAuthority: string | undefined;
  readonly tlsServerName: string | undefined;
}

const execInfo = z.looseObject({
  apiVersion: z.enum(["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"]),
  kind: z.literal("ExecCredential"),
  spec: z.looseObject({
    cluster: z.looseObject(
      {
        server: z.string(),
        "certificate-authority-data": z.string().default(""),
        "tls-server-name": z.string().default(""),
        "insecure-skip-tls-verify": z.boolean().default(false),
      },
      { error: "write provideClusterInfo: true into the reader's exec configuration, so that the host can be checked" },
    ),
  }),
});

/**
 * Returns the apiVersion of the request in the variable. Throws `Failure` unless its client sends the credential to a member's path
 * on the host itself, over TLS that the host's own authority vouches for. A user who may write a ClusterProfile could otherwise have
 * the reader's credential sent anywhere.
 */
export function checkDestination(text: string | undefined, host: OwnHost): string {
  if (text === undefined || text === "") {
    throw new Failure("usage", {
      object: EXEC_INFO,
      problem: "is not set, so nothing says which cluster the credential is for",
      remedy: "configure this command as the exec plugin of a reader of ClusterProfiles, which sets it",
    });
  }
  const parsed = execInfo.safeParse(jsonOrNothing(text));
  if (!parsed.success) {
    const problem = `is no ExecCredential of client.authentication.k8s.io: ${z.prettifyError(parsed.error)}`;
    throw new Failure("usage", { object: EXEC_INFO, problem });
  }
  const { cluster } = parsed.data.spec;
  const { server, "tls-server-name": name } = cluster;
  const refuse = (problem: string, remedy?: string): never => {
    throw new Failure("refused", { object: `server ${JSON.stringify(server)}`, problem, remedy });
  };
  if (!leadsToMember(server, host.servers)) {
    refuse(
      `is no member's path on the host (${host.servers.join(", ")}), so it does not get the host's credential`,
      `a ClusterProfile of Legation ends with ${clusterProxyPath("NAME")}; if the host has another address, give it with --servers`,
    );
  }
  if (cluster["insecure-skip-tls-verify"]) refuse("its certificate would not be verified");
  if (name !== "" && name !== host.tlsServerName) {
    refuse(`its certificate would be verified for another name, ${JSON.stringify(name)}`);
  }
  const given = Buffer.from(cluster["certificate-authority-data"], "base64").toString("utf8");
  const own = new Set(certificatesIn(host.certificateAuthority ?? ""));
  const trusted = certificatesIn(given);
  // Some clients also trust blocks such as X509 CERTIFICATE.
  const hasOthers = given.split("-----BEGIN").length - 1 !== trusted.length;
  const isForeign = hasOthers || trusted.some((certificate) => !own.has(certificate));
  if (isForeign || (trusted.length === 0 && own.size > 0)) {
    refuse(
      "its certificate would be verified by another authority than the host's",
      "use a kubeconfig whose certificate-authority is that of ConfigMap kube-system/kube-root-ca.crt",
    );
  }
  return parsed.data.apiVersion;
}

// Clients read backslashes, dots and encoded characters of a URL in different ways.
const PLAIN_URL = /^https:\/\/[\w.:[\]-]+(\/(?!\.{1,2}(\/|$))[\w.-]+)+\/?$/i;

function leadsToMember(server: string, hosts: readonly string[]): boolean {
  if (!PLAIN_URL.test(server)) return false;
  const [, name = ""] = /\/clusters\/([^/]+)\/proxy\/?$/.exec(server) ?? [];
  if (name === "" || clusterNameProblem(name) !== undefined) return false;
  const wanted = hrefOf(server);
  return hosts.some((host) => wanted !== undefined && hrefOf(`${host}${clusterProxyPath(name)}`) === wanted);
}

function hrefOf(text: string): string | undefined {
  const url = URL.parse(text.replace(/\/+$/, ""));
  return url?.protocol === "https:" ? url.href : undefined;
}

function certificatesIn(pem: string): string[] {
  const blocks = pem.matchAll(/-----BEGIN CERTIFICATE-----([^-]*)-----END CERTIFICATE-----/g);
  return [...blocks].map(([, body = ""]) => body.replace(/\s/g, ""));
}
