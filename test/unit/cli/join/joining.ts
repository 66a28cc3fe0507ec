import { parse } from "yaml";
import type { KubeObject, Secret } from "../../../../src/api/kubernetes.ts";
import { clusters } from "../../../../src/api/resources.ts";
import { joinByKubeconfig } from "../../../../src/cli/join/join.ts";
import type { JoinOptions } from "../../../../src/cli/join/validate.ts";
import { clusterRoleBindings, clusterRoles, roleBindings, roles } from "../../../../src/cli/member/access.ts";
import type { Connection } from "../../../../src/cli/shared/session.ts";
import type { KubeErrorCode } from "../../../../src/kube/errors.ts";
import { credentialsFromKubeconfigText } from "../../../../src/kube/kubeconfig.ts";
import { secrets, serviceAccounts } from "../../../../src/kube/resources.ts";
import { MemoryCluster } from "../../../support/api-server/memory-cluster.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

const HOST = "01234567-host";
export const ACCOUNT = { namespace: "legation-system", name: "legation-host-01234567" };
export const ACCESS_ACCOUNT = { namespace: "legation-system", name: "legation-access-01234567" };
export const SECRET = { namespace: "legation-system", name: "member-west" };
export const READY: object = { conditions: [{ type: "Ready", status: "True" }] };
export const SERVER = "https://192.0.2.1";

const OFF = { definitions: false, agent: false, homeApiThroughAgent: false, access: false, removeAccess: false };
/** A `legation join` without flags. */
export const NO_FLAGS: Omit<JoinOptions, "name"> = { ...OFF, labels: {}, types: [], timeout: 20 };

const role = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "ClusterRole",
  metadata: { name: "legation-host" },
  rules: [],
};
export const authorityNamed = (name: string): string =>
  `-----BEGIN CERTIFICATE-----\n${btoa(name)}\n-----END CERTIFICATE-----`;

/** An address of the member that only the controller reaches. */
export const INTERNAL = "https://10.0.0.1:6443";

/** A host, and a member that joins it. */
export class Joining {
  readonly host: MemoryCluster = new MemoryCluster("host", HOST);
  member: MemoryCluster = new MemoryCluster("west", "uid-of-west");
  /** The authority that vouches for the member by now. */
  authority: string = authorityNamed("first");
  /** Parts of the member's kubeconfig that the operator gives. */
  given: Partial<Connection> = {};
  /** The verb that the member's authorizer wants for impersonation. */
  impersonationVerb = "impersonate:user-info";
  readonly impersonations: object[] = [];

  constructor() {
    this.report(READY);
  }

  /** Sets the status that the controller writes into each new Cluster. */
  report(status: object | undefined): void {
    this.host.onWrite = ({ resource, object, before }) => {
      const isNew = resource.plural === clusters.plural && before === undefined;
      if (isNew && status !== undefined) this.host.put(resource, { ...object, status });
    };
  }

  /** Joins the member under a name. */
  as(name: string, options: Partial<JoinOptions> = {}, reported: Pick<string[], "push"> = []): Promise<unknown> {
    for (const resource of [clusterRoles, clusterRoleBindings, roles, roleBindings]) this.member.serve(resource, true);
    return joinByKubeconfig(
      { ...NO_FLAGS, name, ...options },
      {
        host: this.host.client,
        member: {
          client: this.member.client,
          server: SERVER,
          skipsTlsVerify: false,
          certificateAuthority: this.authority,
          namespace: "default",
          ...this.given,
        },
        connectText: (text) => this.#connectText(text),
        role,
        hostName: "host",
        signal: new AbortController().signal,
        report: (line) => reported.push(line),
      },
    );
  }

  /** The cluster entry and the token of the stored kubeconfig. */
  stored(): { cluster: Record<string, unknown>; token: string } | undefined {
    const kubeconfig = this.host.peek<Secret>(secrets, SECRET)?.data?.kubeconfig;
    if (kubeconfig === undefined) return undefined;
    const { clusters: entries, users } = parse(atob(kubeconfig));
    return { cluster: entries[0].cluster, token: users[0].user.token };
  }

  uidOfAccount(): string | undefined {
    return this.member.peek(serviceAccounts, ACCOUNT)?.metadata.uid;
  }

  /** The member through a kubeconfig, whose token and authority count. */
  async #connectText(text: string): Promise<Connection> {
    const { server, insecureSkipTlsVerify, tlsServerName, proxyUrl, identity } = credentialsFromKubeconfigText(text, {
      allowExec: false,
      env: {},
    });
    const { ca, authorization, headers } = await identity();
    const fail = (code: KubeErrorCode, message: string): never => {
      throw kubeError(code, message, { verb: "get" });
    };
    const raw = async (): Promise<object> => {
      if (server === INTERNAL) fail("NotSent", "connect ETIMEDOUT");
      if (ca !== this.authority) fail("NotSent", "unable to verify the first certificate");
      if (headers !== undefined) return impersonate(authorization, headers);
      const account = this.member.peek(serviceAccounts, ACCOUNT);
      if (authorization !== `Bearer token-of-${account?.metadata.uid}`) fail("Unauthorized", "Unauthorized");
      return {};
    };
    /** Answers a request of an impersonated user, which the rights of the account permit or not. */
    const impersonate = (as: string | undefined, impersonated: object): object => {
      const account = this.member.peek(serviceAccounts, ACCESS_ACCOUNT);
      const role = this.member.peek<KubeObject & { readonly rules?: object[] }>(clusterRoles, {
        name: ACCESS_ACCOUNT.name,
      });
      if (as !== `Bearer token-of-${account?.metadata.uid}`) fail("Unauthorized", "Unauthorized");
      if (!JSON.stringify(role?.rules).includes(`"${this.impersonationVerb}"`))
        fail("Forbidden", "may not impersonate");
      this.impersonations.push(impersonated);
      return {};
    };
    return {
      client: fakeClient({ raw }),
      server,
      skipsTlsVerify: insecureSkipTlsVerify,
      namespace: "default",
      ...(ca === undefined ? {} : { certificateAuthority: ca }),
      ...(tlsServerName === undefined ? {} : { tlsServerName }),
      ...(proxyUrl === undefined ? {} : { proxyUrl }),
    };
  }
}
