import { z } from "zod";
import { clusterProxyPath } from "../../api/access.ts";
import { clusterNameProblem } from "../../api/cluster.ts";
import { jsonOrNothing } from "../../api/json.ts";
import { Failure } from "../shared/failure.ts";

/** The variable in which a client gives its credential plugin the cluster that the credential is for. */
export const EXEC_INFO = "KUBERNETES_EXEC_INFO";

export interface ExecInfo {
  readonly apiVersion: string;
  readonly cluster: {
    readonly server: string;
    readonly "certificate-authority-data"?: string | undefined;
    readonly "tls-server-name"?: string | undefined;
    readonly "insecure-skip-tls-verify"?: boolean | undefined;
  };
}

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
    cluster: z
      .looseObject({
        server: z.string(),
        "certificate-authority-data": z.string().optional(),
        "tls-server-name": z.string().optional(),
        "insecure-skip-tls-verify": z.boolean().optional(),
      })
      .optional(),
  }),
});

/** Parses the variable's value. Throws `Failure`. */
export function readExecInfo(text: string | undefined): ExecInfo {
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
  const { apiVersion, spec } = parsed.data;
  if (spec.cluster === undefined) {
    throw new Failure("usage", {
      object: EXEC_INFO,
      field: "spec.cluster",
      problem: "is missing, so it cannot be checked that the credential goes to the host",
      remedy: "write provideClusterInfo: true into the reader's exec configuration",
    });
  }
  return { apiVersion, cluster: spec.cluster };
}

/**
 * Throws `Failure` unless the client sends the credential to a member's path on the host itself, over TLS that the host's own
 * authority vouches for. A user who may write a ClusterProfile could otherwise have the reader's credential sent anywhere.
 */
export function checkDestination({ cluster }: ExecInfo, host: OwnHost): void {
  const { server } = cluster;
  const refuse = (problem: string, remedy?: string): never => {
    throw new Failure("refused", { object: `server ${JSON.stringify(server)}`, problem, remedy });
  };
  if (!leadsToMember(server, host.servers)) {
    refuse(
      `is no member's path on the host (${host.servers.join(", ")}), so it does not get the host's credential`,
      `a ClusterProfile of Legation ends with ${clusterProxyPath("NAME")}; if the host has another address, give it with --servers`,
    );
  }
  if (cluster["insecure-skip-tls-verify"] === true) refuse("its certificate would not be verified");
  const name = cluster["tls-server-name"];
  if (name !== undefined && name !== "" && name !== host.tlsServerName) {
    refuse(`its certificate would be verified for another name, ${JSON.stringify(name)}`);
  }
  const given = Buffer.from(cluster["certificate-authority-data"] ?? "", "base64").toString("utf8");
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
